"""The parts that every family is made of; Keras is the only thing they know.

Shapes name their axes with one alphabet: b batch, t query position, s key position, n head, h head width, d model
width, e embedding width, f feed-forward width, v vocabulary, r relative position, m memory, p prediction.
"""

if __name__ != "garden.layers":
    raise ImportError(f"import garden.layers, not {__name__}: a second copy would register every Keras class twice")

from .activations import activation
from .adaptive_embedding import AdaptiveEmbedding
from .adaptive_softmax import AdaptiveSoftmax
from .answers import AnswerHead
from .attention import Attention, merge_heads, split_heads
from .biased_embedding import BiasedEmbedding
from .block import Block, PostNormBlock, PreNormBlock, Tap
from .bottleneck import Bottleneck, BottleneckAttention, BottleneckBlock, NarrowBlock, StackedBlock
from .buckets import RelativeEmbedding, log_buckets
from .choices import FoldChoices, UnfoldChoices
from .crf import CRF
from .cross_block import CrossBlock, PostNormCrossBlock, PreNormCrossBlock
from .disentangled import DisentangledAttention
from .embeddings import Embeddings, TokenEmbeddings
from .factorized import FactorizedEmbedding, FactorizedEmbeddings
from .feedforward import FeedForward, GatedFeedForward
from .heads import ClassificationHead, ContextTokenHead, MaskedLMHead, Pooler, TokenHead, first_token, last_token
from .initializers import kernel_initializer, normal, truncated_normal, weights_to_be_loaded
from .language_model_head import LanguageModelHead
from .mask import attention_mask, causal_mask, cross_mask, distances, first_token_mask, last_token_mask, positions
from .mask_queries import MaskQueries
from .memory import Memory
from .neighbours import Convolution, ConvolutionBlock, neighbours
from .norm import NoNorm, normalization
from .pooling import Pooling, unit_length
from .position_bias import PositionBias, relative_buckets
from .recurrent_block import RecurrentPreNormBlock
from .relative import RelativeAttention, clipped_places
from .shift import block_distances, relative_scores, relative_shift
from .sinusoids import PositionSinusoids, position_sinusoids
from .tied_logits import TiedLogits
from .trigram import ProjectedEmbeddings, TrigramEmbeddings, trigram
from .two_stream import MaskEmbedding, TwoStreamAttention, TwoStreamEmbeddings, same_segment, stream_masks
from .wide_head import WideMaskedLMHead
from .xl import RelativeBiases, RelativePositions, XLAttention, relative_distances, sinusoids

__all__ = [
    "BiasedEmbedding",
    "position_sinusoids",
    "PositionSinusoids",
    "clipped_places",
    "RelativeAttention",
    "relative_buckets",
    "normal",
    "kernel_initializer",
    "cross_mask",
    "PreNormCrossBlock",
    "PostNormCrossBlock",
    "PositionBias",
    "GatedFeedForward",
    "CrossBlock",
    "CRF",
    "AdaptiveEmbedding",
    "AdaptiveSoftmax",
    "AnswerHead",
    "Attention",
    "Block",
    "Bottleneck",
    "BottleneckAttention",
    "BottleneckBlock",
    "ClassificationHead",
    "ContextTokenHead",
    "Convolution",
    "ConvolutionBlock",
    "DisentangledAttention",
    "Embeddings",
    "FactorizedEmbedding",
    "FactorizedEmbeddings",
    "FeedForward",
    "FoldChoices",
    "LanguageModelHead",
    "MaskEmbedding",
    "MaskQueries",
    "MaskedLMHead",
    "Memory",
    "NarrowBlock",
    "NoNorm",
    "Pooler",
    "Pooling",
    "PostNormBlock",
    "PreNormBlock",
    "ProjectedEmbeddings",
    "RecurrentPreNormBlock",
    "RelativeBiases",
    "RelativeEmbedding",
    "RelativePositions",
    "StackedBlock",
    "Tap",
    "TiedLogits",
    "TokenEmbeddings",
    "TokenHead",
    "TrigramEmbeddings",
    "TwoStreamAttention",
    "TwoStreamEmbeddings",
    "UnfoldChoices",
    "WideMaskedLMHead",
    "XLAttention",
    "activation",
    "attention_mask",
    "block_distances",
    "causal_mask",
    "distances",
    "first_token",
    "first_token_mask",
    "last_token",
    "last_token_mask",
    "log_buckets",
    "merge_heads",
    "neighbours",
    "normalization",
    "positions",
    "relative_distances",
    "relative_scores",
    "relative_shift",
    "same_segment",
    "sinusoids",
    "split_heads",
    "stream_masks",
    "trigram",
    "truncated_normal",
    "unit_length",
    "weights_to_be_loaded",
]
