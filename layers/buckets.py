"""Relative positions in buckets: the farther two tokens are apart, the coarser."""

import math

import keras
from keras import layers, ops

from .initializers import truncated_normal
from .norm import normalization as resolve
from .shift import block_distances


def log_buckets(num_buckets, max_distance):
    """The bucket of every distance from 0 to `max_distance`: one each up to half of them, then logarithmic.

    The other side mirrors it (He et al. 2021, section 3.3 of DeBERTa's published code for version 2).

    Args:
        num_buckets: B, buckets of one side, an even number.
        max_distance: m; the distance m - 1 falls into the last bucket, B - 1, and m into B, as all beyond it do.

    Returns:
        A list of m + 1 numbers.

    >>> from garden.layers import log_buckets
    >>> log_buckets(4, 8)
    [0, 1, 2, 3, 3, 3, 3, 3, 4]
    """
    half = num_buckets // 2
    farthest = math.log((max_distance - 1) / half)

    def bucket(distance):
        share = math.log(max(distance, half) / half) / farthest
        return distance if distance <= half else math.ceil(share * (half - 1)) + half

    return [bucket(distance) for distance in range(max_distance + 1)]


@keras.saving.register_keras_serializable("garden")
class RelativeEmbedding(layers.Layer):
    """A table of relative positions for all layers of a model, and which of its rows a distance means.

    Args:
        bucket_size: k; the table has 2k rows, row k for a token's own place and larger ones for keys in the past.
        hidden_dim: d.
        max_distance: m, for the buckets of `log_buckets`; None gives each distance up to k a row of its own.
        normalization: a name for `garden.layers.normalization` of the table, or None.
        layer_norm_epsilon: epsilon of that.

    Call arguments:
        padding_mask: int (b, t), of which only the length is read.

    Returns:
        The part of the table that rows of this length can need, float (r, d), and int32 (2, c, j + t): where in it the
        distances of c blocks of j queries each are, and where their opposites are, for `relative_scores`.

    >>> import numpy as np
    >>> from garden.layers import RelativeEmbedding
    >>> table, rows = RelativeEmbedding(bucket_size=8, hidden_dim=4)(np.ones((1, 3)))
    >>> table.shape == (5, 4), np.array(rows).tolist()
    (True, [[[4, 3, 2, 1, 0, 0]], [[0, 1, 2, 3, 4, 4]]])
    """

    def __init__(
        self, bucket_size, hidden_dim, max_distance=None, normalization=None, layer_norm_epsilon=1e-12, **kwargs
    ):
        super().__init__(**kwargs)
        self.bucket_size = bucket_size
        self.buckets = log_buckets(bucket_size, max_distance) if max_distance else list(range(bucket_size + 1))
        self.table = layers.Embedding(
            2 * bucket_size,
            hidden_dim,
            embeddings_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name="table",
        )
        self.norm = None
        if normalization:
            self.norm = resolve(normalization, layer_norm_epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, padding_mask_shape):
        self.table.build((None,))
        if self.norm:
            self.norm.build((None, self.table.output_dim))
        self.built = True

    def call(self, padding_mask):
        length = ops.shape(padding_mask)[1]
        first, last = self.reach(length)
        table = self.table(ops.arange(first, last))
        distances = block_distances(length)
        rows = ops.stack([self.rows(distances), self.rows(-distances)])
        return self.norm(table) if self.norm else table, ops.clip(rows, first, last - 1) - first

    def reach(self, length):
        """The first row that rows of a length need, and the one behind the last."""
        if not isinstance(length, int):  # TensorFlow may not know it yet
            return 0, 2 * self.bucket_size
        farthest = self.buckets[min(length - 1, len(self.buckets) - 1)]
        return max(self.bucket_size - farthest, 0), min(self.bucket_size + farthest + 1, 2 * self.bucket_size)

    def rows(self, distances):
        """The row of every distance, int32."""
        buckets = ops.take(
            ops.convert_to_tensor(self.buckets, "int32"), ops.minimum(ops.abs(distances), len(self.buckets) - 1)
        )
        rows = self.bucket_size + ops.sign(distances) * buckets
        return ops.clip(rows, 0, 2 * self.bucket_size - 1)

    def compute_output_spec(self, padding_mask):
        table = keras.KerasTensor((None, self.table.output_dim), dtype=self.compute_dtype)
        return table, keras.KerasTensor((2, None, None), dtype="int32")
