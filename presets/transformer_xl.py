"""Transformer-XL's checkpoint table: Hugging Face's names, the original PyTorch code's and the original TensorFlow's.

The formats store query, key and value as one matrix, and tables of one width as one table. The original PyTorch code
counts the clusters of its softmax from the end, the other two from the front, as garden does.
"""

import re
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from .bert import LEFTOVERS
from .derived import Derived
from .errors import CheckpointError
from .family import Family, Head

_LAYERS = (
    # garden                                   Hugging Face                       TensorFlow 1
    ("embeddings/band_0", "word_emb.emb_layers.0", "adaptive_embed/cutoff_0/lookup_table"),
    ("embeddings/band_{i}", "word_emb.emb_layers.{i}", "adaptive_embed/cutoff_{i}/lookup_table"),
    ("embeddings/projection_{i}/kernel", "word_emb.emb_projs.{i}", "adaptive_embed/cutoff_{i}/proj_W"),
    ("biases/r_w_bias", "r_w_bias", "r_w_bias"),
    ("biases/r_r_bias", "r_r_bias", "r_r_bias"),
    ("block_{i}/attention/query", "layers.{i}.dec_attn.q_net", "layer_{i}/rel_attn/q"),
    ("block_{i}/attention/key", "layers.{i}.dec_attn.k_net", "layer_{i}/rel_attn/k"),
    ("block_{i}/attention/value", "layers.{i}.dec_attn.v_net", "layer_{i}/rel_attn/v"),
    ("block_{i}/attention/relative_dense", "layers.{i}.dec_attn.r_net", "layer_{i}/rel_attn/r"),
    ("block_{i}/attention/output_dense", "layers.{i}.dec_attn.o_net", "layer_{i}/rel_attn/o"),
    ("block_{i}/attention/biases/r_w_bias", "layers.{i}.dec_attn.r_w_bias", "layer_{i}/rel_attn/r_w_bias"),
    ("block_{i}/attention/biases/r_r_bias", "layers.{i}.dec_attn.r_r_bias", "layer_{i}/rel_attn/r_r_bias"),
    ("block_{i}/attention_norm", "layers.{i}.dec_attn.layer_norm", "layer_{i}/rel_attn/LayerNorm"),
    ("block_{i}/feedforward/intermediate_dense", "layers.{i}.pos_ff.CoreNet.0", "layer_{i}/ff/layer_1"),
    ("block_{i}/feedforward/output_dense", "layers.{i}.pos_ff.CoreNet.3", "layer_{i}/ff/layer_2"),
    ("block_{i}/feedforward_norm", "layers.{i}.pos_ff.layer_norm", "layer_{i}/ff/LayerNorm"),
)
_SOFTMAX = (
    ("language_model/clusters/kernel", "crit.cluster_weight", "cutoff_0/cluster_W"),
    ("language_model/clusters/bias", "crit.cluster_bias", "cutoff_0/cluster_b"),
    ("language_model/bias_{i}", "crit.out_layers.{i}.bias", "cutoff_{i}/b"),
    ("language_model/projection_{i}", "crit.out_projs.{i}", "cutoff_{i}/proj"),
)
_HUGGING_FACE = tuple((ours, theirs) for ours, theirs, _ in _LAYERS)
_SOFTMAX_HUGGING_FACE = tuple((ours, theirs) for ours, theirs, _ in _SOFTMAX)


def _read_config(config):
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


