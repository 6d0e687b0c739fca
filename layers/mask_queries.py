"""Absolute positions for the prediction of masked tokens alone (DeBERTa's enhanced mask decoder, He et al. 2020)."""

import keras
from keras import layers

from .initializers import truncated_normal
from .mask import positions


@keras.saving.register_keras_serializable("garden")
class MaskQueries(layers.Layer):
    """x + position: the first queries of a decoder of masks, which know their place (He et al. 2020, section 3.2).

    Args:
        max_sequence_length: rows of the position table.
        hidden_dim: d.

    Call arguments:
        x: float (b, t, d).
        padding_mask: int (b, t).

    Returns:
        float (b, t, d).

    Raises:
        ValueError: rows longer than `max_sequence_length`.

    >>> import numpy as np
    >>> from garden.layers import MaskQueries
    >>> x, layer = np.ones((1, 3, 8), "float32"), MaskQueries(max_sequence_length=4, hidden_dim=8)
    >>> layer(x, np.ones((1, 3), "int32")).shape == (1, 3, 8), layer.count_params()
    (True, 32)
    """

    def __init__(self, max_sequence_length, hidden_dim, **kwargs):
        super().__init__(**kwargs)
        self.position_embedding = layers.Embedding(
            max_sequence_length,
            hidden_dim,
            embeddings_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name="position_embedding",
        )

    def build(self, x_shape, padding_mask_shape=None):
        self.position_embedding.build(x_shape[:-1])
        self.built = True

    def call(self, x, padding_mask):
        length, limit = x.shape[1], self.position_embedding.input_dim
        if isinstance(length, int) and length > limit:
            raise ValueError(
                f"The rows have {length} tokens but the decoder of masks has {limit} positions: truncate to {limit}."
            )
        return x + self.position_embedding(positions(padding_mask))

    def compute_output_spec(self, x, padding_mask):
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype)
