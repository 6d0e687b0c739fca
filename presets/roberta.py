"""RoBERTa's checkpoint table: BERT's names in Hugging Face's files, fairseq's own, and position rows to cut off.

Both formats keep two things that the backbone has not. Their position tables begin with rows up to that of the padding
id; and Hugging Face adds a segment's vector to every token, zero in the published files, which is moved into the
positions.
"""

import re
from functools import partial

import numpy as np

from .bert import FAMILY as BERT
from .bert import LEFTOVERS
from .derived import Derived
from .family import Family, Head
from .heads import encoder_heads

_POSITIONS = "embeddings.position_embeddings.weight"
_SEGMENTS = "embeddings.token_type_embeddings.weight"
_FAIRSEQ_POSITIONS = "sentence_encoder.embed_positions.weight"

_HUGGING_FACE = tuple(row for row in BERT.huggingface if row[0] not in ("embeddings/segment_embedding", "pooler/dense"))
_FAIRSEQ = (
    ("embeddings/token_embedding", "sentence_encoder.embed_tokens"),
    ("embeddings/position_embedding", "sentence_encoder.embed_positions"),
    ("embeddings/norm", "sentence_encoder.emb_layer_norm"),
    ("block_{i}/attention/query", "sentence_encoder.layers.{i}.self_attn.q_proj"),
    ("block_{i}/attention/key", "sentence_encoder.layers.{i}.self_attn.k_proj"),
    ("block_{i}/attention/value", "sentence_encoder.layers.{i}.self_attn.v_proj"),
    ("block_{i}/attention/output_dense", "sentence_encoder.layers.{i}.self_attn.out_proj"),
    ("block_{i}/attention_norm", "sentence_encoder.layers.{i}.self_attn_layer_norm"),
    ("block_{i}/feedforward/intermediate_dense", "sentence_encoder.layers.{i}.fc1"),
    ("block_{i}/feedforward/output_dense", "sentence_encoder.layers.{i}.fc2"),
    ("block_{i}/feedforward_norm", "sentence_encoder.layers.{i}.final_layer_norm"),
)


def _read_config(config):
    return {**config, "max_position_embeddings": config["max_position_embeddings"] - _first_row(config)}


def _write_config(config):
    config = {"pad_token_id": 1, **config}
    rows = config["max_position_embeddings"] + _first_row(config)
    return {**config, "max_position_embeddings": rows, "type_vocab_size": 1, "bos_token_id": 0, "eos_token_id": 2}


def _first_row(config):
    return config["pad_token_id"] + 1


def _read_tensors(tensors, config):
    """The tensors with positions as the backbone has them."""
    if any("sentence_encoder." in name for name in tensors):
        return _read_fairseq(tensors, _first_row(config))
    positions = [name for name in tensors if name.endswith(_POSITIONS)]
    segments = [name for name in tensors if name.endswith(_SEGMENTS)]

    def behind_the_padding(name):
        table = tensors[name][_first_row(config) :]
        return table + tensors[segments[0]][0] if segments else table

    return Derived(tensors, {name: partial(behind_the_padding, name) for name in positions}, used=segments)


def _write_tensors(tensors, config):
    """The inverse for Hugging Face's files: zeros for the rows in front of the first token's, and for the segment."""
    name = next(name for name in tensors if name.endswith(_POSITIONS))
    table = tensors[name]
    padding = np.zeros((_first_row(config), table.shape[1]), table.dtype)
    segment = np.zeros((1, table.shape[1]), table.dtype)
    return {**tensors, name: np.concatenate([padding, table]), name.replace(_POSITIONS, _SEGMENTS): segment}


def _read_fairseq(tensors, first_row):
    """fairseq's names without the scope, `encoder.` or `decoder.` by age, and older spellings in the newer one."""
    computed = {}
    heads = {match[1] for name in tensors if (match := re.search(r"classification_heads\.(\w+)\.", name))}
    for name in tensors:
        bare = name.removeprefix("encoder.").removeprefix("decoder.")
        bare = bare.replace("sentence_encoder.layernorm_embedding", "sentence_encoder.emb_layer_norm")
        if len(heads) == 1:  # named by whoever trained it
            bare = bare.replace(f"classification_heads.{min(heads)}.", "classification_heads.")
        if bare == _FAIRSEQ_POSITIONS:
            computed[bare] = lambda name=name: tensors[name][first_row:]
        elif ".in_proj_" in bare:
            computed |= _in_three(tensors, name, bare)
        else:
            computed[bare] = partial(tensors.__getitem__, name)
    return Derived(tensors, computed, used=tensors.keys() - computed.keys())


