"""Transformer-XL's published configurations, and what the tensors of a file without one tell."""

import re
from itertools import accumulate

import numpy as np

from .errors import CheckpointError


def read_config(config):
    """The published configuration under garden's meanings: None for no clamp, no memory; biases shared, not untied."""
    if config["adaptive"] and "cutoffs" not in config:
        raise CheckpointError('One table serves several bands: say where they begin, in a config.json with "cutoffs".')
    cutoffs = list(config["cutoffs"]) if config["adaptive"] else []
    shares = [False] + [config["proj_share_all_but_first"]] * len(cutoffs)
    return {
        **config,
        "vocab_size": config.get("n_token", config["vocab_size"]),  # older files have the original's name
        "cutoffs": cutoffs,
        "tie_projs": list(config.get("tie_projs") or shares)[: len(cutoffs) + 1],
        "clamp_len": config["clamp_len"] if config["clamp_len"] > 0 else None,
        "mem_len": config["mem_len"] or None,
        "tie_r": not config["untie_r"],
    }


def write_config(config):
    """The inverse."""
    tied, count = config["tie_projs"], len(config["cutoffs"]) + 1
    return {
        **{name: value for name, value in config.items() if name != "tie_r"},
        "d_head": config["d_head"] or config["d_model"] // config["n_head"],
        "d_embed": config["d_embed"] or config["d_model"],
        "cutoffs": list(config["cutoffs"]),
        "adaptive": bool(config["cutoffs"]),
        "tie_projs": [tied] * count if isinstance(tied, bool) else list(tied),
        "clamp_len": config["clamp_len"] or -1,
        "mem_len": config["mem_len"] or 0,
        "untie_r": not config["tie_r"],
        "attn_type": 0,
        "eos_token_id": 0,
    }


def infer_config(tensors):
    """The configuration that the tensors of an original file state: all but how far a token sees; None for others."""
    names = {name.removeprefix("transformer/"): name for name in tensors}
    found = _sizes_of_tensorflow(tensors, names) or _sizes_of_torch(tensors, names)
    if not found:
        return None
    tables, biases, layers, width, tied = found
    heads = tensors.shape(names["r_w_bias"])
    sizes = [shape[0] for shape in (tables if len(tables) > 1 else biases or tables)]
    bands = {"cutoffs": list(accumulate(sizes))[:-1], "tie_projs": tied}
    hidden = len(sizes) == 1 and "crit.cluster_bias" in names  # there are bands, and no tensor tells where they begin
    return {
        "model_type": "transfo-xl",
        "n_token": sum(shape[0] for shape in tables),
        "n_layer": len(layers),
        "n_head": heads[-2],
        "d_head": heads[-1],
        "d_model": width,
        "d_embed": tables[0][1],
        "d_inner": layers[0][0],
        "div_val": tables[0][1] // tables[1][1] if len(tables) > 1 else 1,
        "untie_r": len(heads) == 3,
        "mem_len": 0,
        "clamp_len": -1,
        "same_length": False,
        **({} if hidden else bands),
    }


def _sizes_of_tensorflow(tensors, names):
    """Shapes of tables, of the softmax's biases and of the blocks' first, the width, and which projections are tied."""
    if "layer_0/rel_attn/qkv/kernel" not in names:
        return None
    tables = _shapes(tensors, names, r"adaptive_embed/cutoff_(\d+)/lookup_table")
    biases = _shapes(tensors, names, r"adaptive_softmax/cutoff_(\d+)/b")
    return (
        tables or [tensors.shape(names["adaptive_embed/lookup_table"])],
        biases,
        _shapes(tensors, names, r"layer_(\d+)/ff/layer_1/bias"),
        tensors.shape(names["layer_0/rel_attn/qkv/kernel"])[0],
        [f"adaptive_softmax/cutoff_{i}/proj" not in names for i in range(max(1, len(biases)))],
    )


def _sizes_of_torch(tensors, names):
    """Likewise."""
    if not {"word_emb.emb_layers.0.weight", "layers.0.dec_attn.qkv_net.weight"} <= names.keys():
        return None
    tables = _shapes(tensors, names, r"word_emb\.emb_layers\.(\d+)\.weight")
    return (
        tables,
        _shapes(tensors, names, r"crit\.out_layers\.(\d+)\.bias"),
        _shapes(tensors, names, r"layers\.(\d+)\.pos_ff\.CoreNet\.0\.bias"),
        tensors.shape("layers.0.dec_attn.qkv_net.weight")[1],
        [is_tied(tensors, i) for i in range(len(tables))],
    )


def _shapes(tensors, names, pattern):
    """The shapes of the tensors whose number the pattern captures, in its order."""
    found = [(int(match[1]), names[name]) for name in names if (match := re.fullmatch(pattern, name))]
    return [tensors.shape(name) for _, name in sorted(found)]


def is_tied(tensors, i: int) -> bool:
    """Whether the softmax projects to band i as the embedding does; torch writes a shared matrix under both names.

    >>> import numpy as np
    >>> from garden.presets.transformer_xl_config import is_tied
    >>> is_tied({"crit.out_projs.1": np.ones(2), "word_emb.emb_projs.1": np.ones(2)}, 1), is_tied({}, 0)
    (True, True)
    """
    own = f"crit.out_projs.{i}"
    twins = [scope + f"word_emb.emb_projs.{j}" for scope in ("", "transformer.") for j in (i, 0)]
    twin = next((name for name in twins if name in tensors), None)
    return own not in tensors or (twin is not None and np.array_equal(tensors[own], tensors[twin]))
