"""DeBERTa: decoding-enhanced BERT with disentangled attention (He et al. 2020), and its versions 2 and 3 (2021)."""

import keras

from garden.backbone import Backbone, Taps
from garden.deberta_tokenizers import DebertaTokenizer, DebertaV2Tokenizer
from garden.layers import (
    ContextTokenHead,
    Convolution,
    ConvolutionBlock,
    DisentangledAttention,
    FeedForward,
    MaskQueries,
    PostNormBlock,
    RelativeEmbedding,
    TokenEmbeddings,
    attention_mask,
)


class _Disentangled(Backbone):
    """The forward pass of all versions: tokens without positions, and blocks that share a table of relative ones."""

    input_names = ("token_ids", "padding_mask")
    longest_row = None
    classifier_pooler = {"activation": "gelu_erf", "dropout": 0.0}

    def assemble(self, inputs, taps):
        x, terms = self.encode(inputs, taps, self.blocks)
        return {"sequence_output": x}

    def encode(self, inputs, taps, blocks):
        """The output of the last of these blocks, and what all are called with beside their input."""
        padding_mask = inputs["padding_mask"]
        x = taps.state(self.embeddings(inputs["token_ids"], padding_mask))
        table, rows = self.relative_embedding(padding_mask)
        terms = {"attention_mask": attention_mask(padding_mask), "table": table, "rows": rows}
        for block in blocks:
            beside = {"padding_mask": padding_mask} if isinstance(block, ConvolutionBlock) else {}
            x = taps.through(block, x, **terms, **beside)
        return x, terms

    def mask_queries(self, **kwargs):
        """A new table of the absolute positions for the decoder of masks."""
        return MaskQueries(self.max_sequence_length, self.hidden_dim, **kwargs)

    def decode_masks(self, queries, inputs):
        """The enhanced mask decoder (He et al. 2020, section 3.2): the last block twice, its queries with positions.

        Args:
            queries: what `mask_queries` made.
            inputs: the inputs' dictionary.

        Returns:
            float (b, t, d), which the masked-LM head reads in place of the last block's output.
        """
        x, terms = self.encode(inputs, Taps(), self.blocks[:-1])
        query = queries(x, inputs["padding_mask"])
        for _ in range(2):
            query = self.blocks[-1](query, source=x, **terms)
        return query


