"""T5's checkpoint table: what Hugging Face and mesh TensorFlow call the layers of T5, T5 1.1, mT5 and Flan-T5.

A model whose output is the token table multiplies by d^-0.5 first; one that does not multiply has a matrix of its own
here, if need be a copy of the table, which is what newer transformers builds from scratch.
"""

import re
from functools import partial

from .bert import LEFTOVERS
from .derived import Derived
from .errors import CheckpointError
from .family import Family, Head

ENCODER = (
    ("token_embedding", "shared"),
    ("encoder_bias", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"),
    ("encoder_block_{i}/attention_norm", "encoder.block.{i}.layer.0.layer_norm"),
    ("encoder_block_{i}/attention/query", "encoder.block.{i}.layer.0.SelfAttention.q"),
    ("encoder_block_{i}/attention/key", "encoder.block.{i}.layer.0.SelfAttention.k"),
    ("encoder_block_{i}/attention/value", "encoder.block.{i}.layer.0.SelfAttention.v"),
    ("encoder_block_{i}/attention/output_dense", "encoder.block.{i}.layer.0.SelfAttention.o"),
    ("encoder_block_{i}/feedforward_norm", "encoder.block.{i}.layer.1.layer_norm"),
    ("encoder_block_{i}/feedforward/intermediate_dense", "encoder.block.{i}.layer.1.DenseReluDense.wi"),
    ("encoder_block_{i}/feedforward/gate_dense", "encoder.block.{i}.layer.1.DenseReluDense.wi_1"),
    ("encoder_block_{i}/feedforward/output_dense", "encoder.block.{i}.layer.1.DenseReluDense.wo"),
    ("encoder_norm", "encoder.final_layer_norm"),
)
_DECODER = (
    ("decoder_bias", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias"),
    ("decoder_block_{i}/attention_norm", "decoder.block.{i}.layer.0.layer_norm"),
    ("decoder_block_{i}/attention/query", "decoder.block.{i}.layer.0.SelfAttention.q"),
    ("decoder_block_{i}/attention/key", "decoder.block.{i}.layer.0.SelfAttention.k"),
    ("decoder_block_{i}/attention/value", "decoder.block.{i}.layer.0.SelfAttention.v"),
    ("decoder_block_{i}/attention/output_dense", "decoder.block.{i}.layer.0.SelfAttention.o"),
    ("decoder_block_{i}/cross_attention_norm", "decoder.block.{i}.layer.1.layer_norm"),
    ("decoder_block_{i}/cross_attention/query", "decoder.block.{i}.layer.1.EncDecAttention.q"),
    ("decoder_block_{i}/cross_attention/key", "decoder.block.{i}.layer.1.EncDecAttention.k"),
    ("decoder_block_{i}/cross_attention/value", "decoder.block.{i}.layer.1.EncDecAttention.v"),
    ("decoder_block_{i}/cross_attention/output_dense", "decoder.block.{i}.layer.1.EncDecAttention.o"),
    ("decoder_block_{i}/feedforward_norm", "decoder.block.{i}.layer.2.layer_norm"),
    ("decoder_block_{i}/feedforward/intermediate_dense", "decoder.block.{i}.layer.2.DenseReluDense.wi"),
    ("decoder_block_{i}/feedforward/gate_dense", "decoder.block.{i}.layer.2.DenseReluDense.wi_1"),
    ("decoder_block_{i}/feedforward/output_dense", "decoder.block.{i}.layer.2.DenseReluDense.wo"),
    ("decoder_norm", "decoder.final_layer_norm"),
)
_OUTPUT = "token_embedding/reverse_embeddings"
_BIAS = "SelfAttention.relative_attention_bias"


def in_mesh(layers):
    """The same layers in mesh TensorFlow, whose projections are variables and whose norms changed their name in 1.1."""
    found = []
    for ours, theirs in layers:
        name = (
            theirs.replace("block.0", "block_000")
            .replace("block.{i}", "block_{00i}")
            .replace("shared", "shared.embedding")
        )
        name = re.sub(r"layer\.(\d)", r"layer_00\1", name).replace(".", "/")
        found.append((f"{ours}/kernel" if name.endswith(("/q", "/k", "/v", "/o")) else ours, name))
        if "layer_norm" in name:
            found.append((ours, re.sub(r"(final_)?layer_norm$", "rms_norm", name)))
    return tuple(found)


def read_config(config):
    """The configuration with what transformers makes of `feed_forward_proj` and of the tying of the output."""
    gate, _, activation = config["feed_forward_proj"].rpartition("-")
    if gate not in ("", "gated"):
        raise CheckpointError(f"feed_forward_proj is {config['feed_forward_proj']}; garden knows NAME and gated-NAME.")
    activation = "gelu_new" if gate and activation == "gelu" else activation
    scaled = config.get("scale_decoder_outputs", config["tie_word_embeddings"]) and config["model_type"] != "mt5"
    return {**config, "dense_act_fn": activation, "is_gated_act": bool(gate), "scale_decoder_outputs": scaled}


def write_config(config):
    """Its inverse."""
    config = dict(config)
    gated, activation = config.pop("is_gated_act"), config.pop("dense_act_fn")
    if gated:
        activation = {"gelu": "gelu_python", "gelu_pytorch_tanh": "gelu"}.get(activation, activation)
    scaled = {"tie_word_embeddings": config["scale_decoder_outputs"]} if "scale_decoder_outputs" in config else {}
    special = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    return {**special, **config, **scaled, "feed_forward_proj": f"gated-{activation}" if gated else activation}


def _read_tensors(tensors, config):
    """The tensors with an output matrix where the logits are not scaled, and mesh TensorFlow's tables turned."""
    gated = {name: re.sub(r"\bwi_0\b", "wi", name) for name in tensors if re.search(r"\bwi_0\b", name)}
    computed = {ours: partial(tensors.__getitem__, theirs) for theirs, ours in gated.items()}
    if "shared/embedding" in tensors:
        tables = [name for name in tensors if name.endswith("/relative_attention_bias")]
        computed |= {name: partial(_turned, tensors, name) for name in tables}
    table = next((name for name in tensors if name.endswith("shared.weight")), None)
    if table and "lm_head.weight" not in tensors and not read_config(config)["scale_decoder_outputs"]:
        computed["lm_head.weight"] = partial(tensors.__getitem__, table)
    return Derived(tensors, computed, used=gated)


def write_tensors(tensors, config):
    """The inverse for Hugging Face's files."""
    gated = config["feed_forward_proj"].startswith("gated-")
    return {name.replace(".wi.", ".wi_0.") if gated else name: array for name, array in tensors.items()}


def _turned(tensors, name):
    return tensors[name].T


def _infer(tensors):
    """The configuration behind the shapes of a mesh TensorFlow checkpoint, which states none in a readable form."""
    if "shared/embedding" not in tensors or f"decoder/block_000/layer_000/{_BIAS}".replace(".", "/") not in tensors:
        return None
    first = "encoder/block_000/layer_000/SelfAttention"
    heads, buckets = tensors.shape(f"{first}/relative_attention_bias")
    gated = "encoder/block_000/layer_001/DenseReluDense/wi_0/kernel" in tensors
    depths = {
        stack: len({name.split("/")[1] for name in tensors if name.startswith(f"{stack}/block_")})
        for stack in ("encoder", "decoder")
    }
    return {
        "model_type": "t5",
        "vocab_size": tensors.shape("shared/embedding")[0],
        "d_model": tensors.shape("shared/embedding")[1],
        "d_kv": tensors.shape(f"{first}/q")[1] // heads,
        "d_ff": tensors.shape("encoder/block_000/layer_001/DenseReluDense/wo/kernel")[0],
        "num_heads": heads,
        "num_layers": depths["encoder"],
        "num_decoder_layers": depths["decoder"],
        "relative_attention_num_buckets": buckets,
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "tie_word_embeddings": "decoder/logits/kernel" not in tensors,
    }


CONFIG = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_layers",
    "num_heads": "num_heads",
    "hidden_dim": "d_model",
    "intermediate_dim": "d_ff",
    "key_value_dim": "d_kv",
    "dropout": "dropout_rate",
    "activation": "dense_act_fn",
    "use_gated_activation": "is_gated_act",
    "layer_norm_epsilon": "layer_norm_epsilon",
}

FAMILY = Family(
    backbone="T5Backbone",
    model_type="t5",
    other_model_types=("mt5",),
    architecture="T5ForConditionalGeneration",
    prefix="",
    config={**CONFIG, "num_decoder_layers": "num_decoder_layers", "tie_embedding_weights": "scale_decoder_outputs"},
    defaults={
        "num_decoder_layers": None,
        "dropout_rate": 0.1,
        "feed_forward_proj": "relu",
        "tie_word_embeddings": True,
        "layer_norm_epsilon": 1e-6,
    },
    huggingface=(*ENCODER, *_DECODER, (_OUTPUT, "lm_head.weight")),
    tensorflow1=(*in_mesh((*ENCODER, *_DECODER)), (_OUTPUT, "decoder/logits/kernel")),
    heads={"Seq2SeqLM": Head(architecture="T5ForConditionalGeneration", huggingface=())},
    tied={
        "lm_head.weight": "shared.weight",
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
    },
    ignored=LEFTOVERS
    | {
        r"EncDecAttention\.relative_attention_bias": "a table that nothing reads",
        r"_slot_": "optimizer state",
        r"^(classification_head|qa_outputs|classifier)\.": "a head of another task",
    },
    read_config=read_config,
    write_config=write_config,
    infer_config=_infer,
    read_tensors=_read_tensors,
    write_tensors=write_tensors,
)
