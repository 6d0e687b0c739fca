"""The masked-LM head of a model that is wider than its token table."""

import keras
from keras import ops

from .heads import MaskedLMHead
from .initializers import truncated_normal


@keras.saving.register_keras_serializable("garden")
class WideMaskedLMHead(MaskedLMHead):
    """A masked-LM head as wide as the model, on a token table that is narrower (Sun et al. 2020).

    gather, dense(d), activation, norm. The first e features of the result meet the token table, as in `MaskedLMHead`,
    and the others a matrix of the head's own: [h_1 | h_2] . [token_embedding | extra]^T + bias.

    Args, call arguments and returns are those of `MaskedLMHead`.

    Raises:
        ValueError: the table is wider than the sequence.

    >>> import keras, numpy as np
    >>> from garden.layers import WideMaskedLMHead
    >>> table = keras.layers.ReversibleEmbedding(10, 4)
    >>> table.build()
    >>> head = WideMaskedLMHead(table)
    >>> head(np.ones((2, 3, 8), "float32"), np.array([[0], [2]])).shape == (2, 1, 10)
    True
    >>> tuple(head.extra_embeddings.shape)
    (4, 10)
    """

    def build(self, sequence_shape, mask_positions_shape):
        super().build(sequence_shape, mask_positions_shape)
        extra = self.width(sequence_shape) - self.token_embedding.output_dim
        if extra < 0:
            raise ValueError(
                f"The token table is {self.token_embedding.output_dim} wide but the model {sequence_shape[-1]}: "
                "an embedding_dim of at most hidden_dim is needed."
            )
        self.extra_embeddings = self.add_weight(
            name="extra_embeddings",
            shape=(extra, self.token_embedding.input_dim),
            initializer=truncated_normal(),
        )

    def width(self, sequence_shape):
        return sequence_shape[-1]

    def scores(self, hidden):
        tied, free = ops.split(hidden, [self.token_embedding.output_dim], axis=-1)
        return ops.add(super().scores(tied), ops.matmul(free, self.extra_embeddings))
