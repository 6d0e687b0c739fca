"""A token table as the product of a narrow one and a matrix, to read and to predict with (Lan et al. 2019)."""

import keras
from keras import layers, ops

from .embeddings import Embeddings
from .initializers import truncated_normal


@keras.saving.register_keras_serializable("garden")
class FactorizedEmbedding(layers.Layer):
    """A `keras.layers.ReversibleEmbedding` (v, d) that is stored as a table (v, e) and a matrix (e, d).

    Backwards it goes through both transposed, as brightmart's models have it.

    Args:
        input_dim: v, rows of the table.
        output_dim: d, the width of what it gives.
        embedding_dim: e, the width of the table.

    Call arguments:
        inputs: int (b, t); float (b, p, d) in reverse.
        reverse: whether vectors become scores of tokens.

    Returns:
        float (b, t, d); (b, p, v) in reverse.

    >>> import numpy as np
    >>> from garden.layers import FactorizedEmbedding
    >>> layer = FactorizedEmbedding(10, 6, embedding_dim=4)
    >>> x = layer(np.array([[5, 6, 7]]))
    >>> x.shape == (1, 3, 6), layer(x, reverse=True).shape == (1, 3, 10), layer.count_params()
    (True, True, 64)
    """

    def __init__(self, input_dim, output_dim, embedding_dim, **kwargs):
        super().__init__(**kwargs)
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.table = layers.ReversibleEmbedding(
            input_dim,
            embedding_dim,
            embeddings_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name="table",
        )

    def build(self, input_shape=None):
        self.table.build(input_shape)
        # No Dense layer: that one's kernel, once quantised, could not be read backwards.
        self.projection = self.add_weight(
            name="projection", shape=(self.table.output_dim, self.output_dim), initializer=truncated_normal()
        )
        self.built = True

    def call(self, inputs, reverse=False):
        if reverse:
            return self.table(ops.matmul(inputs, ops.transpose(self.projection)), reverse=True)
        return ops.matmul(self.table(inputs), self.projection)


@keras.saving.register_keras_serializable("garden")
class FactorizedEmbeddings(Embeddings):
    """Embeddings whose token table alone is narrow, and multiplied to the model's width before the sum.

    `ProjectedEmbeddings` have a projection with a bias there, which masked-LM heads do not go back through.

    Args:
        those of `Embeddings`; the other tables and the norm are `hidden_dim` wide, and None means that of the table.

    Call arguments and returns are those of `Embeddings`.

    >>> import numpy as np
    >>> from garden.layers import FactorizedEmbeddings
    >>> ids = np.array([[5, 6, 7]])
    >>> layer = FactorizedEmbeddings(10, 4, 8, num_segments=2, hidden_dim=6)
    >>> layer(ids, ids % 3, ids % 2).shape == (1, 3, 6), tuple(layer.position_embedding.embeddings.shape)
    (True, (8, 6))
    """

    def projects(self, embedding_dim, hidden_dim):
        return False

    def summed_dim(self, embedding_dim, hidden_dim):
        return hidden_dim or embedding_dim

    def token_table(self, vocabulary_size, embedding_dim, hidden_dim):
        width = self.summed_dim(embedding_dim, hidden_dim)
        return FactorizedEmbedding(
            vocabulary_size, width, embedding_dim, dtype=self.dtype_policy, name="token_embedding"
        )
