"""XLNet's checkpoint table: Hugging Face's and zihangdai/xlnet's names, over the shapes in which both store attention.

Both keep the five projections of attention as tensors (d, n, h), the output's too, whose d is what comes out. The
original stacks what is added to queries, and the segments' vectors, over the layers.
"""

import re
from functools import partial

from .bert import LEFTOVERS
from .derived import Derived
from .errors import CheckpointError
from .family import Family, Head

_ATTENTION = {"query": "q", "key": "k", "value": "v", "relative_dense": "r", "output_dense": "o"}
_STACKED = ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed")
_LAYERS = (
    # garden                                    Hugging Face                            TensorFlow 1
    ("embeddings/token_embedding", "word_embedding", "word_embedding/lookup_table"),
    ("embeddings/mask_embedding/embeddings", "mask_emb", "mask_emb/mask_emb"),
    *(
        (f"block_{{i}}/attention/{ours}/kernel", f"layer.{{i}}.rel_attn.{x}", f"layer_{{i}}/rel_attn/{x}/kernel")
        for ours, x in _ATTENTION.items()
    ),
    ("block_{i}/attention/biases/r_w_bias", "layer.{i}.rel_attn.r_w_bias", "layer_{i}/rel_attn/r_w_bias"),
    ("block_{i}/attention/biases/r_r_bias", "layer.{i}.rel_attn.r_r_bias", "layer_{i}/rel_attn/r_r_bias"),
    ("block_{i}/attention/r_s_bias", "layer.{i}.rel_attn.r_s_bias", "layer_{i}/rel_attn/r_s_bias"),
    ("block_{i}/attention/seg_embed", "layer.{i}.rel_attn.seg_embed", "layer_{i}/rel_attn/seg_embed"),
    ("block_{i}/attention_norm", "layer.{i}.rel_attn.layer_norm", "layer_{i}/rel_attn/LayerNorm"),
    ("block_{i}/feedforward/intermediate_dense", "layer.{i}.ff.layer_1", "layer_{i}/ff/layer_1"),
    ("block_{i}/feedforward/output_dense", "layer.{i}.ff.layer_2", "layer_{i}/ff/layer_2"),
    ("block_{i}/feedforward_norm", "layer.{i}.ff.layer_norm", "layer_{i}/ff/LayerNorm"),
)
_ANSWERS = (
    ("answers/start_logits", "start_logits.dense"),
    ("answers/end_dense", "end_logits.dense_0"),
    ("answers/end_norm", "end_logits.LayerNorm"),
    ("answers/end_logits", "end_logits.dense_1"),
    ("answers/null_dense", "answer_class.dense_0"),
    ("answers/null_logits", "answer_class.dense_1"),
)
_SUMMARY_OF_THE_ORIGINAL = ("pooler/dense", "model/sequnece_summary/summary")  # sic
_SUMMARY = (("pooler/dense", "sequence_summary.summary"), ("classifier/logits", "logits_proj"))


def _read_config(config):
    """The keys of today's configurations, from those, older ones and the original's `xlnet_config.json`."""
    size = {"vocab_size": config["n_token"]} if "n_token" in config else {}
    clamp = config["clamp_len"]
    return {**config, **size, "clamp_len": clamp if clamp and clamp > 0 else None}


def _write_config(config):
    width = config["d_model"] // config["n_head"]
    if config["d_head"] not in (None, width):
        raise CheckpointError(f"transformers' XLNet has heads of {width}, and this model of {config['d_head']}.")
    return {**config, "d_head": width, "clamp_len": config["clamp_len"] or -1, "bos_token_id": 1, "eos_token_id": 2}


def _infer(tensors):
    """The original's xlnet_config.json does not say whose configuration it is; the names do."""
    return {"model_type": "xlnet"} if any(name.endswith("transformer/mask_emb/mask_emb") for name in tensors) else None


def _read_tensors(tensors, config):
    """The tensors as dense layers have them, those of the original cut layer by layer."""
    original = any(name.endswith("/lookup_table") for name in tensors)
    computed, used = _read_original(tensors, config["n_layer"]) if original else ({}, [])
    for name in tensors:
        if match := re.search(r"rel_attn[./]([qkvro])(/kernel)?$", name):
            # A kernel of TensorFlow is (in, out), one of PyTorch (out, in); the output's is stored the other way round.
            computed[name] = partial(_matrix, tensors, name, transposed=(match[1] == "o") == original)
        elif name.endswith("mask_emb"):
            computed[name] = partial(_vector, tensors, name)
    return Derived(tensors, computed, used)


