"""The initializers of BERT and of T5, and the scope in which a checkpoint makes them needless."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import keras

_TO_BE_LOADED = ContextVar("to_be_loaded", default=False)


def truncated_normal(stddev: float = 0.02) -> keras.initializers.Initializer:
    """A new truncated normal initializer, cut at two standard deviations (google-research/bert `create_initializer`).

    Each call makes a new one: a Keras initializer that two variables share gives both the same values.

    >>> from garden.layers import truncated_normal
    >>> tuple(truncated_normal()((2, 3)).shape)
    (2, 3)
    """
    return keras.initializers.Zeros() if _TO_BE_LOADED.get() else keras.initializers.TruncatedNormal(stddev=stddev)


def normal(stddev: float) -> keras.initializers.Initializer:
    """A new normal initializer that is not cut.

    >>> from garden.layers import normal
    >>> tuple(normal(1.0)((2, 3)).shape)
    (2, 3)
    """
    return keras.initializers.Zeros() if _TO_BE_LOADED.get() else keras.initializers.RandomNormal(stddev=stddev)


def kernel_initializer(kind: str, gain: float = 1.0) -> keras.initializers.Initializer:
    """A new initializer of a dense layer's kernel (i, o) behind a name.

    Args:
        kind: `"truncated_normal"` (BERT, standard deviation 0.02), `"fan_in"` (T5, normal with standard deviation
            gain / sqrt(i)), or `"glorot_uniform"` (Vaswani et al. 2017 in tensor2tensor).
        gain: see `"fan_in"`.

    Raises:
        ValueError: none of these names.

    >>> from garden.layers import kernel_initializer
    >>> tuple(kernel_initializer("fan_in")((2, 3)).shape)
    (2, 3)
    """
    if kind == "truncated_normal" or _TO_BE_LOADED.get():
        return truncated_normal()
    if kind == "fan_in":
        return keras.initializers.VarianceScaling(gain**2, mode="fan_in", distribution="untruncated_normal")
    if kind == "glorot_uniform":
        return keras.initializers.GlorotUniform()
    raise ValueError(f"There is no initializer {kind!r}; there are truncated_normal, fan_in, glorot_uniform.")


@contextmanager
def weights_to_be_loaded() -> Iterator[None]:
    """Layers made in this scope start from zeros, because a checkpoint is about to fill them.

    Drawing 335 million normal numbers takes seconds and several times their memory. Whoever loads draws for the weights
    that the checkpoint lacks.

    >>> from garden.layers import truncated_normal, weights_to_be_loaded
    >>> with weights_to_be_loaded():
    ...     initializer = truncated_normal()
    >>> float(initializer((1,))[0])
    0.0
    """
    token = _TO_BE_LOADED.set(True)
    try:
        yield
    finally:
        _TO_BE_LOADED.reset(token)
