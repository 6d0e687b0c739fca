"""Multi-head scaled dot-product attention."""

import keras
from keras import layers, ops

from .initializers import truncated_normal


def split_heads(x, num_heads):
    """(b, t, d) -> (b, t, n, h) with d = n * h; heads are the slow part of the last axis.

    >>> import numpy as np
    >>> from garden.layers import split_heads
    >>> split_heads(np.zeros((2, 3, 8)), 4).shape == (2, 3, 4, 2)
    True
    """
    return ops.reshape(x, (-1, ops.shape(x)[1], num_heads, x.shape[-1] // num_heads))


def merge_heads(x):
    """(b, t, n, h) -> (b, t, n * h).

    >>> import numpy as np
    >>> from garden.layers import merge_heads
    >>> merge_heads(np.zeros((2, 3, 4, 2))).shape == (2, 3, 8)
    True
    """
    return ops.reshape(x, (-1, ops.shape(x)[1], x.shape[-2] * x.shape[-1]))


@keras.saving.register_keras_serializable("garden")
class Attention(layers.Layer):
    """Self-attention (Vaswani et al. 2017, section 3.2): softmax(q k^T / sqrt(h)) v over n heads.

    There are two ways through it. The fused one (`keras.ops.dot_product_attention`) never materialises the matrices; it
    serves inference and training without attention dropout. The explicit one drops probabilities and can be tapped.

    Args:
        num_heads: n; it divides `hidden_dim`.
        dropout: rate on the attention probabilities.
        hidden_dim: width of queries, keys, values and output; None means that of the input.

    Call arguments:
        x: float (b, t, d).
        attention_mask: bool, broadcast to (b, n, t, s), True where attention is allowed.

    Returns:
        float (b, t, hidden_dim).

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`.

    >>> import numpy as np
    >>> from garden.layers import Attention
    >>> Attention(num_heads=2)(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
    True
    """

    def __init__(self, num_heads, dropout=0.0, hidden_dim=None, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape):
        self.build_dense(query=input_shape, key=input_shape, value=input_shape)

    def build_dense(self, **input_shapes):
        """Makes query, key and value for inputs of these shapes, and the output behind them."""
        width = self.width(input_shapes["value"])
        if width % self.num_heads:
            raise ValueError(f"num_heads={self.num_heads} does not divide hidden_dim={width}.")
        for name, shape in {**input_shapes, "output_dense": (None, None, width)}.items():
            dense = layers.Dense(width, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name=name)
            dense.build(shape)
            setattr(self, name, dense)
        self.built = True

    def width(self, input_shape):
        """`hidden_dim`, or the width of the input in its place."""
        return self.hidden_dim or input_shape[-1]

    def call(self, x, attention_mask=None, training=None):
        if training and self.dropout.rate > 0:
            return self.explicit(x, attention_mask, training)[0]
        query, key, value = self.project(x)
        context = ops.dot_product_attention(query, key, value, mask=attention_mask)
        return self.output_dense(merge_heads(context))

    def explicit(self, x, attention_mask=None, training=None):
        """The same attention with everything that the fused path hides.

        Returns:
            The output (b, t, d), and a dictionary: `queries`, `keys`, `values` (b, t, n, h), `attention_scores`
            scaled and before the mask, `attention_probs` before dropout, both (b, n, t, s).
        """
        query, key, value = self.project(x)
        scores = ops.einsum("btnh,bsnh->bnts", query / self.scale(query), key)
        probs = masked_softmax(scores, attention_mask)
        context = ops.einsum("bnts,bsnh->btnh", self.dropout(probs, training=training), value)
        taps = {"queries": query, "keys": key, "values": value, "attention_scores": scores, "attention_probs": probs}
        return self.output_dense(merge_heads(context)), taps

    def project(self, x):
        """x (b, t, d) -> query, key, value (b, t, n, h)."""
        return tuple(split_heads(dense(x), self.num_heads) for dense in (self.query, self.key, self.value))

    @staticmethod
    def scale(query):
        """sqrt(h), what queries are divided by."""
        return query.shape[-1] ** 0.5

    def compute_output_spec(self, x, attention_mask=None, training=None):
        return keras.KerasTensor((*x.shape[:-1], self.width(x.shape)), dtype=self.compute_dtype)


def masked_softmax(scores, mask=None):
    """Softmax over the keys that `mask` allows, in float32 whatever the dtype of the scores.

    The fill is a large finite number: a row without any allowed key gives equal probabilities, not NaN.

    Args:
        scores: float (b, n, t, s).
        mask: bool, broadcast to (b, n, t, s), or None.

    Returns:
        float (b, n, t, s) in the dtype of `scores`.

    >>> import numpy as np
    >>> from garden.layers.attention import masked_softmax
    >>> np.array(masked_softmax(np.zeros((1, 1, 1, 2)), np.array([[[[True, False]]]]))).tolist()
    [[[[1.0, 0.0]]]]
    """
    logits = ops.cast(scores, "float32")
    if mask is not None:
        logits = ops.where(mask, logits, -1e30)
    return ops.cast(ops.softmax(logits, axis=-1), scores.dtype)
