"""What stands on a backbone: the pooler, the masked-LM head, the classification head."""

import keras
from keras import layers, ops

from .activations import activation as resolve
from .initializers import truncated_normal
from .mask import attention_mask, first_token_mask, last_token_mask, positions


def first_token(sequence, padding_mask):
    """The vector of each row's first token that is not padding; a zero vector for a row that is all padding.

    Args:
        sequence: float (b, t, d).
        padding_mask: int (b, t).

    Returns:
        float (b, d).

    >>> import numpy as np
    >>> from garden.layers import first_token
    >>> np.array(first_token(np.array([[[5.0], [6.0]]]), np.array([[0, 1]]))).tolist()
    [[6.0]]
    """
    return _marked(sequence, first_token_mask(padding_mask))


def last_token(sequence, padding_mask):
    """The vector of each row's last token that is not padding; a zero vector for a row that is all padding.

    Args:
        sequence: float (b, t, d).
        padding_mask: int (b, t).

    Returns:
        float (b, d).

    >>> import numpy as np
    >>> from garden.layers import last_token
    >>> np.array(last_token(np.array([[[5.0], [6.0]]]), np.array([[1, 0]]))).tolist()
    [[5.0]]
    """
    return _marked(sequence, last_token_mask(padding_mask))


def _marked(sequence, mask):
    return ops.einsum("bt,btd->bd", ops.cast(mask, sequence.dtype), sequence)


TOKENS = {"first": first_token, "last": last_token}


@keras.saving.register_keras_serializable("garden")
class Pooler(layers.Layer):
    """tanh(dense(first token)), BERT's summary of a row (Devlin et al. 2018, section 3).

    The first token is the first that is not padding, so left padding needs nothing special; the summary of a row that
    is all padding is that of a zero vector.

    Args:
        hidden_dim: d, the width of the output.
        activation: a name for `garden.layers.activation`.
        dropout: rate on the first token.
        token: `"first"`, or `"last"` as in XLNet.

    Call arguments:
        sequence: float (b, t, d).
        padding_mask: int (b, t).

    Returns:
        float (b, d).

    >>> import numpy as np
    >>> from garden.layers import Pooler
    >>> Pooler(8)(np.ones((2, 3, 8), "float32"), np.ones((2, 3), "int32")).shape == (2, 8)
    True
    """

    def __init__(self, hidden_dim, activation="tanh", dropout=0.0, token="first", **kwargs):
        super().__init__(**kwargs)
        self.token = TOKENS[token]
        self.activation = resolve(activation)
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = layers.Dense(
            hidden_dim, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="dense"
        )

    def build(self, sequence_shape, padding_mask_shape):
        self.dense.build((sequence_shape[0], sequence_shape[-1]))
        self.built = True

    def call(self, sequence, padding_mask, training=None):
        x = self.dropout(self.token(sequence, padding_mask), training=training)
        return self.activation(self.dense(x))


