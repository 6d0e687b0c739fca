"""ALBERT's checkpoint table: one set of rows for each block of each group; Google's own scope is still `bert`."""

from .bert import FAMILY as BERT
from .bert import LEFTOVERS
from .errors import CheckpointError
from .family import Family, Head
from .heads import encoder_heads

_LAYERS = (
    # garden                                        Hugging Face                            TensorFlow 1
    ("embeddings/token_embedding", "embeddings.word_embeddings", "embeddings/word_embeddings"),
    ("embeddings/position_embedding", "embeddings.position_embeddings", "embeddings/position_embeddings"),
    ("embeddings/segment_embedding", "embeddings.token_type_embeddings", "embeddings/token_type_embeddings"),
    ("embeddings/norm", "embeddings.LayerNorm", "embeddings/LayerNorm"),
    ("embeddings/projection", "encoder.embedding_hidden_mapping_in", "encoder/embedding_hidden_mapping_in"),
    ("group_{g}_block_{j}/attention/query", "{hf}.attention.query", "{tf}/attention_1/self/query"),
    ("group_{g}_block_{j}/attention/key", "{hf}.attention.key", "{tf}/attention_1/self/key"),
    ("group_{g}_block_{j}/attention/value", "{hf}.attention.value", "{tf}/attention_1/self/value"),
    ("group_{g}_block_{j}/attention/output_dense", "{hf}.attention.dense", "{tf}/attention_1/output/dense"),
    ("group_{g}_block_{j}/attention_norm", "{hf}.attention.LayerNorm", "{tf}/LayerNorm"),
    ("group_{g}_block_{j}/feedforward/intermediate_dense", "{hf}.ffn", "{tf}/ffn_1/intermediate/dense"),
    ("group_{g}_block_{j}/feedforward/output_dense", "{hf}.ffn_output", "{tf}/ffn_1/intermediate/output/dense"),
    ("group_{g}_block_{j}/feedforward_norm", "{hf}.full_layer_layer_norm", "{tf}/LayerNorm_1"),
    ("pooler/dense", "pooler", "pooler/dense"),
)
_BLOCK = {
    "{hf}": "encoder.albert_layer_groups.{g}.albert_layers.{j}",
    "{tf}": "encoder/transformer/group_{g}/inner_group_{j}",
}


def _whole(name):
    for short, scope in _BLOCK.items():
        name = name.replace(short, scope)
    return name


def _infer(tensors):
    """Google's albert_config.json does not say whose configuration it is; the names do."""
    if not any("/inner_group_0/" in name for name in tensors):
        return None
    # Google's code projects only where the widths differ, transformers' always.
    return {"model_type": "albert", "is_projected": any("embedding_hidden_mapping_in" in name for name in tensors)}


def _read(config):
    return config if config.get("is_projected", True) else {**config, "embedding_size": None}


def _write(config):
    if config["embedding_size"] is None:
        raise CheckpointError(
            "transformers' ALBERT always has a projection behind its tables, and this model has none."
        )
    return config


FAMILY = Family(
    backbone="AlbertBackbone",
    model_type="albert",
    prefix="albert",
    tensorflow1_prefix="bert",
    config={
        **BERT.config,
        "embedding_dim": "embedding_size",
        "num_groups": "num_hidden_groups",
        "num_inner_repetitions": "inner_group_num",
    },
    defaults={
        **BERT.defaults,
        "embedding_size": 128,
        "num_hidden_groups": 1,
        "inner_group_num": 1,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    huggingface=tuple((ours, _whole(huggingface)) for ours, huggingface, _ in _LAYERS),
    tensorflow1=tuple((ours, _whole(tensorflow1)) for ours, _, tensorflow1 in _LAYERS),
    heads=encoder_heads("Albert")
    | {
        "MaskedLM": Head(
            architecture="AlbertForMaskedLM",
            huggingface=(
                ("masked_lm/dense", "predictions.dense"),
                ("masked_lm/norm", "predictions.LayerNorm"),
                ("masked_lm/bias", "predictions.bias"),
            ),
            tensorflow1=BERT.heads["MaskedLM"].tensorflow1,
        ),
        # transformers has this head only together with the one above.
        "SentenceOrder": Head(
            architecture="",
            huggingface=(("classifier/logits", "sop_classifier.classifier"),),
            tensorflow1=BERT.heads["NextSentence"].tensorflow1,
        ),
        "TextClassifier": Head(
            architecture="AlbertForSequenceClassification",
            huggingface=(("classifier/logits", "classifier"),),
            tensorflow1=BERT.heads["TextClassifier"].tensorflow1,
        ),
    },
    optional=("pooler/",),
    tied={
        "predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    ignored=LEFTOVERS
    | {
        r"^(predictions|sop_classifier|classifier|qa_outputs)\.": "a head of another task",
        r"^(cls|start_logits|end_logits|answer_class)/|^output_(weights|bias)$": "a head of another task",
    },
    read_config=_read,
    write_config=_write,
    infer_config=_infer,
)
