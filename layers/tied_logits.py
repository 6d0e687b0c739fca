"""Logits through the transposed token table, with a bias of their own."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("garden")
class TiedLogits(layers.Layer):
    """x . token_embedding^T + bias (Yang et al. 2019). The table stays the backbone's.

    Args:
        token_embedding: a built `keras.layers.ReversibleEmbedding` (v, d).

    Call arguments:
        sequence: float (b, t, d).

    Returns:
        float (b, t, v).

    >>> import keras, numpy as np
    >>> from garden.layers import TiedLogits
    >>> table = keras.layers.ReversibleEmbedding(10, 8)
    >>> table.build()
    >>> TiedLogits(table)(np.ones((2, 3, 8), "float32")).shape == (2, 3, 10)
    True
    """

    def __init__(self, token_embedding, **kwargs):
        super().__init__(**kwargs)
        object.__setattr__(self, "token_embedding", token_embedding)  # untracked, as in `MaskedLMHead`

    def build(self, sequence_shape):
        self.bias = self.add_weight(name="bias", shape=(self.token_embedding.input_dim,), initializer="zeros")
        self.built = True

    def call(self, sequence):
        return ops.add(self.token_embedding(sequence, reverse=True), self.bias)
