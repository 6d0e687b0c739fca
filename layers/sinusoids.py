"""The sinusoids that stand for absolute positions in the Transformer."""

from math import cos, sin

import keras
from keras import layers, ops


def position_sinusoids(rows: int, width: int, interleaved: bool = True) -> list[list[float]]:
    """Sines and cosines of the places 0, 1, ... at wavelengths from 2 pi to 10000 * 2 pi, in double precision.

    Args:
        rows: how many places.
        width: d, an even number.
        interleaved: whether sines are the even channels and cosines the odd ones, as in the paper, or each a half, as
            in Marian.

    Returns:
        `rows` lists of `width` numbers.

    >>> from garden.layers import position_sinusoids
    >>> [round(channel, 2) for channel in position_sinusoids(2, 4)[1]]
    [0.84, 0.54, 0.01, 1.0]
    """
    frequencies = [10000 ** (-j / width) for j in range(0, width, 2)]
    if interleaved:
        return [[wave(place * f) for f in frequencies for wave in (sin, cos)] for place in range(rows)]
    return [[wave(place * f) for wave in (sin, cos) for f in frequencies] for place in range(rows)]


@keras.saving.register_keras_serializable("garden")
class PositionSinusoids(layers.Layer):
    """Absolute positions that are not learned (Vaswani et al. 2017, section 3.5).

    Args:
        hidden_dim: d, an even number.
        max_sequence_length: how many places there are; it costs no weights.
        interleaved: see `position_sinusoids`.

    Call arguments:
        places: int (b, t).

    Returns:
        float (b, t, d).

    Raises:
        ValueError: an odd `hidden_dim`, or rows longer than `max_sequence_length`.

    >>> import numpy as np
    >>> from garden.layers import PositionSinusoids
    >>> PositionSinusoids(4, 16)(np.array([[0, 1, 2]])).shape == (1, 3, 4)
    True
    """

    def __init__(self, hidden_dim, max_sequence_length, interleaved=True, **kwargs):
        super().__init__(**kwargs)
        if hidden_dim % 2:
            raise ValueError(f"hidden_dim={hidden_dim} is odd, but every sine needs its cosine: use an even number.")
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.interleaved = interleaved
        table = position_sinusoids(max_sequence_length, hidden_dim, interleaved)
        self.table = ops.convert_to_numpy(ops.convert_to_tensor(table, "float32"))  # no weight

    def call(self, places):
        length = places.shape[1]
        if isinstance(length, int) and length > self.max_sequence_length:
            raise ValueError(
                f"The rows have {length} tokens but the position table has {self.max_sequence_length}: "
                f"truncate them, or make the model with a larger max_sequence_length."
            )
        return ops.take(ops.convert_to_tensor(self.table, self.compute_dtype), places, axis=0)

    def compute_output_spec(self, places):
        return keras.KerasTensor((*places.shape, self.hidden_dim), dtype=self.compute_dtype)
