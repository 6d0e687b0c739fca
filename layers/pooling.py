"""One vector for each row of tokens: the mean, the first or the largest, over what is not padding."""

import keras
from keras import layers, ops

from .heads import first_token


def mean_pool(sequence, padding_mask):
    """The mean over the tokens of a row; zeros for a row of padding.

    Args:
        sequence: float (b, t, d).
        padding_mask: int (b, t).

    Returns:
        float (b, d).

    >>> import numpy as np
    >>> from garden.layers.pooling import mean_pool
    >>> x = np.array([[[1.0], [3.0], [9.0]]])
    >>> np.array(mean_pool(x, np.array([[1, 1, 0]]))).tolist()
    [[2.0]]
    """
    token = ops.cast(padding_mask > 0, sequence.dtype)
    return ops.einsum("bt,btd->bd", token, sequence) / ops.maximum(ops.sum(token, axis=1, keepdims=True), 1)


def max_pool(sequence, padding_mask):
    """The largest value of each feature over the tokens of a row, with the shapes of `mean_pool`."""
    token = (padding_mask > 0)[:, :, None]
    largest = ops.max(ops.where(token, sequence, -1e9), axis=1)
    return ops.where(ops.any(token, axis=1), largest, 0.0)


def unit_length(x):
    """Each vector (..., d) divided by its length; a vector of zeros stays, and has a gradient.

    >>> import numpy as np
    >>> from garden.layers import unit_length
    >>> np.array(unit_length(np.array([[3.0, 4.0], [0.0, 0.0]])), "float64").round(2).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    x = ops.convert_to_tensor(x)
    # The bound stands inside the root, whose derivative at 0 is infinite.
    return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=-1, keepdims=True), 1e-24))


POOLING_MODES = {"mean": mean_pool, "cls": first_token, "max": max_pool}


@keras.saving.register_keras_serializable("garden")
class Pooling(layers.Layer):
    """A row's embedding from its tokens (Reimers and Gurevych 2019, section 3), in float32 whatever comes in.

    Args:
        pooling_mode: `"mean"`, `"cls"` for the first token, or `"max"`; padding never counts.
        normalize: whether the embedding is divided by its length.

    Call arguments:
        sequence: float (b, t, d).
        padding_mask: int (b, t).

    Returns:
        float32 (b, d); zeros for a row of padding.

    Raises:
        ValueError: a mode that is none of these.

    >>> import numpy as np
    >>> from garden.layers import Pooling
    >>> x = np.array([[[3.0, 0.0], [0.0, 4.0], [7.0, 7.0]]])
    >>> np.array(Pooling("max", normalize=True)(x, np.array([[1, 1, 0]])), "float64").round(2).tolist()
    [[0.6, 0.8]]
    """

    def __init__(self, pooling_mode="mean", normalize=False, **kwargs):
        super().__init__(dtype="float32", **{name: value for name, value in kwargs.items() if name != "dtype"})
        if pooling_mode not in POOLING_MODES:
            raise ValueError(f"pooling_mode={pooling_mode!r} is none of {', '.join(POOLING_MODES)}.")
        self.pool = POOLING_MODES[pooling_mode]
        self.normalize = normalize

    def call(self, sequence, padding_mask):
        pooled = self.pool(sequence, padding_mask)
        return unit_length(pooled) if self.normalize else pooled
