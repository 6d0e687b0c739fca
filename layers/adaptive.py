"""Embedding and softmax over a vocabulary cut into bands, the rarer its words the narrower their vectors."""

from itertools import pairwise

import keras
from keras import layers, ops

from .initializers import truncated_normal


@keras.saving.register_keras_serializable("garden")
class AdaptiveEmbedding(layers.Layer):
    """Adaptive input (Baevski and Auli 2019) as Transformer-XL has it: sqrt(d) * (vector of the token's band) P.

    Ids are sorted by frequency. Band i holds those from its cutoff on, in vectors of width e / div_val^i, which a
    projection P_i brings to the width of the model. Without cutoffs and with e = d this is a plain embedding.

    Args:
        vocabulary_size: v.
        embedding_dim: e, width of the first band.
        hidden_dim: d.
        cutoffs: the first id of every band but the first, ascending.
        div_val: what each band's width is divided by to get the next one's. With 1 all bands share one projection, and
            there is none where e = d.
        scale: what the vectors are multiplied by; None means sqrt(d).
        dropout: rate on the result.

    Call arguments:
        token_ids: int (b, t).

    Returns:
        float (b, t, d).

    Raises:
        ValueError: the cutoffs do not ascend inside the vocabulary, or leave a band without width.

    >>> import numpy as np
    >>> from garden.layers import AdaptiveEmbedding
    >>> embedding = AdaptiveEmbedding(10, embedding_dim=4, hidden_dim=6, cutoffs=(3, 5), div_val=2)
    >>> embedding(np.array([[0, 3, 9]])).shape == (1, 3, 6), [band.output_dim for band in embedding.bands]
    (True, [4, 2, 1])
    """

    def __init__(
        self, vocabulary_size, embedding_dim, hidden_dim, cutoffs=(), div_val=1, scale=None, dropout=0.0, **kwargs
    ):
        super().__init__(**kwargs)
        self.edges = check_edges([0, *cutoffs, vocabulary_size])
        self.hidden_dim = hidden_dim
        self.div_val = div_val
        self.scale = hidden_dim**0.5 if scale is None else scale
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        widths = [embedding_dim // div_val**i for i in range(len(self.edges) - 1)]
        if not widths[-1]:
            raise ValueError(
                f"embedding_dim={embedding_dim} cannot be divided by div_val={div_val} {len(widths) - 1} times."
            )
        self.bands = [
            layers.ReversibleEmbedding(
                last - first,
                width,
                embeddings_initializer=truncated_normal(),
                dtype=self.dtype_policy,
                name=f"band_{i}",
            )
            for i, ((first, last), width) in enumerate(zip(pairwise(self.edges), widths, strict=True))
        ]
        shared = div_val == 1
        own = [self._projection(i) for i in range(1 if shared else len(widths))]
        self.projections = ([] if embedding_dim == hidden_dim else own) if shared else own

    def _projection(self, i):
        return layers.Dense(
            self.hidden_dim,
            use_bias=False,
            kernel_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name=f"projection_{i}",
        )

    def build(self, token_ids_shape):
        for band in self.bands:
            band.build(token_ids_shape)
        for band, projection in zip(self.bands, self.projections, strict=False):
            projection.build((*token_ids_shape, band.output_dim))
        self.built = True

    def projection(self, i):
        """The dense layer that brings band i to the width of the model; None where there is none."""
        return self.projections[0 if self.div_val == 1 else i] if self.projections else None

    def call(self, token_ids, training=None):
        x = self._embed(token_ids, 0)
        for i in range(1, len(self.bands)):
            x = ops.where(inside(token_ids, *self.edges[i : i + 2])[..., None], self._embed(token_ids, i), x)
        return self.dropout(x * self.scale, training=training)

    def _embed(self, token_ids, i):
        """Every token as if it were in band i, (b, t, d)."""
        first, last = self.edges[i : i + 2]
        vectors = self.bands[i](ops.clip(token_ids, first, last - 1) - first)
        projection = self.projection(i)
        return projection(vectors) if projection else vectors

    def compute_output_spec(self, token_ids, training=None):
        return keras.KerasTensor((*token_ids.shape, self.hidden_dim), dtype=self.compute_dtype)


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
    >>> from garden.layers.adaptive import matrix
    >>> dense = keras.layers.Dense(3, use_bias=False)
    >>> dense.build((None, 2))
    >>> matrix(dense).shape == (2, 3)
    True
    """
    if dense.quantization_mode is None:
        return dense.kernel
    return dense(ops.eye(dense.input_spec.axes[-1], dtype=dense.compute_dtype))


def check_edges(edges: list[int]) -> list[int]:
    """Edges of bands that ascend, or a ValueError.

    >>> from garden.layers.adaptive import check_edges
    >>> check_edges([0, 3, 5, 10])
    [0, 3, 5, 10]
    """
    if any(last <= first for first, last in pairwise(edges)):
        raise ValueError(
            f"cutoffs={tuple(edges[1:-1])} have to ascend between 0 and vocabulary_size={edges[-1]}, both excluded."
        )
    return edges


def inside(ids, first, last):
    """Which ids are in the band [first, last), bool in the shape of the ids.

    >>> import numpy as np
    >>> from garden.layers.adaptive import inside
    >>> np.array(inside(np.array([2, 3, 4, 5]), 3, 5)).tolist()
    [False, True, True, False]
    """
    return ops.logical_and(ids >= first, ids < last)
