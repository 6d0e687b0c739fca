"""BERT's checkpoint table: what google-research/bert, Hugging Face and KerasHub call its layers and sizes."""

from .family import Family, Head
from .heads import encoder_heads

_LAYERS = (
    # garden                                  Hugging Face                                TensorFlow 1
    ("embeddings/token_embedding", "embeddings.word_embeddings", "embeddings/word_embeddings"),
    ("embeddings/position_embedding", "embeddings.position_embeddings", "embeddings/position_embeddings"),
    ("embeddings/segment_embedding", "embeddings.token_type_embeddings", "embeddings/token_type_embeddings"),
    ("embeddings/norm", "embeddings.LayerNorm", "embeddings/LayerNorm"),
    ("block_{i}/attention/query", "encoder.layer.{i}.attention.self.query", "encoder/layer_{i}/attention/self/query"),
    ("block_{i}/attention/key", "encoder.layer.{i}.attention.self.key", "encoder/layer_{i}/attention/self/key"),
    ("block_{i}/attention/value", "encoder.layer.{i}.attention.self.value", "encoder/layer_{i}/attention/self/value"),
    (
        "block_{i}/attention/output_dense",
        "encoder.layer.{i}.attention.output.dense",
        "encoder/layer_{i}/attention/output/dense",
    ),
    (
        "block_{i}/attention_norm",
        "encoder.layer.{i}.attention.output.LayerNorm",
        "encoder/layer_{i}/attention/output/LayerNorm",
    ),
    (
        "block_{i}/feedforward/intermediate_dense",
        "encoder.layer.{i}.intermediate.dense",
        "encoder/layer_{i}/intermediate/dense",
    ),
    ("block_{i}/feedforward/output_dense", "encoder.layer.{i}.output.dense", "encoder/layer_{i}/output/dense"),
    ("block_{i}/feedforward_norm", "encoder.layer.{i}.output.LayerNorm", "encoder/layer_{i}/output/LayerNorm"),
    ("pooler/dense", "pooler.dense", "pooler/dense"),
)

_KERAS_HUB_LAYERS = (
    ("embeddings/token_embedding", "layers/reversible_embedding"),
    ("embeddings/position_embedding/embeddings", "layers/position_embedding/vars/0"),
    ("embeddings/segment_embedding", "layers/embedding"),
    ("embeddings/norm", "layers/layer_normalization"),
    ("block_{i}/attention/query", "layers/transformer_encoder{_i}/_self_attention_layer/query_dense"),
    ("block_{i}/attention/key", "layers/transformer_encoder{_i}/_self_attention_layer/key_dense"),
    ("block_{i}/attention/value", "layers/transformer_encoder{_i}/_self_attention_layer/value_dense"),
    ("block_{i}/attention/output_dense", "layers/transformer_encoder{_i}/_self_attention_layer/output_dense"),
    ("block_{i}/attention_norm", "layers/transformer_encoder{_i}/_self_attention_layer_norm"),
    ("block_{i}/feedforward/intermediate_dense", "layers/transformer_encoder{_i}/_feedforward_intermediate_dense"),
    ("block_{i}/feedforward/output_dense", "layers/transformer_encoder{_i}/_feedforward_output_dense"),
    ("block_{i}/feedforward_norm", "layers/transformer_encoder{_i}/_feedforward_layer_norm"),
    ("pooler/dense", "layers/dense"),
)

_HEADS = {
    "MaskedLM": Head(
        architecture="BertForMaskedLM",
        huggingface=(
            ("masked_lm/dense", "cls.predictions.transform.dense"),
            ("masked_lm/norm", "cls.predictions.transform.LayerNorm"),
            ("masked_lm/bias", "cls.predictions.bias"),
        ),
        tensorflow1=(
            ("masked_lm/dense", "cls/predictions/transform/dense"),
            ("masked_lm/norm", "cls/predictions/transform/LayerNorm"),
            ("masked_lm/bias", "cls/predictions/output_bias"),
        ),
        keras_hub=(
            ("masked_lm/dense", "task/layers/masked_lm_head/_intermediate_dense"),
            ("masked_lm/norm", "task/layers/masked_lm_head/_intermediate_layer_norm"),
            ("masked_lm/bias", "task/layers/masked_lm_head/vars/0"),
        ),
    ),
    "TextClassifier": Head(
        architecture="BertForSequenceClassification",
        huggingface=(("classifier/logits", "classifier"),),
        tensorflow1=(("classifier/logits/kernel", "output_weights"), ("classifier/logits/bias", "output_bias")),
        keras_hub=(("classifier/logits", "task/layers/dense"),),
    ),
    "NextSentence": Head(
        architecture="BertForNextSentencePrediction",
        huggingface=(("classifier/logits", "cls.seq_relationship"),),
        tensorflow1=(
            ("classifier/logits/kernel", "cls/seq_relationship/output_weights"),
            ("classifier/logits/bias", "cls/seq_relationship/output_bias"),
        ),
    ),
}

# What any family's files may hold beside its weights.
LEFTOVERS = {
    r"embeddings\.(position_ids|token_type_ids)$": "a buffer, not a weight",
    r"adam_[mv]$|/Adam(_1)?$|lamb_[mv]$|(^|/)optimizer/": "optimizer state",
    r"(^|/)(global_step|loss_scale|good_steps)$|beta[12]_power$": "optimizer state",
}
_IGNORED = LEFTOVERS | {
    r"^cls[./]|^classifier\.|^qa_outputs\.|^output_(weights|bias)$|^task/": "a head of another task",
    r"^fit_denses?\.": "TinyBERT's projection to its teacher, used in distillation only",
}

FAMILY = Family(
    backbone="BertBackbone",
    model_type="bert",
    prefix="bert",
    config={
        "vocabulary_size": "vocab_size",
        "num_layers": "num_hidden_layers",
        "num_heads": "num_attention_heads",
        "hidden_dim": "hidden_size",
        "intermediate_dim": "intermediate_size",
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        "max_sequence_length": "max_position_embeddings",
        "num_segments": "type_vocab_size",
        "activation": "hidden_act",
        "layer_norm_epsilon": "layer_norm_eps",
    },
    defaults={
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    },
    huggingface=tuple((ours, huggingface) for ours, huggingface, _ in _LAYERS),
    tensorflow1=tuple((ours, tensorflow1) for ours, _, tensorflow1 in _LAYERS),
    keras_hub=_KERAS_HUB_LAYERS,
    heads=encoder_heads("Bert") | _HEADS,
    optional=("pooler/",),
    # Old .bin files repeat what the masked-LM head shares; such a copy must be one.
    tied={
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    ignored=_IGNORED,
)
