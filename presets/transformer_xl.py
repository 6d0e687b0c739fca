"""Transformer-XL's checkpoint table: the names of Hugging Face and of the original PyTorch and TensorFlow code."""

from .bert import LEFTOVERS
from .family import Family, Head
from .transformer_xl_config import infer_config, read_config, write_config
from .transformer_xl_layouts import read_tensors, write_tensors

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
    read_config=read_config,
    write_config=write_config,
    infer_config=infer_config,
    read_tensors=read_tensors,
    write_tensors=write_tensors,
)
