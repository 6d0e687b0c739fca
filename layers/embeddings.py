"""The sum of token, position and segment embeddings."""

import keras
from keras import layers, ops

from .initializers import truncated_normal
from .norm import normalization as resolve


@keras.saving.register_keras_serializable("garden")
class Embeddings(layers.Layer):
    """Token, position and segment embeddings, summed, normalised and dropped out (Devlin et al. 2018, figure 2).

    With `hidden_dim` the tables may be narrower than the model: a dense projection (E x H) follows, as in ALBERT
    (Lan et al. 2019, section 3.1).

    Args:
        vocabulary_size: rows of the token table.
        embedding_dim: e, the width of the tables.
        max_sequence_length: rows of the position table.
        num_segments: rows of the segment table; 0 leaves segments out.
        hidden_dim: d, the width after the projection; None means no projection.
        dropout: rate on the normalised sum.
        layer_norm_epsilon: epsilon of the normalisation.
        normalization: a name for `garden.layers.normalization`.

    Call arguments:
        token_ids: int (b, t).
        position_ids: int (b, t).
        segment_ids: int (b, t), only with segments.

    Returns:
        float (b, t, d).

    Raises:
        ValueError: the rows are longer than `max_sequence_length`.

    >>> import numpy as np
    >>> from garden.layers import Embeddings
    >>> ids = np.array([[5, 6, 7]])
    >>> Embeddings(10, 4, 8, num_segments=2, hidden_dim=6)(ids, ids % 3, ids % 2).shape == (1, 3, 6)
    True
    """

    def __init__(
        self,
        vocabulary_size,
        embedding_dim,
        max_sequence_length,
        num_segments=0,
        hidden_dim=None,
        dropout=0.0,
        layer_norm_epsilon=1e-12,
        normalization="layer_norm",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.max_sequence_length = max_sequence_length
        self.token_embedding = self.token_table(vocabulary_size, embedding_dim, hidden_dim)
        width = self.summed_dim(embedding_dim, hidden_dim)
        self.position_embedding = self._table(max_sequence_length, width, "position_embedding")
        self.segment_embedding = self._table(num_segments, width, "segment_embedding") if num_segments else None
        self.norm = resolve(normalization, layer_norm_epsilon, dtype=self.dtype_policy, name="norm")
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.projection = self._dense(hidden_dim) if self.projects(embedding_dim, hidden_dim) else None

    def projects(self, embedding_dim, hidden_dim):
        """Whether there is a projection."""
        return hidden_dim is not None

    def summed_dim(self, embedding_dim, hidden_dim):
        """The width of what is summed, and so of the position and segment tables."""
        return embedding_dim

    def token_table(self, vocabulary_size, embedding_dim, hidden_dim):
        """The token table, a layer that is called as `keras.layers.ReversibleEmbedding` is."""
        return layers.ReversibleEmbedding(
            vocabulary_size,
            embedding_dim,
            embeddings_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name="token_embedding",
        )

    def _dense(self, width):
        return layers.Dense(width, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="projection")

    def _table(self, rows, width, name):
        return layers.Embedding(
            rows, width, embeddings_initializer=truncated_normal(), dtype=self.dtype_policy, name=name
        )

    def build(self, token_ids_shape, position_ids_shape, segment_ids_shape=None):
        summed = (*token_ids_shape, self.position_embedding.output_dim)
        self.token_embedding.build(token_ids_shape)
        self.position_embedding.build(token_ids_shape)
        if self.segment_embedding:
            self.segment_embedding.build(token_ids_shape)
        self.norm.build(summed)
        if self.projection and not self.projection.built:
            self.projection.build(summed)
        self.built = True

    def call(self, token_ids, position_ids, segment_ids=None, training=None):
        self._check_length(token_ids.shape[1])
        x = self.norm(self.sum(token_ids, position_ids, segment_ids))
        x = self.dropout(x, training=training)
        return self.projection(x) if self.projection else x

    def sum(self, token_ids, position_ids, segment_ids=None):
        """The sum before the norm, float (b, t, e); a subclass may add a table of its own."""
        x = self.token_embedding(token_ids) + self.position_embedding(position_ids)
        return x + self.segment_embedding(segment_ids) if self.segment_embedding else x

    def _check_length(self, length):
        # Out-of-range gathers are silent on JAX and on GPUs, so the static shape is the place to stop.
        if isinstance(length, int) and length > self.max_sequence_length:
            raise ValueError(
                f"The rows have {length} tokens but the position table has {self.max_sequence_length}: "
                f"truncate to {self.max_sequence_length} (the preprocessor's `sequence_length`)."
            )

    def compute_output_spec(self, token_ids, position_ids, segment_ids=None, training=None):
        width = self.projection.units if self.projection else self.token_embedding.output_dim
        return keras.KerasTensor((*token_ids.shape, width), dtype=self.compute_dtype)


@keras.saving.register_keras_serializable("garden")
class TokenEmbeddings(layers.Layer):
    """Token embeddings alone, for a model whose attention knows the positions: normalised, and zero at padding.

    Args:
        vocabulary_size: rows of the table.
        embedding_dim: d, its width.
        dropout: rate on the normalised embeddings.
        layer_norm_epsilon: epsilon of the norm.

    Call arguments:
        token_ids: int (b, t).
        padding_mask: int (b, t).

    Returns:
        float (b, t, d).

    >>> import keras, numpy as np
    >>> from garden.layers import TokenEmbeddings
    >>> x = TokenEmbeddings(10, 4)(np.array([[5, 6]]), np.array([[1, 0]]))
    >>> x.shape == (1, 2, 4), bool((keras.ops.convert_to_numpy(x)[0, 1] == 0).all())
    (True, True)
    """

    def __init__(self, vocabulary_size, embedding_dim, dropout=0.0, layer_norm_epsilon=1e-12, **kwargs):
        super().__init__(**kwargs)
        self.token_embedding = layers.ReversibleEmbedding(
            vocabulary_size,
            embedding_dim,
            embeddings_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name="token_embedding",
        )
        self.norm = layers.LayerNormalization(epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm")
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, token_ids_shape, padding_mask_shape=None):
        self.token_embedding.build(token_ids_shape)
        self.norm.build((*token_ids_shape, self.token_embedding.output_dim))
        self.built = True

    def call(self, token_ids, padding_mask, training=None):
        x = self.norm(self.token_embedding(token_ids))
        return self.dropout(x * ops.cast(padding_mask > 0, x.dtype)[:, :, None], training=training)

    def compute_output_spec(self, token_ids, padding_mask, training=None):
        return keras.KerasTensor((*token_ids.shape, self.token_embedding.output_dim), dtype=self.compute_dtype)
