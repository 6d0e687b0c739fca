"""Softmax over a vocabulary that is cut into bands, and the loss that never makes all of it."""

import keras
from keras import layers, ops

from .adaptive_embedding import inside
from .initializers import truncated_normal


@keras.saving.register_keras_serializable("garden")
class AdaptiveSoftmax(layers.Layer):
    """Adaptive softmax (Grave et al. 2017) over the bands of an `AdaptiveEmbedding`, whose tables it shares.

    The head is a softmax over the words of the first band and one cluster for each further band; a word of band i has
    the probability of cluster i times that of the word in its band. Cluster i is column i - 1 behind the words; the
    original PyTorch code reads the clusters from the end.

    Args:
        embedding: a built `AdaptiveEmbedding`, which stays the backbone's.
        tie_projections: for each band, whether its output projection is its embedding's, transposed; True or False for
            all. Where the embedding has no projections there are none here.

    Call arguments:
        sequence: float (b, t, d).

    Returns:
        Log-probabilities, float32 (b, t, v).

    Raises:
        ValueError: `tie_projections` is not one for each band.

    >>> import keras, numpy as np
    >>> from garden.layers import AdaptiveEmbedding, AdaptiveSoftmax
    >>> embedding = AdaptiveEmbedding(10, embedding_dim=4, hidden_dim=6, cutoffs=(3, 5), div_val=2)
    >>> x = embedding(np.array([[0, 3, 9]]))
    >>> softmax = AdaptiveSoftmax(embedding, tie_projections=(False, True, True))
    >>> keras.ops.convert_to_numpy(keras.ops.exp(softmax(x))).sum(-1).round(4).tolist()
    [[1.0, 1.0, 1.0]]
    >>> softmax.losses_of(x, np.array([[3, 9, 0]])).shape == (1, 3)
    True
    """

    def __init__(self, embedding, tie_projections=True, **kwargs):
        super().__init__(**kwargs)
        # A plain attribute would be tracked, and the tables saved a second time with the head.
        object.__setattr__(self, "embedding", embedding)
        count = len(embedding.bands)
        tied = [tie_projections] * count if isinstance(tie_projections, bool) else list(tie_projections)
        if len(tied) != count:
            raise ValueError(f"tie_projections has {len(tied)} entries for {count} bands: give one for each.")
        self.tied = [tie or not embedding.projections for tie in tied]

    def build(self, sequence_shape):
        bands = self.embedding.bands
        self.biases = [
            self.add_weight(name=f"bias_{i}", shape=(band.input_dim,), initializer="zeros")
            for i, band in enumerate(bands)
        ]
        self.projections = [
            None
            if tied
            else self.add_weight(
                name=f"projection_{i}", shape=(sequence_shape[-1], band.output_dim), initializer=truncated_normal()
            )
            for i, (band, tied) in enumerate(zip(bands, self.tied, strict=True))
        ]
        self.clusters = None
        if len(bands) > 1:
            self.clusters = layers.Dense(
                len(bands) - 1, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="clusters"
            )
            self.clusters.build((*sequence_shape[:-1], bands[0].output_dim))
        self.built = True

    def call(self, sequence):
        head = ops.log_softmax(self.logits(sequence, 0), axis=-1)
        words = self.embedding.edges[1]
        found = [head[..., :words]]
        for i in range(1, len(self.embedding.bands)):
            cluster = head[..., words + i - 1 : words + i]
            found.append(cluster + ops.log_softmax(self.logits(sequence, i), axis=-1))
        return ops.concatenate(found, axis=-1)

    def losses_of(self, sequence, targets):
        """-log p of the targets, for training: no more than one band's logits exist at a time.

        A band's logits are reduced as soon as they are made and made again for the gradient. Shapes are static, so
        every token meets every band; the narrow bands make that cheap.

        Args:
            sequence: float (b, t, d).
            targets: int (b, t).

        Returns:
            float32 (b, t).
        """
        edges, count = self.embedding.edges, len(self.embedding.bands)
        columns = ops.where(targets < edges[1], targets, 0)
        for i in range(1, count):
            columns = ops.where(inside(targets, *edges[i : i + 2]), edges[1] + i - 1, columns)
        losses = self._band_losses(sequence, columns, 0)
        for i in range(1, count):
            first, last = edges[i : i + 2]
            in_band = self._band_losses(sequence, ops.clip(targets, first, last - 1) - first, i)
            losses = losses + ops.where(inside(targets, first, last), in_band, 0.0)
        return losses

    def _band_losses(self, sequence, columns, i):
        """-log of the softmax of band i at one column a token, (b, t)."""

        def losses(sequence, columns):
            logits = self.logits(sequence, i)
            chosen = ops.take_along_axis(logits, columns[..., None], axis=-1)[..., 0]
            return ops.logsumexp(logits, axis=-1) - chosen

        return keras.remat(losses)(sequence, columns)

    def logits(self, sequence, i):
        """float32 (b, t, words of band i), and behind the words of the first band the clusters."""
        x = self.project(sequence, i)
        words = ops.cast(self.embedding.bands[i](x, reverse=True), "float32") + ops.cast(self.biases[i], "float32")
        if i or not self.clusters:
            return words
        return ops.concatenate([words, ops.cast(self.clusters(x), "float32")], axis=-1)

    def project(self, sequence, i):
        """The sequence in the width of band i, (b, t, e_i)."""
        if not self.tied[i]:
            return ops.matmul(sequence, self.projections[i])
        projection = self.embedding.projection(i)
        return ops.matmul(sequence, ops.transpose(matrix(projection))) if projection else sequence

    def compute_output_spec(self, sequence):
        return keras.KerasTensor((*sequence.shape[:-1], self.embedding.edges[-1]), dtype="float32")


def matrix(dense):
    """The kernel of a dense layer without a bias; of a quantised one what it amounts to.

    >>> import keras
    >>> from garden.layers.adaptive_softmax import matrix
    >>> dense = keras.layers.Dense(3, use_bias=False)
    >>> dense.build((None, 2))
    >>> matrix(dense).shape == (2, 3)
    True
    """
    if dense.quantization_mode is None:
        return dense.kernel
    return dense(ops.eye(dense.input_spec.axes[-1], dtype=dense.compute_dtype))
