"""The language-model head of a model that is not as wide as its token table."""

import keras

from .heads import MaskedLMHead


@keras.saving.register_keras_serializable("garden")
class LanguageModelHead(MaskedLMHead):
    """Vocabulary logits at every position, through the transposed token table: BERT's masked-LM head without a choice.

    dense(e), activation, norm, then h . token_embedding^T + bias. The table stays the backbone's.

    Args are those of `MaskedLMHead`.

    Call arguments:
        sequence: float (b, t, d).

    Returns:
        float (b, t, v).

    >>> import keras, numpy as np
    >>> from garden.layers import LanguageModelHead
    >>> table = keras.layers.ReversibleEmbedding(10, 8)
    >>> table.build()
    >>> LanguageModelHead(table)(np.ones((2, 3, 6), "float32")).shape == (2, 3, 10)
    True
    """

    def build(self, sequence_shape):
        super().build(sequence_shape, None)

    def call(self, sequence):
        hidden = self.norm(self.activation(self.dense(sequence)))
        return keras.ops.add(self.scores(hidden), self.bias)
