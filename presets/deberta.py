"""DeBERTa's checkpoint table: BERT's names around an attention with one matrix for queries, keys and values.

The rows of that matrix are ordered by head: its query, its key, its value. The absolute positions of the pretraining
belong to the masked-LM head.
"""

import re
from functools import partial

import numpy as np

from .bert import FAMILY as BERT
from .bert import LEFTOVERS
from .derived import Derived
from .errors import CheckpointError
from .family import Family, Head
from .heads import encoder_heads

_SELF = "encoder.layer.{i}.attention.self"
_FUSED = r"attention\.self\.in_proj\.weight$"
_PARTS = ("query", "key", "value")

# What every version has: BERT's rows but for positions, segments, attention and pooler.
COMMON = (
    *(
        row
        for row in BERT.huggingface
        if not re.search(r"(position|segment)_embedding|attention/(query|key|value)|^pooler", row[0])
    ),
    ("relative_embedding/table", "encoder.rel_embeddings"),
)
_LAYERS = (
    *COMMON,
    ("block_{i}/attention/query/kernel", f"{_SELF}.query.weight"),
    ("block_{i}/attention/query/bias", f"{_SELF}.q_bias"),
    ("block_{i}/attention/key/kernel", f"{_SELF}.key.weight"),
    ("block_{i}/attention/value/kernel", f"{_SELF}.value.weight"),
    ("block_{i}/attention/value/bias", f"{_SELF}.v_bias"),
    ("block_{i}/attention/position_key", f"{_SELF}.pos_proj"),
    ("block_{i}/attention/position_query", f"{_SELF}.pos_q_proj"),
)


def read_config(config):
    """Published keys in the words of the table, or a refusal of what no release has."""
    fixed = {"relative_attention": True, "position_biased_input": False, "type_vocab_size": 0, "talking_head": False}
    odd = {name: config[name] for name, value in fixed.items() if config.get(name, value) != value}
    if config.get("embedding_size", config["hidden_size"]) != config["hidden_size"]:
        odd["embedding_size"] = config["embedding_size"]
    if odd:
        raise CheckpointError(f"garden's DeBERTa is that of the releases, and this one has {odd}.")
    terms, reach = config["pos_att_type"], config["max_relative_positions"]
    terms = terms if isinstance(terms, str) else "|".join(terms or ())
    return {
        **config,
        "pos_att_type": terms.lower().replace(" ", ""),
        "max_relative_positions": reach if reach > 0 else None,
    }


def write_config(config):
    """Its inverse."""
    return {
        **config,
        "relative_attention": True,
        "position_biased_input": False,
        "type_vocab_size": 0,
        "max_relative_positions": config["max_relative_positions"] or -1,
    }


def _read_tensors(tensors, config):
    fused = [name for name in tensors if re.search(_FUSED, name)]

    def part(name, i):
        matrix = tensors[name]
        by_head = matrix.reshape(config["num_attention_heads"], len(_PARTS), -1, matrix.shape[-1])
        return by_head[:, i].reshape(-1, matrix.shape[-1])

    computed = {
        name.replace("in_proj", part_name): partial(part, name, i)
        for name in fused
        for i, part_name in enumerate(_PARTS)
    }
    return Derived(tensors, computed, used=fused)


def _write_tensors(tensors, config):
    written = dict(tensors)
    for name in [name for name in tensors if name.endswith("attention.self.query.weight")]:
        parts = [written.pop(name.replace("query.weight", f"{part}.weight")) for part in _PARTS]
        by_head = [part.reshape(config["num_attention_heads"], 1, -1, part.shape[-1]) for part in parts]
        fused = np.concatenate(by_head, axis=1).reshape(-1, parts[0].shape[-1])
        written[name.replace("query", "in_proj")] = fused
    return written


# Microsoft's files have the head's second spelling; transformers' own class has the first, and reads no other.
_MASKED_LM = (
    ("masked_lm/dense", "cls.predictions.transform.dense"),
    ("masked_lm/norm", "cls.predictions.transform.LayerNorm"),
    ("masked_lm/bias", "cls.predictions.bias"),
    ("masked_lm/dense", "lm_predictions.lm_head.dense"),
    ("masked_lm/norm", "lm_predictions.lm_head.LayerNorm"),
    ("masked_lm/bias", "lm_predictions.lm_head.bias"),
    ("mask_queries/position_embedding", "deberta.embeddings.position_embeddings"),
    ("mask_queries/position_embedding", "bert.embeddings.position_embeddings"),
)
POOLED = (("pooler/dense", "pooler.dense"), ("classifier/logits", "classifier"))


def heads(architecture):
    """The heads of one version, by the beginning of its classes' names in transformers."""
    return encoder_heads(architecture) | {
        "MaskedLM": Head(architecture=f"{architecture}ForMaskedLM", huggingface=_MASKED_LM),
        "MultipleChoice": Head(architecture=f"{architecture}ForMultipleChoice", huggingface=POOLED),
        "TextClassifier": Head(architecture=f"{architecture}ForSequenceClassification", huggingface=POOLED),
    }


FAMILY = Family(
    backbone="DebertaBackbone",
    model_type="deberta",
    prefix="deberta",
    other_prefixes=("bert",),
    config={ours: theirs for ours, theirs in BERT.config.items() if ours != "num_segments"}
    | {"max_relative_positions": "max_relative_positions", "pos_att_type": "pos_att_type"},
    # transformers' own defaults are another model's; a file that is silent means a release.
    defaults={
        **{key: value for key, value in BERT.defaults.items() if key != "type_vocab_size"},
        "layer_norm_eps": 1e-7,
        "max_relative_positions": -1,
        "pos_att_type": "c2p|p2c",
    },
    huggingface=_LAYERS,
    # transformers has this head for version 2 only.
    heads=heads("Deberta") | {"MultipleChoice": Head(architecture="", huggingface=POOLED)},
    tied={
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    ignored=LEFTOVERS
    | {
        r"^embeddings\.position_embeddings\.weight$": "absolute positions, which only the decoder of masks reads",
        r"^(cls|lm_predictions|pooler|classifier|qa_outputs|logits)\.": "a head of another task",
    },
    read_config=read_config,
    write_config=write_config,
    read_tensors=_read_tensors,
    write_tensors=_write_tensors,
)
