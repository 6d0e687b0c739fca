"""Blocks that work narrower than the model is: down, a stacked block, up (Sun et al. 2020, section 3.1)."""

import keras
from keras import layers

from .attention import Attention, split_heads
from .block import PostNormBlock, build_parts
from .initializers import truncated_normal
from .norm import normalization as resolve


@keras.saving.register_keras_serializable("garden")
class Bottleneck(layers.Layer):
    """norm(dense(x)), from the width of the model to a narrower one.

    Args:
        bottleneck_dim: the width of the output.
        normalization: a name for `garden.layers.normalization`.
        layer_norm_epsilon: epsilon of the norm.

    Call arguments:
        x: float (b, t, d).

    Returns:
        float (b, t, bottleneck_dim).

    >>> import numpy as np
    >>> from garden.layers import Bottleneck
    >>> Bottleneck(4)(np.ones((1, 3, 8), "float32")).shape == (1, 3, 4)
    True
    """

    def __init__(self, bottleneck_dim, normalization="layer_norm", layer_norm_epsilon=1e-12, **kwargs):
        super().__init__(**kwargs)
        self.bottleneck_dim = bottleneck_dim
        self.dense = layers.Dense(
            bottleneck_dim, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="dense"
        )
        self.norm = resolve(normalization, layer_norm_epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, input_shape):
        self.dense.build(input_shape)
        self.norm.build(self.narrow(input_shape))
        self.built = True

    def narrow(self, shape):
        """The shape of the output for a shape of the input."""
        return (*shape[:-1], self.bottleneck_dim)

    def call(self, x):
        return self.norm(self.dense(x))


@keras.saving.register_keras_serializable("garden")
class BottleneckAttention(Attention):
    """Attention whose queries and keys share a bottleneck, and whose values are made from the whole input.

    Args:
        bottleneck: a `Bottleneck`.
        **kwargs: those of `Attention`.

    Call arguments, returns and ways through it are those of `Attention`.

    >>> import numpy as np
    >>> from garden.layers import Bottleneck, BottleneckAttention
    >>> attention = BottleneckAttention(Bottleneck(4), num_heads=2, hidden_dim=4)
    >>> attention(np.ones((1, 3, 8), "float32")).shape == (1, 3, 4)
    True
    """

    def __init__(self, bottleneck, **kwargs):
        super().__init__(**kwargs)
        self.bottleneck = bottleneck

    def build(self, input_shape):
        build_parts(input_shape, self.bottleneck)
        narrow = self.bottleneck.narrow(input_shape)
        self.build_dense(query=narrow, key=narrow, value=input_shape)

    def project(self, x, source=None):
        narrow = self.bottleneck(x)
        projected = self.query(narrow), self.key(narrow), self.value(x)
        return tuple(split_heads(part, self.num_heads) for part in projected)

    def get_config(self):
        return {
            **layers.Layer.get_config(self),
            "bottleneck": keras.saving.serialize_keras_object(self.bottleneck),
            "num_heads": self.num_heads,
            "dropout": self.dropout.rate,
            "hidden_dim": self.hidden_dim,
            "head_dim": self.head_dim,
            "use_bias": self.use_bias,
            "scale": self.scale,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "bottleneck": keras.saving.deserialize_keras_object(config["bottleneck"])})


@keras.saving.register_keras_serializable("garden")
class StackedBlock(PostNormBlock):
    """A PostNormBlock with more feed-forward networks before its own, each in a residual connection.

    Args:
        attention, feedforward: as in `PostNormBlock`.
        stack: the feed-forward networks that run before `feedforward`; nothing is dropped from what they add.
        **kwargs: those of `PostNormBlock`.

    Call arguments and returns are those of `PostNormBlock`.

    >>> import numpy as np
    >>> from garden.layers import Attention, FeedForward, StackedBlock
    >>> block = StackedBlock(Attention(num_heads=2), FeedForward(16), stack=[FeedForward(16, name="feedforward_0")])
    >>> block(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
    True
    """

    parts = ("attention", "feedforward", "stack")

    def __init__(self, attention, feedforward, stack=(), **kwargs):
        super().__init__(attention, feedforward, **kwargs)
        self.stack = list(stack)
        self.stack_norms = [self._norm(f"{part.name}_norm") for part in self.stack]

    def build(self, input_shape):
        build_parts(input_shape, *self.stack, *self.stack_norms)
        super().build(input_shape)

    def sublayers(self, x, attend, training=None):
        x = self.residual(x, attend, self.attention_norm, training)
        for feedforward, norm in zip(self.stack, self.stack_norms, strict=True):
            x = norm(x + feedforward(x))
        return self.residual(x, self.feedforward, self.feedforward_norm, training)


@keras.saving.register_keras_serializable("garden")
class BottleneckBlock(StackedBlock):
    """A StackedBlock inside a bottleneck, whose attention reads what stands before it.

    narrow = bottleneck(x); the stacked block on narrow, with attention(x); norm(x + dense(narrow)). Dropout is on the
    last sum only.

    Args:
        bottleneck: a `Bottleneck`.
        attention: from the width of x to that of the bottleneck.
        feedforward, stack, **kwargs: as in `StackedBlock`.

    Call arguments and returns are those of `PostNormBlock`.

    >>> import numpy as np
    >>> from garden.layers import Attention, Bottleneck, BottleneckBlock, FeedForward
    >>> block = BottleneckBlock(Bottleneck(4), Attention(num_heads=2, hidden_dim=4), FeedForward(16))
    >>> block(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
    True
    """

    parts = ("bottleneck", *StackedBlock.parts)

    def __init__(self, bottleneck, attention, feedforward, stack=(), **kwargs):
        super().__init__(attention, feedforward, stack, **kwargs)
        self.bottleneck = bottleneck
        self.output_norm = self._norm("output_norm")

    def build(self, input_shape):
        narrow = self.bottleneck.narrow(input_shape)
        self.output_dense = layers.Dense(
            input_shape[-1], kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="output_dense"
        )
        build_parts(input_shape, self.bottleneck, self.output_norm)
        build_parts(self.attended(input_shape, narrow), self.attention)
        build_parts(narrow, self.output_dense)
        super().build(narrow)

    def attended(self, x, narrow):
        """What attention reads, of the block's input and its bottleneck; likewise of their shapes."""
        return x

    def sublayers(self, x, attend, training=None):
        def attend_outside(narrow):
            return attend(self.attended(x, narrow))

        narrow = super().sublayers(self.bottleneck(x), attend_outside, training=False)
        return self.output_norm(x + self.dropout(self.output_dense(narrow), training=training))


@keras.saving.register_keras_serializable("garden")
class NarrowBlock(BottleneckBlock):
    """A BottleneckBlock whose attention reads the bottleneck too.

    Args, call arguments and returns are those of `BottleneckBlock`.

    >>> import numpy as np
    >>> from garden.layers import Attention, Bottleneck, FeedForward, NarrowBlock
    >>> block = NarrowBlock(Bottleneck(4), Attention(num_heads=2), FeedForward(16))
    >>> block(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
    True
    """

    def attended(self, x, narrow):
        return narrow
