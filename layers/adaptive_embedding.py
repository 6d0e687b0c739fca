"""Embeddings of a vocabulary that is cut into bands: the rarer its words, the narrower their vectors."""

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


def check_edges(edges: list[int]) -> list[int]:
    """Edges of bands that ascend, or a ValueError.

    >>> from garden.layers.adaptive_embedding import check_edges
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
    >>> from garden.layers.adaptive_embedding import inside
    >>> np.array(inside(np.array([2, 3, 4, 5]), 3, 5)).tolist()
    [False, True, True, False]
    """
    return ops.logical_and(ids >= first, ids < last)
