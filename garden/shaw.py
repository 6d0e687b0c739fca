"""Self-Attention with Relative Position Representations (Shaw et al. 2018)."""

import keras

from garden.layers import RelativeAttention, clipped_places
from garden.transformer import PostNormSeq2Seq
from garden.transformer_tokenizer import TransformerTokenizer


@keras.saving.register_keras_serializable("garden")
class ShawBackbone(PostNormSeq2Seq):
    """The Transformer with relative positions in the self-attention of both stacks and no absolute ones.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks of each stack.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        max_relative_position: k, beyond which a place counts as k places away: 16 in the paper's base model, 8 in its
            big one.
        share_relative_heads: whether the heads of a layer share its tables, as in the big model and in tensor2tensor.
        dropout, attention_dropout, activation_dropout, activation, num_decoder_layers, layer_norm_epsilon, dtype: as in
            `garden.TransformerBackbone`.

    Inputs, outputs:
        as of `garden.TransformerBackbone`; rows may be as long as memory allows.

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`.

    >>> import numpy as np, garden
    >>> model = garden.ShawBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> model.decoder_blocks[0].attention.relative_keys.shape == (2, 33, 4)
    True
    """

    tokenizer_cls = TransformerTokenizer

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        max_relative_position=16,
        share_relative_heads=False,
        dropout=0.1,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation="relu",
        num_decoder_layers=None,
        layer_norm_epsilon=1e-6,
        dtype=None,
        **kwargs,
    ):
        self.make_parts(dtype)
        super().__init__(dtype, **kwargs)

    def self_attention(self, dtype):
        return self.attention(
            dtype,
            "attention",
            RelativeAttention,
            max_relative_position=self.max_relative_position,
            share_heads=self.share_relative_heads,
        )

    def encoder_terms(self, distance):
        return {"places": clipped_places(distance, self.max_relative_position, self.token_embedding.compute_dtype)}

    decoder_terms = encoder_terms