def _write_config(config):
    tied, count = config["tie_projs"], len(config["cutoffs"]) + 1
    heads = {"d_head": config["d_head"] or config["d_model"] // config["n_head"]}
    return {
        **{name: value for name, value in config.items() if name != "tie_r"},
        **heads,
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


def _read_tensors(tensors, config):
    """The tensors with the three projections apart, one table a band, and clusters in garden's order."""
    published = _read_config(config)
    edges = [0, *published["cutoffs"], published["vocab_size"]]
    bands = list(pairwise(edges)) if config["div_val"] == 1 and len(edges) > 2 else []
    if any(name.endswith("rel_attn/qkv/kernel") for name in tensors):
        return _read_tensorflow(tensors, config, bands)
    computed, used = {}, set()
    for name in tensors:
        if name.endswith("qkv_net.weight"):
            used.add(name)
            computed |= {name.replace("qkv_", f"{part}_"): partial(_third, tensors, name, i, 0) for i, part in _QKV}
        elif bands and name.endswith(_OF_ONE_TABLE):
            used.add(name)
            computed |= {
                name.replace(".0.", f".{i}."): partial(_rows, tensors, name, *band) for i, band in _each(bands)
            }
    original = "crit.cluster_weight" in tensors and not any(name.startswith("transformer.") for name in tensors)
    for name in ("crit.cluster_weight", "crit.cluster_bias") if original else ():
        computed[name] = lambda name=name: np.ascontiguousarray(tensors[name][::-1])
    _check_tied(tensors, published["tie_projs"])
    if not config["untie_r"]:
        used |= _copies_of_shared(tensors, computed)
    return Derived(tensors, computed, used=used - computed.keys())


_QKV = tuple(enumerate("qkv"))
_OF_ONE_TABLE = ("word_emb.emb_layers.0.weight", "crit.out_layers.0.weight", "crit.out_layers.0.bias")


def _each(bands):
    return enumerate(bands)


def _third(tensors, name, i, axis):
    return np.ascontiguousarray(np.split(tensors[name], 3, axis=axis)[i])


def _rows(tensors, name, first, last):
    return tensors[name][first:last]


def _check_tied(tensors, tie_projs):
    """What a file repeats of the softmax's projections must be what the embedding has."""
    for i, tied in enumerate(tie_projs):
        if tied and not _is_tied(tensors, i):
            raise CheckpointError(f"tie_projs[{i}] is true, but crit.out_projs.{i} is no copy: set it to false.")


def _copies_of_shared(tensors, computed):
    """The layers' copies of biases that they share, which must be copies; where one is all there is, it serves."""
    copies = set()
    for bias in ("r_w_bias", "r_r_bias"):
        held = sorted(name for name in tensors if name.endswith(f"dec_attn.{bias}"))
        shared = next((name for name in tensors if name in (bias, f"transformer.{bias}")), None)
        if not held:
            continue
        if any(not np.array_equal(tensors[shared or held[0]], tensors[name]) for name in held):
            raise CheckpointError(f"untie_r is false, but the layers' {bias} differ: set it to true.")
        if shared is None:
            computed[re.sub(r"layers\.\d+\.dec_attn\.", "", held[0])] = partial(tensors.__getitem__, held[0])
        copies |= set(held)
    return copies


def _read_tensorflow(tensors, config, bands):
    computed, used = {}, set()
    for name in tensors:
        if name.endswith("/qkv/kernel"):
            new = {name.replace("/qkv/", f"/{part}/"): partial(_third, tensors, name, i, 1) for i, part in _QKV}
        elif name.endswith(("transformer/r_w_bias", "transformer/r_r_bias")) and len(tensors.shape(name)) == 3:
            scope, bias = name.rsplit("/", 1)
            new = {
                f"{scope}/layer_{i}/rel_attn/{bias}": partial(_row, tensors, name, i) for i in range(config["n_layer"])
            }
        elif name.endswith("adaptive_embed/lookup_table"):
            rows = bands or [(0, None)]
            new = {
                name.replace("lookup", f"cutoff_{i}/lookup"): partial(_rows, tensors, name, *band)
                for i, band in enumerate(rows)
            }
        elif name.endswith("adaptive_embed/proj_W"):
            new = {name.replace("proj_W", "cutoff_0/proj_W"): partial(tensors.__getitem__, name)}
        elif name.endswith("adaptive_softmax/bias"):
            new = {name.replace("bias", "cutoff_0/b"): partial(tensors.__getitem__, name)}
        elif name.endswith(("/cluster_W", "/proj")):
            computed[name] = partial(_transposed, tensors, name)
            continue
        else:
            continue
        used.add(name)
        computed |= new
    first = "transformer/adaptive_embed/cutoff_0/"
    if config["div_val"] > 1 and f"{first}proj_W" not in tensors:  # trained without a projection between equal widths
        computed[f"{first}proj_W"] = lambda: np.eye(config["d_model"], dtype="float32")
    return Derived(tensors, computed, used=used)


def _row(tensors, name, i):
    return tensors[name][i]


def _transposed(tensors, name):
    return np.ascontiguousarray(tensors[name].T)


def _write_tensors(tensors, config):
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


def _infer(tensors):
    """The configuration that the tensors of an original file state: all but how far a token sees."""
    names = {name.removeprefix("transformer/"): name for name in tensors}
    tensorflow = "layer_0/rel_attn/qkv/kernel" in names
    if not tensorflow and not {"word_emb.emb_layers.0.weight", "layers.0.dec_attn.qkv_net.weight"} <= tensors.keys():
        return None

    def shapes(pattern):
        """The shapes of the tensors whose number the pattern captures, in its order."""
        found = [(int(match[1]), names[name]) for name in names if (match := re.fullmatch(pattern, name))]
        return [tensors.shape(name) for _, name in sorted(found)]

    if tensorflow:
        tables = shapes(r"adaptive_embed/(?:cutoff_)?(\d+)/lookup_table") or [tensors.shape(_LOOKUP)]
        biases = shapes(r"adaptive_softmax/cutoff_(\d+)/b")
        layers = shapes(r"layer_(\d+)/ff/layer_1/bias")
        width = tensors.shape(names["layer_0/rel_attn/qkv/kernel"])[0]
        tied = [f"adaptive_softmax/cutoff_{i}/proj" not in names for i in range(max(1, len(biases)))]
    else:
        tables = shapes(r"word_emb\.emb_layers\.(\d+)\.weight")
        biases = shapes(r"crit\.out_layers\.(\d+)\.bias")
        layers = shapes(r"layers\.(\d+)\.pos_ff\.CoreNet\.0\.bias")
        width = tensors.shape("layers.0.dec_attn.qkv_net.weight")[1]
        tied = [_is_tied(tensors, i) for i in range(max(1, len(tables)))]
    sizes = [shape[0] for shape in (tables if len(tables) > 1 else biases or tables)]
    heads = tensors.shape(names["r_w_bias"])
    told = len(sizes) > 1 or _CLUSTERS not in names
    return {
        "model_type": "transfo-xl",
        "n_token": sum(shape[0] for shape in tables),
        "n_layer": len(layers),
        "n_head": heads[-2],
        "d_head": heads[-1],
        "d_model": width,
        "d_embed": tables[0][1],
        "d_inner": layers[0][0],
        **({"cutoffs": list(accumulate(sizes))[:-1]} if told else {}),
        "div_val": tables[0][1] // tables[1][1] if len(tables) > 1 else 1,
        **({"tie_projs": tied} if told else {}),
        "untie_r": len(heads) == 3,
        "mem_len": 0,
        "clamp_len": -1,
        "same_length": False,
    }


_CLUSTERS = "crit.cluster_bias"
_LOOKUP = "transformer/adaptive_embed/lookup_table"


def _is_tied(tensors, i):
    """torch writes a shared matrix under both of its names."""
    own = f"crit.out_projs.{i}"
    twins = [scope + f"word_emb.emb_projs.{j}" for scope in ("", "transformer.") for j in (i, 0)]
    twin = next((name for name in twins if name in tensors), None)
    return own not in tensors or (twin is not None and np.array_equal(tensors[own], tensors[twin]))


FAMILY = Family(
    backbone="TransformerXlBackbone",
    model_type="transfo-xl",
    prefix="transformer",
    config={
        "vocabulary_size": "vocab_size",
        "num_layers": "n_layer",
        "num_heads": "n_head",
        "hidden_dim": "d_model",
        "intermediate_dim": "d_inner",
        "embedding_dim": "d_embed",
        "head_dim": "d_head",
        "cutoffs": "cutoffs",
        "div_val": "div_val",
        "tie_projections": "tie_projs",
        "dropout": "dropout",
        "attention_dropout": "dropatt",
        "memory_length": "mem_len",
        "clamp_length": "clamp_len",
        "same_length": "same_length",
        "share_biases": "tie_r",
        "pre_norm": "pre_lnorm",
        "activation": "hidden_act",
        "layer_norm_epsilon": "layer_norm_epsilon",
    },
    defaults={
        "vocab_size": 267735,
        "adaptive": True,
        "div_val": 4,
        "dropout": 0.1,
        "dropatt": 0.0,
        "mem_len": 1600,
        "clamp_len": 1000,
        "same_length": True,
        "untie_r": True,
        "pre_lnorm": False,
        "hidden_act": "relu",
        "layer_norm_epsilon": 1e-5,
        "proj_share_all_but_first": True,
    },
    huggingface=_HUGGING_FACE,
    fairseq=_HUGGING_FACE,  # the original code's state dict, in a `.pt` file
    tensorflow1=tuple((ours, theirs) for ours, _, theirs in _LAYERS),
    heads={
        "CausalLM": Head(
            architecture="TransfoXLLMHeadModel",
            huggingface=_SOFTMAX_HUGGING_FACE,
            fairseq=_SOFTMAX_HUGGING_FACE,
            tensorflow1=tuple((ours, f"transformer/adaptive_softmax/{theirs}") for ours, _, theirs in _SOFTMAX),
        )
    },
    tied={f"crit.out_layers.{i}.weight": f"word_emb.emb_layers.{i}.weight" for i in range(9)},
    ignored=LEFTOVERS
    | {
        r"^(crit\.|adaptive_softmax/)": "the softmax of the language model, or a copy of what it shares",
        r"^score\.": "a head of another task",
        r"pos_emb\.inv_freq$": "a buffer, not a weight",
    },
    architecture="TransfoXLModel",
    read_config=_read_config,
    write_config=_write_config,
    infer_config=_infer,
    read_tensors=_read_tensors,
    write_tensors=_write_tensors,
)
