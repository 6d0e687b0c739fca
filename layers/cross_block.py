"""The block of an encoder-decoder's decoder: Block with an attention to the encoder's output in the middle."""

import keras

from .block import Block, PostNormBlock, PreNormBlock, build_parts


class CrossBlock(Block):
    """Self-attention, cross-attention, then a feed-forward network, each in a residual connection.

    Args:
        attention: the self-attention, as in `garden.layers.Block`.
        cross_attention: a `garden.layers.Attention`, called with a `source`.
        feedforward: a layer called as `feedforward(x)`.
        dropout: rate on the output of all three before it is added.
        layer_norm_epsilon: epsilon of the norms.
        normalization: a name for `garden.layers.normalization`.

    Call arguments:
        x: float (b, t, d).
        attention_mask: bool, broadcast to (b, n, t, t), True where self-attention is allowed.
        source: float (b, s, d), the encoder's output.
        source_mask: bool, broadcast to (b, n, t, s), True where cross-attention is allowed.
        **terms: further arguments of the self-attention.

    Returns:
        float (b, t, d).

    >>> import numpy as np
    >>> from garden.layers import Attention, FeedForward, PostNormCrossBlock
    >>> block = PostNormCrossBlock(Attention(2), Attention(2), FeedForward(16))
    >>> x, source = np.ones((1, 3, 8), "float32"), np.ones((1, 5, 8), "float32")
    >>> block(x, source=source).shape == (1, 3, 8)
    True
    """

    parts = ("attention", "cross_attention", "feedforward")

    def __init__(self, attention, cross_attention, feedforward, *args, **kwargs):
        super().__init__(attention, feedforward, *args, **kwargs)
        self.cross_attention = cross_attention
        self.cross_attention_norm = self._norm("cross_attention_norm")

    def build(self, input_shape):
        build_parts(input_shape, self.cross_attention, self.cross_attention_norm)
        super().build(input_shape)

    def sublayers(self, x, attend, training=None):
        """All sublayers in turn; `attend` are self-attention and cross-attention, each a function of one tensor."""
        for sublayer, norm in zip(attend, (self.attention_norm, self.cross_attention_norm), strict=True):
            x = self.residual(x, sublayer, norm, training)
        return self.residual(x, self.feedforward, self.feedforward_norm, training)

    def call(self, x, attention_mask=None, training=None, source=None, source_mask=None, **terms):
        def attend(h):
            return self.attention(h, attention_mask=attention_mask, training=training, **terms)

        def cross(h):
            return self.cross_attention(h, attention_mask=source_mask, training=training, source=source)

        return self.sublayers(x, (attend, cross), training)

    def explicit(self, x, attention_mask=None, training=None, source=None, source_mask=None, **terms):
        """As `call`, and the taps of both attentions, the names of the second with `cross_` in front."""
        seen = {}

        def attend(h):
            output, taps = self.attention.explicit(h, attention_mask, training, **terms)
            seen.update(taps)
            return output

        def cross(h):
            output, taps = self.cross_attention.explicit(h, source_mask, training, source)
            seen.update({f"cross_{name}": tensor for name, tensor in taps.items()})
            return output

        return self.sublayers(x, (attend, cross), training), seen

    def cached(self, x, cache, index, attention_mask=None, source_mask=None, **terms):
        """One step of decoding.

        Args:
            x: float (b, t, d).
            cache: the self-attention's cache as in `Attention.cached`, and what the cross-attention remembers of the
                source.
            index: int scalar, the place of x's first token.
            attention_mask, source_mask: as in a call.
            **terms: further arguments of the self-attention.

        Returns:
            The output (b, t, d), and the cache with x in it.
        """
        own, memory = cache

        def attend(h):
            nonlocal own
            output, own = self.attention.cached(h, own, index, attention_mask, **terms)
            return output

        def cross(h):
            return self.cross_attention.recall(h, memory, source_mask)

        return self.sublayers(x, (attend, cross)), (own, memory)


@keras.saving.register_keras_serializable("garden")
class PostNormCrossBlock(CrossBlock, PostNormBlock):
    __doc__ = (
        "norm(x + sublayer(x)), three times: the decoder's block of Vaswani et al. 2017.\n\n"
        + CrossBlock.__doc__.split("\n", 2)[2]
    )


@keras.saving.register_keras_serializable("garden")
class PreNormCrossBlock(CrossBlock, PreNormBlock):
    __doc__ = (
        "x + sublayer(norm(x)), three times: the decoder's block of T5 (Raffel et al. 2020).\n\n"
        + CrossBlock.__doc__.split("\n", 2)[2].replace("PostNorm", "PreNorm")
    )