def _in_three(tensors, name, bare):
    """Query, key and value, which fairseq before 2019 stored on top of each other."""
    parts = ("q_proj.", "k_proj.", "v_proj.")
    return {bare.replace("in_proj_", part): partial(_third, tensors, name, i) for i, part in enumerate(parts)}


def _third(tensors, name, i):
    return np.split(tensors[name], 3)[i]


def _infer(tensors):
    """The configuration in fairseq's training arguments, in Hugging Face's words."""
    settings = getattr(tensors, "settings", {})
    table = next((name for name in tensors if name.endswith("sentence_encoder.embed_tokens.weight")), None)
    if "encoder_layers" not in settings or table is None:
        return None
    positions = next(name for name in tensors if name.endswith(_FAIRSEQ_POSITIONS))
    pieces = (tensors.path.parent / "sentencepiece.bpe.model").exists()
    return {
        "model_type": "xlm-roberta" if pieces else "roberta",
        "vocab_size": tensors.shape(table)[0],
        "hidden_size": tensors.shape(table)[1],
        "num_hidden_layers": settings["encoder_layers"],
        "num_attention_heads": settings["encoder_attention_heads"],
        "intermediate_size": settings["encoder_ffn_embed_dim"],
        "max_position_embeddings": tensors.shape(positions)[0],
        "hidden_dropout_prob": settings.get("dropout", 0.1),
        "attention_probs_dropout_prob": settings.get("attention_dropout", 0.1),
        "hidden_act": settings.get("activation_fn", "gelu"),
        "layer_norm_eps": 1e-5,
    }


FAMILY = Family(
    backbone="RobertaBackbone",
    model_type="roberta",
    prefix="roberta",
    config={ours: theirs for ours, theirs in BERT.config.items() if ours != "num_segments"},
    defaults={**BERT.defaults, "pad_token_id": 1},
    huggingface=_HUGGING_FACE,
    fairseq=_FAIRSEQ,
    heads=encoder_heads("Roberta")
    | {
        "MaskedLM": Head(
            architecture="RobertaForMaskedLM",
            huggingface=(
                ("masked_lm/dense", "lm_head.dense"),
                ("masked_lm/norm", "lm_head.layer_norm"),
                ("masked_lm/bias", "lm_head.bias"),
            ),
            fairseq=(
                ("masked_lm/dense", "lm_head.dense"),
                ("masked_lm/norm", "lm_head.layer_norm"),
                ("masked_lm/bias", "lm_head.bias"),
            ),
        ),
        "MultipleChoice": Head(
            architecture="RobertaForMultipleChoice",
            huggingface=(("pooler/dense", "roberta.pooler.dense"), ("classifier/logits", "classifier")),
        ),
        "TextClassifier": Head(
            architecture="RobertaForSequenceClassification",
            huggingface=(("pooler/dense", "classifier.dense"), ("classifier/logits", "classifier.out_proj")),
            fairseq=(
                ("pooler/dense", "classification_heads.dense"),
                ("classifier/logits", "classification_heads.out_proj"),
            ),
        ),
    },
    tied={
        "lm_head.decoder.weight": "embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
        "lm_head.weight": "sentence_encoder.embed_tokens.weight",
    },
    ignored=LEFTOVERS
    | {
        r"^(lm_head|classifier|qa_outputs|classification_heads)\.": "a head of another task",
        r"^pooler\.": "pretraining has no pooler: transformers adds a random one",
        r"(^|\.)version$": "a buffer, not a weight",
    },
    read_config=_read_config,
    write_config=_write_config,
    infer_config=_infer,
    read_tensors=_read_tensors,
    write_tensors=_write_tensors,
)
