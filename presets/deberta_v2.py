"""The checkpoint table of DeBERTa 2 and 3 and of mDeBERTa: projections apart, a norm of the table, a convolution."""

from functools import partial

from .deberta import COMMON, POOLED, heads, read_config, write_config
from .deberta import FAMILY as DEBERTA
from .derived import Derived
from .errors import CheckpointError
from .family import Family, Head

_CONVOLUTION = "encoder.conv.conv.weight"
_ACTIVATIONS = {"gelu": "gelu_erf", "gelu_new": "gelu_tanh"}

_LAYERS = (
    *COMMON,
    ("relative_embedding/norm", "encoder.LayerNorm"),
    ("block_{i}/attention/query", "encoder.layer.{i}.attention.self.query_proj"),
    ("block_{i}/attention/key", "encoder.layer.{i}.attention.self.key_proj"),
    ("block_{i}/attention/value", "encoder.layer.{i}.attention.self.value_proj"),
    ("block_{i}/attention/position_key", "encoder.layer.{i}.attention.self.pos_key_proj"),
    ("block_{i}/attention/position_query", "encoder.layer.{i}.attention.self.pos_query_proj"),
    ("block_0/convolution/dense", "encoder.conv.conv"),
    ("block_0/convolution/norm", "encoder.conv.LayerNorm"),
)

_HUB = "layers/disentangled_attention_encoder{_i}"
_KERAS_HUB_LAYERS = (
    ("embeddings/token_embedding", "layers/reversible_embedding"),
    ("embeddings/norm", "layers/layer_normalization"),
    ("relative_embedding/table", "layers/relative_embedding"),
    ("relative_embedding/norm", "layers/relative_embedding/layer_norm"),
    ("block_{i}/attention/query", f"{_HUB}/_self_attention_layer/_query_dense"),
    ("block_{i}/attention/key", f"{_HUB}/_self_attention_layer/_key_dense"),
    ("block_{i}/attention/value", f"{_HUB}/_self_attention_layer/_value_dense"),
    ("block_{i}/attention/output_dense", f"{_HUB}/_self_attention_layer/_output_dense"),
    ("block_{i}/attention_norm", f"{_HUB}/_self_attention_layer_norm"),
    ("block_{i}/feedforward/intermediate_dense", f"{_HUB}/_feedforward_intermediate_dense"),
    ("block_{i}/feedforward/output_dense", f"{_HUB}/_feedforward_output_dense"),
    ("block_{i}/feedforward_norm", f"{_HUB}/_feedforward_layer_norm"),
)


def _read_config(config):
    config = read_config(config)
    odd = {} if "layer_norm" in config["norm_rel_ebd"] else {"norm_rel_ebd": config["norm_rel_ebd"]}
    odd |= {"conv_groups": config["conv_groups"]} if config.get("conv_groups", 1) != 1 else {}
    if odd:
        raise CheckpointError(f"garden's DeBERTa 2 is that of the releases, and this one has {odd}.")
    buckets = config["position_buckets"]
    return {
        **config,
        "position_buckets": buckets if buckets > 0 else None,
        "conv_act": _ACTIVATIONS.get(config["conv_act"], config["conv_act"]),
    }


def _write_config(config):
    spelled = {ours: theirs for theirs, ours in _ACTIVATIONS.items()}
    return {
        **write_config(config),
        "norm_rel_ebd": "layer_norm",
        "position_buckets": config["position_buckets"] or -1,
        "conv_act": spelled.get(config["conv_act"], config["conv_act"]),
    }


def _read_tensors(tensors, config):
    """A convolution (out, in, size) as the matrix (out, size * in) of a dense layer over the neighbours."""
    found = [name for name in tensors if name.endswith(_CONVOLUTION)]

    def matrix(name):
        return tensors[name].swapaxes(1, 2).reshape(tensors[name].shape[0], -1)

    return Derived(tensors, {name: partial(matrix, name) for name in found})


def _write_tensors(tensors, config):
    found = {name: tensor for name, tensor in tensors.items() if name.endswith(_CONVOLUTION)}
    size = config["conv_kernel_size"]
    return {**tensors, **{name: t.reshape(len(t), size, -1).swapaxes(1, 2).copy() for name, t in found.items()}}


FAMILY = Family(
    backbone="DebertaV2Backbone",
    model_type="deberta-v2",
    prefix="deberta",
    other_prefixes=("bert",),
    config=DEBERTA.config
    | {
        "bucket_size": "position_buckets",
        "share_att_key": "share_att_key",
        "conv_kernel_size": "conv_kernel_size",
        "conv_activation": "conv_act",
    },
    defaults={
        **DEBERTA.defaults,
        "position_buckets": -1,
        "norm_rel_ebd": "none",
        "share_att_key": False,
        "conv_kernel_size": 0,
        "conv_act": "tanh",
    },
    huggingface=_LAYERS,
    keras_hub=_KERAS_HUB_LAYERS,
    keras_hub_name="DebertaV3Backbone",
    keras_hub_arguments={"activation": "gelu_erf"},
    heads=heads("DebertaV2")
    | {
        "TextClassifier": Head(
            architecture="DebertaV2ForSequenceClassification",
            huggingface=POOLED,
            keras_hub=(("pooler/dense", "task/layers/dense"), ("classifier/logits", "task/layers/dense_1")),
        ),
        "ReplacedTokenDetector": Head(
            architecture="",
            huggingface=(
                ("replaced_token/norm", "mask_predictions.LayerNorm"),
                ("replaced_token/dense", "mask_predictions.dense"),
                ("replaced_token/logits", "mask_predictions.classifier"),
            ),
        ),
    },
    tied=DEBERTA.tied,
    ignored=DEBERTA.ignored | {r"^mask_predictions\.|^task/": "a head of another task"},
    read_config=_read_config,
    write_config=_write_config,
    read_tensors=_read_tensors,
    write_tensors=_write_tensors,
)