@keras.saving.register_keras_serializable("garden")
class DebertaBackbone(_Disentangled):
    """The encoder of version 1: each distance up to `max_relative_positions` has a vector of its own.

    Nothing in the encoder knows an absolute position, so that rows may be longer than `max_sequence_length`.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        dropout: rate on the embeddings, on the relative positions, and on what attention and feed-forward add.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        max_sequence_length: tokens of the rows in pretraining.
        max_relative_positions: k, the distance from which on all are alike; None means `max_sequence_length`.
        pos_att_type: the terms of the attention's scores with a position; see `garden.layers.DisentangledAttention`.
        activation: `"gelu_erf"` in every published checkpoint.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d).

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`, or there is no such term.

    >>> import numpy as np, garden
    >>> model = garden.DebertaBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> ids = np.array([[1, 7, 8, 2]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = DebertaTokenizer

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=None,
        max_sequence_length=512,
        max_relative_positions=None,
        pos_att_type="c2p|p2c",
        activation="gelu_erf",
        layer_norm_epsilon=1e-7,
        dtype=None,
        **kwargs,
    ):
        self.embeddings = TokenEmbeddings(
            vocabulary_size, hidden_dim, dropout, layer_norm_epsilon, dtype=dtype, name="embeddings"
        )
        self.relative_embedding = RelativeEmbedding(
            max_relative_positions or max_sequence_length, hidden_dim, dtype=dtype, name="relative_embedding"
        )
        self.blocks = _blocks(
            num_layers, num_heads, intermediate_dim, activation, dropout, attention_dropout, layer_norm_epsilon, dtype,
            pos_att_type=pos_att_type, key_bias=False,
        )  # fmt: skip
        super().__init__(dtype, **kwargs)


@keras.saving.register_keras_serializable("garden")
class DebertaV2Backbone(_Disentangled):
    """The encoder of versions 2 and 3 and of mDeBERTa: distances in logarithmic buckets, normalised.

    Nothing in the encoder knows an absolute position, so that rows may be longer than `max_sequence_length`.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        dropout: rate on the embeddings, on the relative positions, and on what attention and feed-forward add.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        max_sequence_length: tokens of the rows in pretraining.
        max_relative_positions: m, which the buckets end at; None means `max_sequence_length`.
        bucket_size: B, buckets either way; None gives each distance up to m its own.
        pos_att_type: the terms of the attention's scores with a position; see `garden.layers.DisentangledAttention`.
        share_att_key: whether relative positions go through the projections of the tokens.
        conv_kernel_size: tokens that the convolution beside the first block sees, 3 in the large models of version 2;
            0 for none.
        conv_activation: its activation.
        activation: `"gelu_erf"` in every published checkpoint.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d).

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`, there is no such term, or `conv_kernel_size` is even.

    >>> import numpy as np, garden
    >>> model = garden.DebertaV2Backbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> ids = np.array([[1, 7, 8, 2]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = DebertaV2Tokenizer
    replaced_token_head = ContextTokenHead

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=None,
        max_sequence_length=512,
        max_relative_positions=None,
        bucket_size=256,
        pos_att_type="c2p|p2c",
        share_att_key=True,
        conv_kernel_size=0,
        conv_activation="gelu_erf",
        activation="gelu_erf",
        layer_norm_epsilon=1e-7,
        dtype=None,
        **kwargs,
    ):
        reach = max_relative_positions or max_sequence_length
        self.embeddings = TokenEmbeddings(
            vocabulary_size, hidden_dim, dropout, layer_norm_epsilon, dtype=dtype, name="embeddings"
        )
        self.relative_embedding = RelativeEmbedding(
            bucket_size or reach,
            hidden_dim,
            max_distance=reach if bucket_size else None,
            normalization="layer_norm",
            layer_norm_epsilon=layer_norm_epsilon,
            dtype=dtype,
            name="relative_embedding",
        )
        convolution = None
        if conv_kernel_size:
            convolution = Convolution(
                conv_kernel_size, conv_activation, dropout, layer_norm_epsilon, dtype=dtype, name="convolution"
            )
        self.blocks = _blocks(
            num_layers, num_heads, intermediate_dim, activation, dropout, attention_dropout, layer_norm_epsilon, dtype,
            convolution, pos_att_type=pos_att_type, share_att_key=share_att_key,
        )  # fmt: skip
        super().__init__(dtype, **kwargs)


def _blocks(
    num_layers, num_heads, intermediate_dim, activation, dropout, attention_dropout, epsilon, dtype,
    convolution=None, **settings,
):  # fmt: skip
    """The blocks, `block_0` to the last; a convolution stands beside the first."""
    attention_dropout = dropout if attention_dropout is None else attention_dropout
    blocks = []
    for i in range(num_layers):
        attention = DisentangledAttention(
            num_heads, attention_dropout, position_dropout=dropout, dtype=dtype, name="attention", **settings
        )
        feedforward = FeedForward(intermediate_dim, activation, dtype=dtype, name="feedforward")
        common = (attention, feedforward, dropout, epsilon)
        if convolution and i == 0:
            blocks.append(ConvolutionBlock(*common, convolution=convolution, dtype=dtype, name="block_0"))
        else:
            blocks.append(PostNormBlock(*common, dtype=dtype, name=f"block_{i}"))
    return blocks


DebertaTokenizer.backbone_cls = DebertaBackbone
DebertaV2Tokenizer.backbone_cls = DebertaV2Backbone
