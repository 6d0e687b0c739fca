"""The position-wise feed-forward network."""

import keras
from keras import layers

from .activations import activation as resolve
from .initializers import truncated_normal


@keras.saving.register_keras_serializable("garden")
class FeedForward(layers.Layer):
    """dense(f), activation, dense(d), at every position alike (Vaswani et al. 2017, section 3.3).

    Args:
        intermediate_dim: f.
        activation: a name for `garden.layers.activation`.
        dropout: rate on what the activation gives.

    Call arguments:
        x: float (b, t, d).

    Returns:
        float (b, t, d).

    >>> import numpy as np
    >>> from garden.layers import FeedForward
    >>> FeedForward(16)(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
    True
    """

    def __init__(self, intermediate_dim, activation="gelu_erf", dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.activation = resolve(activation)
        self.intermediate_dense = layers.Dense(
            intermediate_dim, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="intermediate_dense"
        )
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape):
        self.output_dense = layers.Dense(
            input_shape[-1], kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="output_dense"
        )
        self.intermediate_dense.build(input_shape)
        self.output_dense.build((*input_shape[:-1], self.intermediate_dense.units))
        self.built = True

    def call(self, x, training=None):
        x = self.activation(self.intermediate_dense(x))
        return self.output_dense(self.dropout(x, training=training))
