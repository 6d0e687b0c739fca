"""A token table whose logits have a bias."""

import keras
from keras import layers


@keras.saving.register_keras_serializable("garden")
class BiasedEmbedding(layers.ReversibleEmbedding):
    """`keras.layers.ReversibleEmbedding` with one number a token added to the logits, as in Marian.

    Args:
        input_dim, output_dim, **kwargs: as in Keras.

    >>> import numpy as np
    >>> from garden.layers import BiasedEmbedding
    >>> layer = BiasedEmbedding(9, 4)
    >>> layer(layer(np.array([[1, 2]])), reverse=True).shape == (1, 2, 9), layer.count_params()
    (True, 45)
    """

    def build(self, input_shape=None):
        super().build(input_shape)
        self.output_bias = self.add_weight(name="output_bias", shape=(self.input_dim,), initializer="zeros")

    @property
    def variable_serialization_spec(self):
        """What is saved in each mode of quantisation, in order."""
        return {mode: [*names, "output_bias"] for mode, names in super().variable_serialization_spec.items()}

    def call(self, inputs, reverse=False):
        return self._biased(super().call(inputs, reverse), reverse)

    def quantized_call(self, inputs, reverse=False):
        return self._biased(super().quantized_call(inputs, reverse), reverse)

    def _biased(self, outputs, reverse):
        return outputs + keras.ops.cast(self.output_bias, outputs.dtype) if reverse else outputs
