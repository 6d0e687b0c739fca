"""Marian's checkpoint table: what Hugging Face calls the layers of the OPUS-MT models."""

from functools import partial

import numpy as np

from .bert import LEFTOVERS
from .derived import Derived
from .errors import CheckpointError
from .family import Family, Head

_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output_dense": "out_proj"}


def _rows(stack, attentions):
    """The rows of one stack; what is called its final norm is that behind the feed-forward network."""
    ours, theirs = f"{stack}_block_{{i}}", f"model.{stack}.layers.{{i}}"
    for own, published in attentions.items():
        yield from ((f"{ours}/{own}/{a}", f"{theirs}.{published}.{b}") for a, b in _PROJECTIONS.items())
        yield f"{ours}/{own}_norm", f"{theirs}.{published}_layer_norm"
    yield f"{ours}/feedforward/intermediate_dense", f"{theirs}.fc1"
    yield f"{ours}/feedforward/output_dense", f"{theirs}.fc2"
    yield f"{ours}/feedforward_norm", f"{theirs}.final_layer_norm"


def _read_config(config):
    for name in ("attention_heads", "ffn_dim"):
        if config[f"encoder_{name}"] != config[f"decoder_{name}"]:
            raise CheckpointError(f"encoder_{name} and decoder_{name} differ, which they do in no published Marian.")
    if not config["scale_embedding"] or not config["share_encoder_decoder_embeddings"]:
        raise CheckpointError(
            "garden reads Marian models of one table for both languages, whose embeddings are scaled."
        )
    return config


def _write_config(config):
    last = config["vocab_size"] - 1
    special = {"pad_token_id": last, "decoder_start_token_id": last, "eos_token_id": 0, "forced_eos_token_id": 0}
    same = {f"decoder_{name}": config[f"encoder_{name}"] for name in ("attention_heads", "ffn_dim")}
    depth = config["decoder_layers"] or config["encoder_layers"]
    return {**special, **config, **same, "decoder_layers": depth, "scale_embedding": True}


def _read_tensors(tensors, config):
    bias = "final_logits_bias"
    computed = {bias: lambda: tensors[bias].reshape(-1)} if bias in tensors else {}
    if bias not in tensors:  # a buffer of zeros that some files leave out
        computed[bias] = partial(np.zeros, config["vocab_size"], "float32")
    return Derived(tensors, computed)


FAMILY = Family(
    backbone="MarianBackbone",
    model_type="marian",
    architecture="MarianMTModel",
    prefix="",
    config={
        "vocabulary_size": "vocab_size",
        "num_layers": "encoder_layers",
        "num_decoder_layers": "decoder_layers",
        "num_heads": "encoder_attention_heads",
        "hidden_dim": "d_model",
        "intermediate_dim": "encoder_ffn_dim",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "activation_dropout": "activation_dropout",
        "max_sequence_length": "max_position_embeddings",
        "activation": "activation_function",
        "layer_norm_epsilon": "layer_norm_eps",
    },
    defaults={
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "max_position_embeddings": 1024,
        "activation_function": "gelu",
        "scale_embedding": False,
        "share_encoder_decoder_embeddings": True,
        "layer_norm_eps": 1e-5,
    },
    huggingface=(
        ("token_embedding", "model.shared"),
        ("token_embedding/output_bias", "final_logits_bias"),
        *_rows("encoder", {"attention": "self_attn"}),
        *_rows("decoder", {"attention": "self_attn", "cross_attention": "encoder_attn"}),
    ),
    heads={"Seq2SeqLM": Head(architecture="MarianMTModel", huggingface=())},
    tied={
        "lm_head.weight": "model.shared.weight",
        "model.encoder.embed_tokens.weight": "model.shared.weight",
        "model.decoder.embed_tokens.weight": "model.shared.weight",
    },
    ignored=LEFTOVERS | {r"embed_positions\.weight$": "sinusoids, which are computed"},
    read_config=_read_config,
    write_config=_write_config,
    read_tensors=_read_tensors,
    write_tensors=lambda tensors, config: {
        name: array[None] if name == "final_logits_bias" else array for name, array in tensors.items()
    },
)
