"""GPT-2's checkpoint table: what Hugging Face and OpenAI's TensorFlow 1 files call its layers and sizes.

Both store query, key and value as one matrix, and every matrix (in, out).
"""

import json
from functools import partial

import numpy as np

from .derived import Derived
from .errors import CheckpointError
from .family import Family, Head

_LAYERS = (
    # garden                                Hugging Face          TensorFlow 1
    ("embeddings/token_embedding", "wte", "wte"),
    ("embeddings/position_embedding", "wpe", "wpe"),
    ("block_{i}/attention_norm", "h.{i}.ln_1", "h{i}/ln_1"),
    ("block_{i}/attention/query", "h.{i}.attn.q", "h{i}/attn/q"),
    ("block_{i}/attention/key", "h.{i}.attn.k", "h{i}/attn/k"),
    ("block_{i}/attention/value", "h.{i}.attn.v", "h{i}/attn/v"),
    ("block_{i}/attention/output_dense", "h.{i}.attn.c_proj", "h{i}/attn/c_proj"),
    ("block_{i}/feedforward_norm", "h.{i}.ln_2", "h{i}/ln_2"),
    ("block_{i}/feedforward/intermediate_dense", "h.{i}.mlp.c_fc", "h{i}/mlp/c_fc"),
    ("block_{i}/feedforward/output_dense", "h.{i}.mlp.c_proj", "h{i}/mlp/c_proj"),
    ("final_norm", "ln_f", "ln_f"),
)
_MATRICES = ("c_attn", "c_proj", "c_fc")
_PARTS = ("q", "k", "v")


def read_tensors(tensors, config):
    """The tensors of either format with query, key and value apart, and Hugging Face's matrices (out, in)."""
    slashes = any(name.startswith("model/") for name in tensors)
    return _read_tensorflow(tensors) if slashes else _read_hugging_face(tensors)


def _read_hugging_face(tensors):
    computed, fused = {}, []
    for name in tensors:
        layer, _, variable = name.rpartition(".")
        kind = layer.rpartition(".")[2]
        if kind == "c_attn":
            fused.append(name)
            for i, part in enumerate(_PARTS):
                computed[name.replace("c_attn", part)] = partial(_third, tensors, name, i)
        elif kind in _MATRICES and variable == "weight":
            computed[name] = partial(_transposed, tensors, name)
    return Derived(tensors, computed, used=fused)


def _third(tensors, name, i):
    return np.split(tensors[name], 3, axis=-1)[i].T


def _transposed(tensors, name):
    return tensors[name].T


def _read_tensorflow(tensors):
    """OpenAI's `w`, `b` and `g` in the words of `Dialect`; a matrix is (1, in, out), as of a convolution."""
    computed, used = {}, []
    for name in tensors:
        layer, _, variable = name.rpartition("/")
        kind = layer.rpartition("/")[2]
        if variable not in ("w", "b", "g"):
            continue
        used.append(name)
        norm = f"{layer}/g" in tensors
        word = {"w": "kernel", "g": "gamma", "b": "beta" if norm else "bias"}[variable]
        parts = _PARTS if kind == "c_attn" else (kind,)
        for i, part in enumerate(parts):
            computed[f"{layer.removesuffix(kind)}{part}/{word}"] = partial(_part, tensors, name, i, len(parts))
    return Derived(tensors, computed, used=used)


def _part(tensors, name, i, number):
    array = tensors[name]
    return np.split(array[0] if array.ndim == 3 else array, number, axis=-1)[i]


def write_tensors(tensors, config):
    """The inverse of `read_tensors` for Hugging Face's files."""
    written = {}
    for name, array in tensors.items():
        layer, _, variable = name.rpartition(".")
        kind = layer.rpartition(".")[2]
        if kind in _PARTS:
            if kind == "q":
                three = [tensors[f"{layer[:-1]}{part}.{variable}"] for part in _PARTS]
                written[f"{layer[:-1]}c_attn.{variable}"] = np.ascontiguousarray(np.concatenate(three).T)
        else:
            matrix = kind in _MATRICES and variable == "weight"
            written[name] = np.ascontiguousarray(array.T) if matrix else array
    return written


def _read_config(config):
    for unsupported in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        if config.get(unsupported):
            raise CheckpointError(f"The configuration has {unsupported}, which no published GPT-2 has.")
    positions = config.get("n_positions") or config["n_ctx"]
    return {**config, "n_positions": positions, "n_inner": config.get("n_inner") or 4 * config["n_embd"]}


def _infer(tensors):
    """The configuration of OpenAI's folder, in its hparams.json."""
    file = tensors.path.parent / "hparams.json"
    if "model/wte" not in tensors or not file.is_file():
        return None
    sizes = json.loads(file.read_text("utf-8"))
    return {"model_type": "gpt2", "vocab_size": sizes["n_vocab"], "n_positions": sizes["n_ctx"], **sizes}


OTHER_HEADS = {
    "score": "a classifier's head",
    "qa_outputs": "a head of another task",
    "classifier": "a head of another task",
    "multiple_choice_head": "a head of another task",
}

FAMILY = Family(
    backbone="Gpt2Backbone",
    model_type="gpt2",
    architecture="GPT2Model",
    prefix="transformer",
    tensorflow1_prefix="model",
    config={
        "vocabulary_size": "vocab_size",
        "num_layers": "n_layer",
        "num_heads": "n_head",
        "hidden_dim": "n_embd",
        "intermediate_dim": "n_inner",
        "dropout": "resid_pdrop",
        "attention_dropout": "attn_pdrop",
        "max_sequence_length": "n_positions",
        "activation": "activation_function",
        "layer_norm_epsilon": "layer_norm_epsilon",
    },
    defaults={
        "resid_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
    },
    huggingface=tuple((ours, theirs) for ours, theirs, _ in _LAYERS),
    tensorflow1=tuple((ours, theirs) for ours, _, theirs in _LAYERS),
    heads={"CausalLM": Head(architecture="GPT2LMHeadModel", huggingface=())},
    tied={"lm_head.weight": "wte.weight"},
    ignored={r"\.attn\.(masked_)?bias$": "the causal mask, a buffer"}
    | {rf"^{name}\.": reason for name, reason in OTHER_HEADS.items()},
    read_config=_read_config,
    write_config=lambda config: {**config, "embd_pdrop": config["resid_pdrop"]},
    infer_config=_infer,
    read_tensors=read_tensors,
    write_tensors=write_tensors,
)
