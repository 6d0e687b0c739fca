"""The parts that every family is made of; Keras is the only thing they know.

Shapes name their axes with one alphabet: b batch, t query position, s key position, n head, h head width, d model
width, e embedding width, f feed-forward width, v vocabulary, p prediction.
"""

if __name__ != "garden.layers":
    raise ImportError(f"import garden.layers, not {__name__}: a second copy would register every Keras class twice")

from .activations import activation
from .attention import Attention, merge_heads, split_heads
from .block import Block, PostNormBlock, PreNormBlock, Tap
from .choices import FoldChoices, UnfoldChoices
from .embeddings import Embeddings
from .feedforward import FeedForward
from .heads import ClassificationHead, MaskedLMHead, Pooler, TokenHead
from .initializers import truncated_normal, weights_to_be_loaded
from .mask import attention_mask, first_token_mask, positions
from .pooling import Pooling, unit_length

__all__ = [
    "Attention",
    "Block",
    "ClassificationHead",
    "Embeddings",
    "FeedForward",
    "FoldChoices",
    "MaskedLMHead",
    "Pooler",
    "Pooling",
    "PostNormBlock",
    "PreNormBlock",
    "Tap",
    "TokenHead",
    "UnfoldChoices",
    "activation",
    "attention_mask",
    "first_token_mask",
    "merge_heads",
    "positions",
    "split_heads",
    "truncated_normal",
    "unit_length",
    "weights_to_be_loaded",
]
