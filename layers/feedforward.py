"""The position-wise feed-forward network, plain and gated."""

import keras
from keras import layers

from .activations import activation as resolve
from .initializers import kernel_initializer


@keras.saving.register_keras_serializable("garden")
class FeedForward(layers.Layer):
    """dense(f), activation, dense(d), at every position alike (Vaswani et al. 2017, section 3.3).

    Args:
        intermediate_dim: f.
        activation: a name for `garden.layers.activation`.
        dropout: rate on what the activation gives.
        use_bias: whether the dense layers have one.
        initializer: a name for `garden.layers.kernel_initializer`.

    Call arguments:
        x: float (b, t, d).

    Returns:
        float (b, t, d).

    >>> import numpy as np
    >>> from garden.layers import FeedForward
    >>> FeedForward(16)(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
    True
    """

    def __init__(
        self,
        intermediate_dim,
        activation="gelu_erf",
        dropout=0.0,
        use_bias=True,
        initializer="truncated_normal",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.activation = resolve(activation)
        self.use_bias = use_bias
        self.initializer = initializer
        self.intermediate_dense = self._dense(intermediate_dim, "intermediate_dense")
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def _dense(self, units, name):
        return layers.Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=kernel_initializer(self.initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape):
        self.output_dense = self._dense(input_shape[-1], "output_dense")
        self.intermediate_dense.build(input_shape)
        self.output_dense.build((*input_shape[:-1], self.intermediate_dense.units))
        self.built = True

    def call(self, x, training=None):
        return self.output_dense(self.dropout(self.intermediate(x), training=training))

    def intermediate(self, x):
        """What stands between the two layers, float (b, t, f)."""
        return self.activation(self.intermediate_dense(x))


@keras.saving.register_keras_serializable("garden")
class GatedFeedForward(FeedForward):
    """activation(dense(f)) times another dense(f), then dense(d): GEGLU with the activation GELU (Shazeer 2020).

    Args:
        intermediate_dim, activation, dropout, use_bias, initializer: as in `FeedForward`.

    Call arguments:
        x: float (b, t, d).

    Returns:
        float (b, t, d).

    >>> import numpy as np
    >>> from garden.layers import GatedFeedForward
    >>> layer = GatedFeedForward(16, use_bias=False)
    >>> layer(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8), layer.count_params()
    (True, 384)
    """

    def build(self, input_shape):
        self.gate_dense = self._dense(self.intermediate_dense.units, "gate_dense")
        self.gate_dense.build(input_shape)
        super().build(input_shape)

    def intermediate(self, x):
        return super().intermediate(x) * self.gate_dense(x)
