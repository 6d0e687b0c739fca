"""GPT's checkpoint table: what Hugging Face calls its layers and sizes. OpenAI's own arrays are given these names."""

from functools import partial

from .derived import Derived
from .errors import CheckpointError
from .family import Family, Head
from .gpt2 import FAMILY as GPT2
from .gpt2 import OTHER_HEADS, write_tensors
from .gpt2 import read_tensors as read_hugging_face

_BLOCK = ("attn.c_attn", "attn.c_proj", "ln_1", "mlp.c_fc", "mlp.c_proj", "ln_2")  # in the order of OpenAI's arrays
_OWN = {"embeddings/token_embedding": "tokens_embed", "embeddings/position_embedding": "positions_embed"}


def _read_config(config):
    # Hugging Face's code of this family calls the tanh form "gelu".
    activation = {"gelu": "gelu_new"}.get(config["afn"], config["afn"])
    positions = config.get("n_positions") or config["n_ctx"]
    return {**config, "afn": activation, "n_positions": positions, "n_inner": 4 * config["n_embd"]}


def _write_config(config):
    config = dict(config)
    if (width := config.pop("n_inner")) != 4 * config["n_embd"]:
        raise CheckpointError(
            f"transformers' GPT has feed-forward networks of 4 x hidden_dim, and this one of {width}."
        )
    activation = {"gelu_pytorch_tanh": "gelu"}.get(config["afn"], config["afn"])
    return {**config, "afn": activation, "embd_pdrop": config["resid_pdrop"]}


def _read_tensors(tensors, config):
    return read_hugging_face(_named(tensors) if "0" in tensors else tensors, config)


def _named(tensors):
    """OpenAI's numbered arrays under Hugging Face's names; a matrix is (1, in, out), as of a convolution."""
    variables = [f"{layer}.{variable}" for layer in _BLOCK for variable in ("weight", "bias")]
    names = ["positions_embed.weight", "tokens_embed.weight"]
    names += [f"h.{i}.{variable}" for i in range((len(tensors) - 2) // len(variables)) for variable in variables]
    computed = {name: partial(_squeezed, tensors, str(i)) for i, name in enumerate(names)}
    return Derived(tensors, computed, used=tensors.keys())


def _squeezed(tensors, name):
    array = tensors[name]
    return array[0] if array.ndim == 3 else array.reshape(-1) if len(array) == 1 else array


def _infer(tensors):
    """The configuration of OpenAI's arrays; its code has heads of width 64."""
    if tensors.kind != "numpy":
        return None
    (positions, width), (vocabulary, _) = tensors.shape("0"), tensors.shape("1")
    sizes = {"vocab_size": vocabulary, "n_positions": positions, "n_embd": width, "n_head": width // 64}
    return {"model_type": "openai-gpt", "n_layer": (len(tensors) - 2) // (2 * len(_BLOCK)), **sizes}


FAMILY = Family(
    backbone="GptBackbone",
    model_type="openai-gpt",
    architecture="OpenAIGPTModel",
    prefix="transformer",
    config={**GPT2.config, "activation": "afn"},
    defaults={"resid_pdrop": 0.1, "attn_pdrop": 0.1, "afn": "gelu", "layer_norm_epsilon": 1e-5},
    huggingface=tuple((ours, _OWN.get(ours, theirs)) for ours, theirs in GPT2.huggingface if ours != "final_norm"),
    heads={"CausalLM": Head(architecture="OpenAIGPTLMHeadModel", huggingface=())},
    tied={"lm_head.weight": "tokens_embed.weight"},
    ignored={r"\.attn\.bias$": "the causal mask, a buffer", r"^position_ids$": "a buffer, not a weight"}
    | {rf"^{name}\.": reason for name, reason in OTHER_HEADS.items()},
    read_config=_read_config,
    write_config=_write_config,
    infer_config=_infer,
    read_tensors=_read_tensors,
    write_tensors=write_tensors,
)
