"""The initializer of BERT and its descendants."""

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
