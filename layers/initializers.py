"""The initializer of BERT and its descendants."""

import keras


def truncated_normal(stddev: float = 0.02) -> keras.initializers.Initializer:
    """A new truncated normal initializer, cut at two standard deviations (google-research/bert `create_initializer`).

    Each call makes a new one: a Keras initializer that two variables share gives both the same values.

    >>> from garden.layers import truncated_normal
    >>> tuple(truncated_normal()((2, 3)).shape)
    (2, 3)
    """
    return keras.initializers.TruncatedNormal(stddev=stddev)
