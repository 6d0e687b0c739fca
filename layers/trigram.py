"""Embeddings that see the neighbours of a token (Sun et al. 2020, section 3.5)."""

import keras
from keras import ops

from .embeddings import Embeddings


def trigram(x, padding_mask):
    """Every position's next, own and previous vector, in this order, side by side.

    A neighbour that belongs to another packed sequence is zero, and so are padding on the left and what lies beyond
    the ends of the row. Only padding behind the row's first sequence is seen, as it is stored: the published code pads
    on the right and never packs, and its last token sees the row of the table that padding has.

    Args:
        x: float (b, t, e).
        padding_mask: int (b, t).

    Returns:
        float (b, t, 3e).

    >>> import numpy as np
    >>> from garden.layers import trigram
    >>> np.array(trigram(np.array([[[1.0], [2.0], [3.0]]]), np.ones((1, 3), "int32")))[0].tolist()
    [[2.0, 1.0, 0.0], [3.0, 2.0, 1.0], [0.0, 3.0, 2.0]]
    """
    sequence, following, preceding = padding_mask, _shift(padding_mask, -1), _shift(padding_mask, 1)
    padded = ops.logical_and(ops.equal(sequence, 1), ops.equal(following, 0))
    sees_next = ops.logical_or(ops.equal(following, sequence), padded)
    sees_previous = ops.equal(preceding, sequence)
    after = _shift(x, -1) * ops.cast(sees_next, x.dtype)[:, :, None]
    before = _shift(x, 1) * ops.cast(sees_previous, x.dtype)[:, :, None]
    return ops.concatenate([after, x, before], axis=-1)


def _shift(x, by):
    """x (b, t, ...) one position to the right (by=1) or to the left (by=-1), with zeros behind it."""
    gap = [[0, 0], [max(by, 0), max(-by, 0)], *[[0, 0]] * (len(x.shape) - 2)]
    return ops.pad(x[:, 1:] if by < 0 else x[:, :-1], gap)


@keras.saving.register_keras_serializable("garden")
class ProjectedEmbeddings(Embeddings):
    """Embeddings whose token table alone is narrow: the projection comes before the sum, not behind the norm.

    Args:
        those of `Embeddings`; position and segment tables are `hidden_dim` wide.

    Call arguments:
        token_ids, position_ids, segment_ids: as in `Embeddings`.
        padding_mask: int (b, t).

    Returns:
        float (b, t, d).

    >>> import numpy as np
    >>> from garden.layers import ProjectedEmbeddings
    >>> ids = np.array([[5, 6, 7]])
    >>> layer = ProjectedEmbeddings(10, 4, 8, num_segments=2, hidden_dim=6)
    >>> layer(ids, ids % 3, ids % 2, 0 * ids + 1).shape == (1, 3, 6)
    True
    """

    tokens_seen = 1

    def projects(self, embedding_dim, hidden_dim):
        return self.tokens_seen > 1 or embedding_dim != hidden_dim

    def summed_dim(self, embedding_dim, hidden_dim):
        return hidden_dim

    def build(self, token_ids_shape, position_ids_shape, segment_ids_shape=None, padding_mask_shape=None):
        if self.projection:
            self.projection.build((*token_ids_shape, self.tokens_seen * self.token_embedding.output_dim))
        super().build(token_ids_shape, position_ids_shape, segment_ids_shape)

    def call(self, token_ids, position_ids, segment_ids=None, padding_mask=None, training=None):
        self._check_length(token_ids.shape[1])
        x = self.tokens(token_ids, padding_mask)
        x = (self.projection(x) if self.projection else x) + self.position_embedding(position_ids)
        x = x + self.segment_embedding(segment_ids) if self.segment_embedding else x
        return self.dropout(self.norm(x), training=training)

    def tokens(self, token_ids, padding_mask):
        """What is projected: the token's vector, float (b, t, e)."""
        return self.token_embedding(token_ids)

    def compute_output_spec(self, token_ids, position_ids, segment_ids=None, padding_mask=None, training=None):
        return super().compute_output_spec(token_ids, position_ids, segment_ids, training)


@keras.saving.register_keras_serializable("garden")
class TrigramEmbeddings(ProjectedEmbeddings):
    """ProjectedEmbeddings of every token with its two neighbours; see `trigram` for what a neighbour is.

    Args, call arguments and returns are those of `ProjectedEmbeddings`.

    >>> import numpy as np
    >>> from garden.layers import TrigramEmbeddings
    >>> ids = np.array([[5, 6, 7]])
    >>> layer = TrigramEmbeddings(10, 4, 8, num_segments=2, hidden_dim=6)
    >>> layer(ids, ids % 3, ids % 2, 0 * ids + 1).shape == (1, 3, 6), tuple(layer.projection.kernel.shape)
    (True, (12, 6))
    """

    tokens_seen = 3

    def tokens(self, token_ids, padding_mask):
        return trigram(self.token_embedding(token_ids), padding_mask)
