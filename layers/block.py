"""The Transformer block, from the parts passed in, and the tap that lets what is inside it out."""

from abc import ABCMeta, abstractmethod
from functools import partial

import keras
from keras import layers

from .norm import normalization as resolve


class Block(layers.Layer, metaclass=ABCMeta):
    """Attention, then a feed-forward network, each in a residual connection; a subclass says where the norm stands.

    Args:
        attention: a layer called as `attention(x, attention_mask=..., training=...)`; its `explicit` method is tapped.
        feedforward: a layer called as `feedforward(x)`.
        dropout: rate on the output of both before it is added.
        layer_norm_epsilon: epsilon of both norms.
        normalization: a name for `garden.layers.normalization`.

    Call arguments:
        x: float (b, t, d).
        attention_mask: bool, broadcast to (b, n, t, s), True where attention is allowed.
        **terms: further arguments of the attention.

    Returns:
        float (b, t, d).

    >>> import numpy as np
    >>> from garden.layers import Attention, FeedForward, PostNormBlock
    >>> block = PostNormBlock(Attention(num_heads=2), FeedForward(16))
    >>> block(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
    True
    """

    parts = ("attention", "feedforward")

    def __init__(
        self, attention, feedforward, dropout=0.0, layer_norm_epsilon=1e-12, normalization="layer_norm", **kwargs
    ):
        super().__init__(**kwargs)
        self.attention = attention
        self.feedforward = feedforward
        self.layer_norm_epsilon = layer_norm_epsilon
        self.normalization = normalization
        self.attention_norm = self._norm("attention_norm")
        self.feedforward_norm = self._norm("feedforward_norm")
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def _norm(self, name):
        return resolve(self.normalization, self.layer_norm_epsilon, dtype=self.dtype_policy, name=name)

    def build(self, input_shape):
        build_parts(input_shape, self.attention, self.attention_norm, self.feedforward, self.feedforward_norm)
        self.built = True

    @abstractmethod
    def residual(self, x, sublayer, norm, training=None):
        """x (b, t, d) -> x plus the sublayer's output, with the norm where the subclass wants it."""

    def sublayers(self, x, attend, training=None):
        """All sublayers in turn; `attend` is the attention, plain or tapped, as a function of one tensor."""
        x = self.residual(x, attend, self.attention_norm, training)
        return self.residual(x, self.feedforward, self.feedforward_norm, training)

    def call(self, x, attention_mask=None, training=None, **terms):
        def attend(h):
            return self.attention(h, attention_mask=attention_mask, training=training, **terms)

        return self.sublayers(x, attend, training)

    def explicit(self, x, attention_mask=None, training=None, **terms):
        """As `call`, but returns the dictionary of the attention's taps as well."""
        explicit = partial(self.attention.explicit, attention_mask=attention_mask, training=training, **terms)
        return self._both(x, explicit, training)

    def cached(self, x, cache, index, attention_mask=None, **terms):
        """One step of decoding: the output, and the attention's cache with it; see `Attention.cached`."""
        return self._both(
            x, partial(self.attention.cached, cache=cache, index=index, attention_mask=attention_mask, **terms)
        )

    def _both(self, x, attention, training=None):
        """The output, with what an attention returns beside its own."""
        beside = []

        def attend(h):
            output, other = attention(h)
            beside.append(other)
            return output

        return self.sublayers(x, attend, training), beside[0]

    def compute_output_spec(self, x, attention_mask=None, training=None, **terms):
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            **{part: keras.saving.serialize_keras_object(getattr(self, part)) for part in self.parts},
            "dropout": self.dropout.rate,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "normalization": self.normalization,
        }

    @classmethod
    def from_config(cls, config):
        parts = {part: keras.saving.deserialize_keras_object(config[part]) for part in cls.parts}
        return cls(**{**config, **parts})


def build_parts(shape, *parts):
    """Builds layers for inputs of one shape; those that were deserialized are built already."""
    for part in parts:
        if not part.built:
            part.build(shape)


@keras.saving.register_keras_serializable("garden")
class PostNormBlock(Block):
    __doc__ = (
        "norm(x + sublayer(x)), the block of Vaswani et al. 2017 and of BERT.\n\n" + Block.__doc__.split("\n", 2)[2]
    )

    def residual(self, x, sublayer, norm, training=None):
        return norm(x + self.dropout(sublayer(x), training=training))


@keras.saving.register_keras_serializable("garden")
class PreNormBlock(Block):
    __doc__ = "x + sublayer(norm(x)), the block of GPT-2 (Radford et al. 2019).\n\n" + Block.__doc__.split("\n", 2)[2]

    def residual(self, x, sublayer, norm, training=None):
        return x + self.dropout(sublayer(norm(x)), training=training)


class Tap(layers.Layer):
    """Runs a block the explicit way and returns what it saw; the block itself keeps returning one tensor everywhere.

    Keras wants a layer to return as many outputs at every call, so a tap is a layer around the block and not an
    argument of it. It owns no weights.

    Args:
        block: a built layer with an `explicit` method.

    Returns:
        The block's output, and its dictionary of taps.

    >>> import numpy as np
    >>> from garden.layers import Attention, FeedForward, PostNormBlock, Tap
    >>> block = PostNormBlock(Attention(num_heads=2), FeedForward(16))
    >>> x = block(np.ones((1, 3, 8), "float32"))
    >>> Tap(block)(x)[1]["attention_probs"].shape == (1, 2, 3, 3)
    True
    """

    def __init__(self, block, **kwargs):
        super().__init__(name=f"{block.name}_tap", dtype=block.dtype_policy, **kwargs)
        self.block = block
        self.built = True

    def call(self, x, attention_mask=None, training=None, **terms):
        return self.block.explicit(x, attention_mask=attention_mask, training=training, **terms)