@keras.saving.register_keras_serializable("garden")
class ClassificationHead(layers.Layer):
    """Class logits from vectors: dropout, then a dense layer (Devlin et al. 2018, section 4.1).

    Args:
        num_classes: c, the number of logits.
        dropout: rate on the vectors.

    Call arguments:
        x: float (b, d), one vector a row, or (b, t, d), one a position.

    Returns:
        float (b, c) or (b, t, c).

    >>> import numpy as np
    >>> from garden.layers import ClassificationHead
    >>> ClassificationHead(3)(np.ones((2, 8), "float32")).shape == (2, 3)
    True
    """

    def __init__(self, num_classes, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.logits = layers.Dense(
            num_classes, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="logits"
        )

    def build(self, input_shape):
        self.logits.build(input_shape)
        self.built = True

    def call(self, x, training=None):
        return self.logits(self.dropout(x, training=training))


@keras.saving.register_keras_serializable("garden")
class TokenHead(layers.Layer):
    """Logits at every position: dense(d), activation, dense(c), as in ELECTRA's discriminator (Clark et al. 2020).

    Args:
        num_outputs: c, logits a position.
        activation: a name for `garden.layers.activation`.

    Call arguments:
        sequence: float (b, t, d).
        padding_mask: int (b, t), which only a subclass reads.

    Returns:
        float (b, t, c).

    >>> import numpy as np
    >>> from garden.layers import TokenHead
    >>> TokenHead(1)(np.ones((2, 3, 8), "float32")).shape == (2, 3, 1)
    True
    """

    def __init__(self, num_outputs, activation="gelu_erf", **kwargs):
        super().__init__(**kwargs)
        self.activation = resolve(activation)
        self.logits = layers.Dense(
            num_outputs, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="logits"
        )

    def build(self, sequence_shape, padding_mask_shape=None):
        self.dense = layers.Dense(
            sequence_shape[-1], kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="dense"
        )
        self.dense.build(sequence_shape)
        self.logits.build(sequence_shape)
        self.built = True

    def call(self, sequence, padding_mask=None):
        return self.logits(self.activation(self.dense(sequence)))


@keras.saving.register_keras_serializable("garden")
class ContextTokenHead(TokenHead):
    """A `TokenHead` that adds the first token to every other, as DeBERTa 3's discriminator does (He et al. 2021).

    norm(token + first token), dense(d), activation, dense(c). Every packed sequence has a first token of its own.

    Args:
        num_outputs: c, logits a position.
        activation: a name for `garden.layers.activation`.
        layer_norm_epsilon: epsilon of the norm.

    Call arguments:
        sequence: float (b, t, d).
        padding_mask: int (b, t).

    Returns:
        float (b, t, c).

    >>> import numpy as np
    >>> from garden.layers import ContextTokenHead
    >>> ContextTokenHead(1)(np.ones((2, 3, 8), "float32"), np.ones((2, 3), "int32")).shape == (2, 3, 1)
    True
    """

    def __init__(self, num_outputs, activation="gelu_erf", layer_norm_epsilon=1e-7, **kwargs):
        super().__init__(num_outputs, activation, **kwargs)
        self.norm = layers.LayerNormalization(epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, sequence_shape, padding_mask_shape=None):
        self.norm.build(sequence_shape)
        super().build(sequence_shape)

    def call(self, sequence, padding_mask=None):
        first = ops.logical_and(attention_mask(padding_mask)[:, 0], ops.equal(positions(padding_mask), 0)[:, None, :])
        context = ops.einsum("bts,bsd->btd", ops.cast(first, sequence.dtype), sequence)
        return super().call(self.norm(sequence + context))


@keras.saving.register_keras_serializable("garden")
class MaskedLMHead(layers.Layer):
    """Vocabulary logits at chosen positions, through the transposed token table (Devlin et al. 2018, section 3.1).

    gather, dense(e), activation, norm, then h . token_embedding^T + bias. The table stays the backbone's: this layer
    uses it and does not own it.

    Args:
        token_embedding: a built `keras.layers.ReversibleEmbedding` (v, e).
        activation: a name for `garden.layers.activation`; the published heads use that of the backbone.
        layer_norm_epsilon: epsilon of the norm, likewise.

    Call arguments:
        sequence: float (b, t, d).
        mask_positions: int (b, p).

    Returns:
        float (b, p, v).

    >>> import keras, numpy as np
    >>> from garden.layers import MaskedLMHead
    >>> table = keras.layers.ReversibleEmbedding(10, 8)
    >>> table.build()
    >>> MaskedLMHead(table)(np.ones((2, 3, 8), "float32"), np.array([[0], [2]])).shape == (2, 1, 10)
    True
    """

    def __init__(self, token_embedding, activation="gelu_erf", layer_norm_epsilon=1e-12, **kwargs):
        super().__init__(**kwargs)
        # A plain attribute would be tracked, and the table saved a second time with the head.
        object.__setattr__(self, "token_embedding", token_embedding)
        self.activation = resolve(activation)
        self.norm = layers.LayerNormalization(epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, sequence_shape, mask_positions_shape):
        width = self.width(sequence_shape)
        self.dense = layers.Dense(width, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name="dense")
        self.dense.build(sequence_shape)
        self.norm.build((*sequence_shape[:-1], width))
        self.bias = self.add_weight(name="bias", shape=(self.token_embedding.input_dim,), initializer="zeros")
        self.built = True

    def call(self, sequence, mask_positions):
        chosen = ops.take_along_axis(sequence, mask_positions[:, :, None], axis=1)
        hidden = self.norm(self.activation(self.dense(chosen)))
        return ops.add(self.scores(hidden), self.bias)  # in mixed precision the table gives float32, the bias half

    def width(self, sequence_shape):
        """The width of the dense layer's output: that of the table."""
        return self.token_embedding.output_dim

    def scores(self, hidden):
        """hidden (b, p, width) -> (b, p, v), before the bias."""
        return self.token_embedding(hidden, reverse=True)
