"""A convolution over neighbouring tokens beside a block (DeBERTa 2's nGiE, He et al. 2021)."""

import keras
from keras import layers, ops

from .activations import activation as resolve
from .block import PostNormBlock, build_parts
from .initializers import truncated_normal


def neighbours(x, padding_mask, size):
    """Every position's vectors from the one `size // 2` places before it to that many behind it, side by side.

    A neighbour that belongs to another packed sequence is zero, and so is one beyond the ends of the row.

    Args:
        x: float (b, t, d).
        padding_mask: int (b, t).
        size: an odd number.

    Returns:
        float (b, t, size * d).

    >>> import numpy as np
    >>> from garden.layers import neighbours
    >>> np.array(neighbours(np.array([[[1.0], [2.0], [3.0]]]), np.array([[1, 1, 2]]), 3))[0].tolist()
    [[0.0, 1.0, 2.0], [1.0, 2.0, 0.0], [0.0, 3.0, 0.0]]
    """
    reach = size // 2
    sides = ops.pad(x, ((0, 0), (reach, reach), (0, 0)))
    numbers = ops.pad(padding_mask, ((0, 0), (reach, reach)))
    length, found = ops.shape(x)[1], []
    for place in range(size):
        same = ops.equal(numbers[:, place : place + length], padding_mask)
        found.append(sides[:, place : place + length] * ops.cast(same, x.dtype)[:, :, None])
    return ops.concatenate(found, axis=-1)


@keras.saving.register_keras_serializable("garden")
class Convolution(layers.Layer):
    """norm(y + activation(dense(neighbours of x))), zero at padding: what a convolution of x adds to another output.

    Args:
        size: tokens that are seen at once, an odd number.
        activation: a name for `garden.layers.activation`.
        dropout: rate in front of the activation.
        layer_norm_epsilon: epsilon of the norm.

    Call arguments:
        x: float (b, t, d), which is convolved.
        y: float (b, t, d), to which that is added.
        padding_mask: int (b, t).

    Returns:
        float (b, t, d).

    Raises:
        ValueError: `size` is even.

    >>> import numpy as np
    >>> from garden.layers import Convolution
    >>> x = np.ones((1, 3, 8), "float32")
    >>> Convolution(size=3)(x, x, np.ones((1, 3), "int32")).shape == (1, 3, 8)
    True
    """

    def __init__(self, size, activation="gelu_erf", dropout=0.0, layer_norm_epsilon=1e-12, **kwargs):
        super().__init__(**kwargs)
        if size % 2 == 0:
            raise ValueError(f"A convolution over {size} tokens has no middle: make the number odd.")
        self.size = size
        self.activation = resolve(activation)
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.norm = layers.LayerNormalization(epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, x_shape, y_shape=None, padding_mask_shape=None):
        width = x_shape[-1]
        self.dense = layers.Dense(width, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="dense")
        self.dense.build((*x_shape[:-1], self.size * width))
        self.norm.build(x_shape)
        self.built = True

    def call(self, x, y, padding_mask, training=None):
        token = ops.cast(padding_mask > 0, x.dtype)[:, :, None]
        convolved = self.dense(neighbours(x, padding_mask, self.size)) * token
        convolved = self.activation(self.dropout(convolved, training=training))
        return self.norm(y + convolved) * token


@keras.saving.register_keras_serializable("garden")
class ConvolutionBlock(PostNormBlock):
    """A `PostNormBlock` beside whose sublayers stands a `Convolution` of the same input.

    Args:
        attention, feedforward, dropout, layer_norm_epsilon, normalization: as of `Block`.
        convolution: a `Convolution`.

    Call arguments:
        x, attention_mask, **terms: as of `Block`.
        padding_mask: int (b, t).

    Returns:
        float (b, t, d).

    >>> import numpy as np
    >>> from garden.layers import Attention, Convolution, ConvolutionBlock, FeedForward
    >>> block = ConvolutionBlock(Attention(num_heads=2), FeedForward(16), convolution=Convolution(3))
    >>> block(np.ones((1, 3, 8), "float32"), padding_mask=np.ones((1, 3), "int32")).shape == (1, 3, 8)
    True
    """

    parts = ("attention", "feedforward", "convolution")

    def __init__(self, attention, feedforward, *args, convolution, **kwargs):
        super().__init__(attention, feedforward, *args, **kwargs)
        self.convolution = convolution

    def build(self, input_shape):
        build_parts(input_shape, self.convolution)
        super().build(input_shape)

    def call(self, x, attention_mask=None, training=None, padding_mask=None, **terms):
        y = super().call(x, attention_mask, training, **terms)
        return self.convolution(x, y, padding_mask, training=training)

    def explicit(self, x, attention_mask=None, training=None, padding_mask=None, **terms):
        y, seen = super().explicit(x, attention_mask, training, **terms)
        return self.convolution(x, y, padding_mask, training=training), seen