def _read_original(tensors, num_layers):
    """The stacked tensors layer by layer, and a classifier's logits without the name of what it was trained on."""
    computed, used = {}, []
    for name in tensors:
        scope, _, last = name.rpartition("/")
        if last in _STACKED:
            used.append(name)
            for i in range(num_layers):
                computed[f"{scope}/layer_{i}/rel_attn/{last}"] = partial(_layer, tensors, name, i)
        elif match := re.fullmatch(r"model/(?:classification|regression)_[^/]+(/logit/\w+)", name):
            used.append(name)
            computed[f"model/classification{match[1]}"] = partial(tensors.__getitem__, name)
    return computed, used


def _matrix(tensors, name, transposed):
    """(d, n, h) as (d, n * h), or that transposed."""
    tensor = tensors[name]
    matrix = tensor.reshape(tensor.shape[0], -1)
    return matrix.T if transposed else matrix


def _vector(tensors, name):
    return tensors[name].reshape(-1)


def _layer(tensors, name, i):
    """One layer's share; layers that share their biases (`untie_r` off) have one tensor (n, h) for all."""
    tensor = tensors[name]
    return tensor if tensor.ndim == 2 else tensor[i]


def _write_tensors(tensors, config):
    """The inverse for Hugging Face's files."""
    heads, width = config["n_head"], config["d_model"]
    written = {}
    for name, tensor in tensors.items():
        if match := re.search(r"rel_attn\.([qkvro])$", name):
            tensor = tensor if match[1] == "o" else tensor.T
            tensor = tensor.reshape(width, heads, -1)
        elif name.endswith("mask_emb"):
            tensor = tensor.reshape(1, 1, width)
        written[name] = tensor
    return written


FAMILY = Family(
    backbone="XlnetBackbone",
    model_type="xlnet",
    architecture="XLNetModel",
    prefix="transformer",
    tensorflow1_prefix="model/transformer",
    config={
        "vocabulary_size": "vocab_size",
        "num_layers": "n_layer",
        "num_heads": "n_head",
        "hidden_dim": "d_model",
        "intermediate_dim": "d_inner",
        "head_dim": "d_head",
        "dropout": "dropout",
        "attention_dropout": "dropatt",
        "activation": "ff_activation",
        "layer_norm_epsilon": "layer_norm_eps",
        "attention_type": "attn_type",
        "same_length": "same_length",
        "bi_data": "bi_data",
        "clamp_length": "clamp_len",
        "memory_length": "mem_len",
        "reuse_length": "reuse_len",
    },
    # What the original's file does not say are flags of its scripts.
    defaults={"clamp_len": -1, "ff_activation": "gelu", "d_head": None, "dropout": 0.1, "layer_norm_eps": 1e-12},
    huggingface=tuple((ours, huggingface) for ours, huggingface, _ in _LAYERS),
    tensorflow1=tuple((ours, tensorflow1) for ours, _, tensorflow1 in _LAYERS),
    heads={
        "CausalLM": Head(
            architecture="XLNetLMHeadModel",
            huggingface=(("language_model/bias", "lm_loss.bias"),),
            tensorflow1=(("language_model/bias", "model/lm_loss/bias"),),
        ),
        "BeamQuestionAnswering": Head(
            architecture="XLNetForQuestionAnswering",
            huggingface=_ANSWERS,
            tensorflow1=tuple((ours, theirs.replace(".", "/")) for ours, theirs in _ANSWERS),
        ),
        "MultipleChoice": Head(
            architecture="XLNetForMultipleChoice",
            huggingface=_SUMMARY,
            tensorflow1=(_SUMMARY_OF_THE_ORIGINAL, ("classifier/logits", "logits/dense")),
        ),
        "QuestionAnswering": Head(
            architecture="XLNetForQuestionAnsweringSimple",
            huggingface=(("question_answering/logits", "qa_outputs"),),
        ),
        "TextClassifier": Head(
            architecture="XLNetForSequenceClassification",
            huggingface=_SUMMARY,
            tensorflow1=(_SUMMARY_OF_THE_ORIGINAL, ("classifier/logits", "model/classification/logit")),
        ),
        "TokenClassifier": Head(
            architecture="XLNetForTokenClassification",
            huggingface=(("token_classifier/logits", "classifier"),),
        ),
    },
    tied={"lm_loss.weight": "word_embedding.weight"},
    ignored=LEFTOVERS
    | {
        r"lm_loss[./]bias$": "the bias of pretraining's predictions",
        r"^(sequence_summary|logits_proj|classifier|qa_outputs)\.": "a head of another task",
        r"^(model/(sequnece_summary|classification)|logits)/": "a head of another task",
        r"^(start_logits|end_logits|answer_class)[./]": "a head of another task",
    },
    read_config=_read_config,
    write_config=_write_config,
    infer_config=_infer,
    read_tensors=_read_tensors,
    write_tensors=_write_tensors,
)
