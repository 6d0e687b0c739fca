"""T5's relative positions: one number a head and a bucket of distances, added to the scores of every layer."""

from bisect import bisect_right
from functools import cache

import keras
from keras import layers, ops

from .initializers import normal


def relative_buckets(distance, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True):
    """The bucket of each distance: near ones have one each, farther ones share them on a logarithmic scale.

    With both directions the upper half of the buckets is for keys that come after the query; with one, such keys are
    all in bucket 0. A bucket begins at the smallest whole distance that the logarithm puts there; it is found in whole
    numbers, so that no backend's rounding decides about 16, 32 or 64.

    Args:
        distance: int of any shape, the query's place minus the key's.
        num_buckets: r.
        max_distance: from here on all distances share the last bucket.
        bidirectional: whether keys behind the query have buckets of their own.

    Returns:
        int32 in the shape of `distance`.

    >>> import numpy as np
    >>> from garden.layers import relative_buckets
    >>> np.array(relative_buckets(np.array([0, 7, 8, 16, 200, -1, -128]))).tolist()
    [0, 7, 8, 10, 15, 17, 31]
    >>> np.array(relative_buckets(np.array([-1, 16]), bidirectional=False)).tolist()
    [0, 16]
    """
    known = ops.convert_to_tensor(_buckets(num_buckets, max_distance, bidirectional), "int32")
    return ops.take(known, ops.clip(distance, -max_distance, max_distance) + max_distance, axis=0)


@cache
def _buckets(count, limit, bidirectional):
    """The buckets of the distances -limit to limit."""
    half = count // 2 if bidirectional else count
    first = _beginnings(half, limit)
    behind = [bisect_right(first, far) for far in range(limit + 1)]
    ahead = [half + bucket for bucket in behind[:0:-1]] if bidirectional else [0] * limit
    return ahead + behind


def _beginnings(count, max_distance):
    """The smallest distance of the buckets 1 to count - 1."""
    exact = count // 2
    steps = count - exact

    def begins(k):  # log(x / exact) / log(max_distance / exact) * steps >= k, without logarithms
        x = exact
        while x**steps < exact ** (steps - k) * max_distance**k:
            x += 1
        return x

    return [*range(1, exact), *(begins(k) for k in range(steps))]


@keras.saving.register_keras_serializable("garden")
class PositionBias(layers.Layer):
    """The relative position bias of T5 (Raffel et al. 2020, section 2.1), made once for all layers of a stack.

    Args:
        num_heads: n.
        num_buckets: r, rows of the table.
        max_distance: see `relative_buckets`.
        bidirectional: whether a query attends keys behind it, as in an encoder.
        stddev: of the initial values.

    Call arguments:
        distance: int (t, s), the query's place minus the key's; see `garden.layers.distances`.

    Returns:
        float (1, n, t, s), to be added to the scores.

    >>> import numpy as np
    >>> from garden.layers import PositionBias, distances
    >>> PositionBias(num_heads=2)(distances(np.ones((1, 3)))).shape == (1, 2, 3, 3)
    True
    """

    def __init__(self, num_heads, num_buckets=32, max_distance=128, bidirectional=True, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.stddev = stddev

    def build(self, distance_shape):
        shape = (self.num_buckets, self.num_heads)
        self.embeddings = self.add_weight(name="embeddings", shape=shape, initializer=normal(self.stddev))
        self.built = True

    def call(self, distance):
        buckets = relative_buckets(distance, self.num_buckets, self.max_distance, self.bidirectional)
        bias = ops.take(ops.cast(self.embeddings, self.compute_dtype), buckets, axis=0)
        return ops.transpose(bias, (2, 0, 1))[None]

    def compute_output_spec(self, distance):
        return keras.KerasTensor((1, self.num_heads, *distance.shape), dtype=self.compute_dtype)
