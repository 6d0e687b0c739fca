"""MobileBERT's checkpoint table: BERT's names where it is BERT, and those of bottlenecks and stacked networks."""

import re
from dataclasses import replace

from .bert import FAMILY as BERT
from .errors import CheckpointError
from .family import Head

_LAYERS = (
    # garden                                             Hugging Face
    ("embeddings/projection", "embeddings.embedding_transformation"),
    ("block_{i}/bottleneck/dense", "encoder.layer.{i}.bottleneck.input.dense"),
    ("block_{i}/bottleneck/norm", "encoder.layer.{i}.bottleneck.input.LayerNorm"),
    ("block_{i}/attention/bottleneck/dense", "encoder.layer.{i}.bottleneck.attention.dense"),
    ("block_{i}/attention/bottleneck/norm", "encoder.layer.{i}.bottleneck.attention.LayerNorm"),
    ("block_{i}/feedforward_{j}/intermediate_dense", "encoder.layer.{i}.ffn.{j}.intermediate.dense"),
    ("block_{i}/feedforward_{j}/output_dense", "encoder.layer.{i}.ffn.{j}.output.dense"),
    ("block_{i}/feedforward_{j}_norm", "encoder.layer.{i}.ffn.{j}.output.LayerNorm"),
    ("block_{i}/output_dense", "encoder.layer.{i}.output.bottleneck.dense"),
    ("block_{i}/output_norm", "encoder.layer.{i}.output.bottleneck.LayerNorm"),
)


def _tensorflow1(name):
    return name.replace(".ffn.", ".ffn_layer_").replace("layer.{i}", "layer_{i}").replace(".", "/")


def _with_fakes(rows):
    """Google calls a norm that normalises nothing a fake one."""
    norms = [row for row in rows if row[1].endswith("/LayerNorm")]
    return (*rows, *((ours, theirs.removesuffix("LayerNorm") + "FakeLayerNorm") for ours, theirs in norms))


def _head(task, head):
    huggingface, tensorflow1 = head.huggingface, head.tensorflow1
    if task == "MaskedLM":
        # Stored (d - e, v) by transformers and (v, d - e) by Google.
        huggingface += (("masked_lm/extra_embeddings", "cls.predictions.dense.weight"),)
        tensorflow1 += (("masked_lm/extra_embeddings", "cls/predictions/extra_output_weights"),)
    return Head(head.architecture.replace("Bert", "MobileBert"), huggingface, tensorflow1)


def _read(config):
    shared = "shared_bottleneck" if config["key_query_shared_bottleneck"] else "input"
    return {
        **config,
        "attention_input": "bottleneck" if config["use_bottleneck_attention"] else shared,
        "intra_bottleneck_size": config["intra_bottleneck_size"] if config["use_bottleneck"] else None,
    }


def _write(config):
    source, width = config["attention_input"], config["intra_bottleneck_size"]
    if source == "input" and width not in (None, config["hidden_size"]):
        raise CheckpointError(
            f"transformers cannot run a MobileBERT whose attention_input is 'input' (bottleneck_dim={width} beside "
            f"hidden_dim={config['hidden_size']}), so it cannot be exported: save it with save_to_preset."
        )
    return {name: value for name, value in config.items() if name != "attention_input"} | {
        "use_bottleneck": width is not None,
        "intra_bottleneck_size": width or config["hidden_size"],
        "use_bottleneck_attention": source == "bottleneck",
        "key_query_shared_bottleneck": source == "shared_bottleneck",
    }


def _infer(tensors):
    """What the tensors say; Google's configurations leave out what is its code's default, which is not transformers'.

    They do not tell the number of heads, 4 in every published model.
    """
    names, layer = set(tensors), "bert/encoder/layer_0/"
    if "bert/embeddings/embedding_transformation/kernel" not in names:
        return None
    vocabulary_size, embedding_dim = tensors.shape("bert/embeddings/word_embeddings")
    seen, hidden_dim = tensors.shape("bert/embeddings/embedding_transformation/kernel")
    inside, intermediate_dim = tensors.shape(f"{layer}intermediate/dense/kernel")
    fake = "bert/embeddings/FakeLayerNorm/gamma" in names
    blocks = {match[1] for name in names if (match := re.match(r"bert/encoder/layer_(\d+)/", name))}
    stack = {match[1] for name in names if (match := re.match(rf"{layer}ffn_layer_(\d+)/", name))}
    return {
        "model_type": "mobilebert",
        "vocab_size": vocabulary_size,
        "embedding_size": embedding_dim,
        "trigram_input": seen == 3 * embedding_dim,
        "hidden_size": hidden_dim,
        "intermediate_size": intermediate_dim,
        "num_hidden_layers": len(blocks),
        "num_attention_heads": 4,
        "max_position_embeddings": tensors.shape("bert/embeddings/position_embeddings")[0],
        "type_vocab_size": tensors.shape("bert/embeddings/token_type_embeddings")[0],
        "use_bottleneck": f"{layer}bottleneck/input/dense/kernel" in names,
        "intra_bottleneck_size": inside,
        "key_query_shared_bottleneck": f"{layer}bottleneck/attention/dense/kernel" in names,
        "use_bottleneck_attention": tensors.shape(f"{layer}attention/self/value/kernel")[0] == inside,
        "num_feedforward_networks": len(stack) + 1,
        "normalization_type": "no_norm" if fake else "layer_norm",
        "hidden_act": "relu" if fake else "gelu",
        "hidden_dropout_prob": 0.0 if fake else 0.1,
        "classifier_activation": "bert/pooler/dense/kernel" in names,
    }


FAMILY = replace(
    BERT,
    backbone="MobileBertBackbone",
    model_type="mobilebert",
    prefix="mobilebert",
    tensorflow1_prefix="bert",
    config={
        **BERT.config,
        "embedding_dim": "embedding_size",
        "bottleneck_dim": "intra_bottleneck_size",
        "num_feedforwards": "num_feedforward_networks",
        "attention_input": "attention_input",
        "normalization": "normalization_type",
        "trigram_input": "trigram_input",
        "classifier_activation": "classifier_activation",
    },
    defaults={
        **BERT.defaults,
        "embedding_size": 128,
        "trigram_input": True,
        "use_bottleneck": True,
        "intra_bottleneck_size": 128,
        "use_bottleneck_attention": False,
        "key_query_shared_bottleneck": True,
        "num_feedforward_networks": 4,
        "normalization_type": "no_norm",
        "classifier_activation": True,
        "hidden_act": "relu",
        "hidden_dropout_prob": 0.0,
    },
    huggingface=(*BERT.huggingface, *_LAYERS),
    tensorflow1=_with_fakes((*BERT.tensorflow1, *((ours, _tensorflow1(theirs)) for ours, theirs in _LAYERS))),
    keras_hub=(),
    heads={task: _head(task, head) for task, head in BERT.heads.items()},
    ignored=BERT.ignored
    | {
        # transformers makes these always.
        r"\.bottleneck\.attention\.|^embeddings\.embedding_transformation\.": "a layer that nothing reads",
    },
    read_config=_read,
    write_config=_write,
    infer_config=_infer,
)
