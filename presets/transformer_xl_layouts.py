"""How three programs store a Transformer-XL, brought to the form of the name table and back.

All store query, key and value as one matrix, and several bands of one width as one table. The original PyTorch code
counts the clusters of its softmax from the end, the other two from the front, as garden does.
"""

import re
from functools import partial
from itertools import pairwise

import numpy as np

from .derived import Derived
from .errors import CheckpointError
from .transformer_xl_config import is_tied, read_config

_QKV = tuple(enumerate("qkv"))
_OF_ONE_TABLE = ("word_emb.emb_layers.0.weight", "crit.out_layers.0.weight", "crit.out_layers.0.bias")
_CLUSTERS = ("crit.cluster_weight", "crit.cluster_bias")


def read_tensors(tensors, config):
    """The tensors of any of the three, apart where the name table wants them apart, clusters in garden's order."""
    published = read_config(config)
    edges = [0, *published["cutoffs"], published["vocab_size"]]
    bands = list(pairwise(edges)) if config["div_val"] == 1 and len(edges) > 2 else []
    if any(name.endswith("rel_attn/qkv/kernel") for name in tensors):
        return _read_tensorflow(tensors, config, bands)
    computed, used = {}, set()
    for name in tensors:
        if name.endswith("qkv_net.weight"):
            computed |= {name.replace("qkv_", f"{part}_"): partial(_third, tensors, name, i, 0) for i, part in _QKV}
            used.add(name)
        elif bands and name.endswith(_OF_ONE_TABLE):
            computed |= {
                name.replace(".0.", f".{i}."): partial(_rows, tensors, name, *band) for i, band in enumerate(bands)
            }
            used.add(name)
    if _CLUSTERS[0] in tensors and not any(name.startswith("transformer.") for name in tensors):  # the original's
        computed |= {name: partial(_reversed, tensors, name) for name in _CLUSTERS}
    _check_tied(tensors, published["tie_projs"])
    if not config["untie_r"]:
        used |= _copies_of_shared(tensors, computed)
    return Derived(tensors, computed, used=used - computed.keys())


def write_tensors(tensors, config):
    """The inverse, for Hugging Face's files."""
    written = dict(tensors)
    for name in tensors:
        if name.endswith("dec_attn.q_net.weight"):
            parts = [written.pop(name.replace("q_net", f"{part}_net")) for part in "qkv"]
            written[name.replace("q_net", "qkv_net")] = np.concatenate(parts)
        elif config["div_val"] == 1 and name.endswith(_OF_ONE_TABLE):
            names = [name.replace(".0.", f".{i}.") for i in range(len(config["cutoffs"]) + 1)]
            written[name] = np.concatenate([written.pop(band) for band in names])
    return written


def _third(tensors, name, i, axis):
    return np.ascontiguousarray(np.split(tensors[name], 3, axis=axis)[i])


def _rows(tensors, name, first, last):
    return tensors[name][first:last]


def _row(tensors, name, i):
    return tensors[name][i]


def _reversed(tensors, name):
    return np.ascontiguousarray(tensors[name][::-1])


def _transposed(tensors, name):
    return np.ascontiguousarray(tensors[name].T)


def _check_tied(tensors, tie_projs):
    """What a file repeats of the softmax's projections must be what the embedding has."""
    for i, tied in enumerate(tie_projs):
        if tied and not is_tied(tensors, i):
            raise CheckpointError(f"tie_projs[{i}] is true, but crit.out_projs.{i} is no copy: set it to false.")


def _copies_of_shared(tensors, computed):
    """The layers' copies of biases that they share, which must be copies; where they are all there is, one serves."""
    copies = set()
    for bias in ("r_w_bias", "r_r_bias"):
        held = sorted(name for name in tensors if name.endswith(f"dec_attn.{bias}"))
        if not held:
            continue
        shared = next((name for name in tensors if name in (bias, f"transformer.{bias}")), held[0])
        if any(not np.array_equal(tensors[shared], tensors[name]) for name in held):
            raise CheckpointError(f"untie_r is false, but the layers' {bias} differ: set it to true.")
        if shared in held:
            computed[re.sub(r"layers\.\d+\.dec_attn\.", "", shared)] = partial(tensors.__getitem__, shared)
        copies |= set(held)
    return copies


def _read_tensorflow(tensors, config, bands):
    computed, used = {}, set()
    for name in tensors:
        made = _from_tensorflow(tensors, name, config["n_layer"], bands)
        used |= {name} if made and name not in made else set()
        computed |= made
    projection = "transformer/adaptive_embed/cutoff_0/proj_W"
    if config["div_val"] > 1 and projection not in tensors:  # trained without one between equal widths
        computed[projection] = partial(np.eye, config["d_model"], dtype="float32")
    return Derived(tensors, computed, used=used)


def _from_tensorflow(tensors, name, num_layers, bands):
    """What is made of one variable, by name; nothing if it is as the name table wants it."""
    whole = partial(tensors.__getitem__, name)
    scope, _, leaf = name.rpartition("/")
    if name.endswith("/qkv/kernel"):
        return {name.replace("/qkv/", f"/{part}/"): partial(_third, tensors, name, i, 1) for i, part in _QKV}
    if leaf in ("r_w_bias", "r_r_bias") and len(tensors.shape(name)) == 3:
        return {f"{scope}/layer_{i}/rel_attn/{leaf}": partial(_row, tensors, name, i) for i in range(num_layers)}
    if name.endswith("adaptive_embed/lookup_table"):
        rows = bands or [(0, None)]
        return {f"{scope}/cutoff_{i}/{leaf}": partial(_rows, tensors, name, *band) for i, band in enumerate(rows)}
    if name.endswith("adaptive_embed/proj_W"):
        return {f"{scope}/cutoff_0/proj_W": whole}
    if name.endswith("adaptive_softmax/bias"):
        return {f"{scope}/cutoff_0/b": whole}
    return {name: partial(_transposed, tensors, name)} if leaf in ("cluster_W", "proj") else {}
