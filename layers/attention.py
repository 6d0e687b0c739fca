"""Multi-head scaled dot-product attention."""

import keras
from keras import layers, ops

from .initializers import kernel_initializer


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

    A subclass for another paper says how queries meet keys (`scores`) and how probabilities meet values (`mix`), both
    of which receive the call's further arguments, its terms.

    Args:
        num_heads: n; it divides `hidden_dim` where there is no `head_dim`.
        dropout: rate on the attention probabilities.
        hidden_dim: width of the output; None means that of the input.
        head_dim: h, width of a head; None means hidden_dim / n.
        use_bias: whether the four projections have one.
        scale: what scores are divided by; None means sqrt(h).
        initializer: a name for `garden.layers.kernel_initializer`. With `"fan_in"` queries start smaller by what scores
            are not divided by.

    Call arguments:
        x: float (b, t, d), of which queries are made.
        attention_mask: bool, broadcast to (b, n, t, s), True where attention is allowed.
        source: float (b, s, d), of which keys and values are made; None means x.
        bias: float, broadcast to (b, n, t, s), added to the scores.

    Returns:
        float (b, t, hidden_dim).

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`.

    >>> import numpy as np
    >>> from garden.layers import Attention
    >>> Attention(num_heads=2)(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
    True
    """

    def __init__(
        self,
        num_heads,
        dropout=0.0,
        hidden_dim=None,
        head_dim=None,
        use_bias=True,
        scale=None,
        initializer="truncated_normal",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.head_dim = head_dim
        self.use_bias = use_bias
        self.scale = scale
        self.initializer = initializer
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape):
        self.build_dense(query=input_shape, key=input_shape, value=input_shape)

    def build_dense(self, **input_shapes):
        """Makes query, key and value for inputs of these shapes, and the output behind them."""
        width = self.width(input_shapes["value"])
        if self.head_dim is None and width % self.num_heads:
            raise ValueError(f"num_heads={self.num_heads} does not divide hidden_dim={width}.")
        inner = self.num_heads * (self.head_dim or width // self.num_heads)
        for name, shape in input_shapes.items():
            self.build_one(name, inner, shape)
        self.build_one("output_dense", width, (None, None, inner))
        self.built = True

    def build_one(self, name, units, input_shape, use_bias=None):
        """Makes the dense layer `self.NAME`."""
        undivided = self.scale / (units / self.num_heads) ** 0.5 if name == "query" and self.scale else 1.0
        dense = layers.Dense(
            units,
            use_bias=self.use_bias if use_bias is None else use_bias,
            kernel_initializer=kernel_initializer(self.initializer, undivided),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build(input_shape)
        setattr(self, name, dense)

    def width(self, input_shape):
        """`hidden_dim`, or the width of the input in its place."""
        return self.hidden_dim or input_shape[-1]

    def call(self, x, attention_mask=None, training=None, source=None, **terms):
        context = self.attend(*self.project(x, source), attention_mask, training, **terms)
        return self.output_dense(merge_heads(context))

    def explicit(self, x, attention_mask=None, training=None, source=None, **terms):
        """The same attention with everything that the fused path hides.

        Returns:
            The output (b, t, d), and a dictionary: `queries`, `keys`, `values` (b, t, n, h), `attention_scores`
            scaled and before the mask, `attention_probs` before dropout, both (b, n, t, s).
        """
        context, taps = self.weigh(*self.project(x, source), attention_mask, training, **terms)
        return self.output_dense(merge_heads(context)), taps

    def cached(self, x, cache, index, attention_mask=None, **terms):
        """One step of decoding: the tokens from place `index` on attend what the cache holds, themselves included.

        Args:
            x: float (b, t, d).
            cache: float (b, 2, s, n, h), the keys and values of s places.
            index: int scalar, the place of x's first token.
            attention_mask: bool, broadcast to (b, n, t, s).
            **terms: as in a call.

        Returns:
            The output (b, t, d), and the cache with the places `index` to `index + t - 1` filled.
        """
        query, key, value = self.project(x)
        update = ops.cast(ops.stack([key, value], axis=1), cache.dtype)
        cache = ops.slice_update(cache, (0, 0, index, 0, 0), update)
        context = self.attend(query, cache[:, 0], cache[:, 1], attention_mask, **terms)
        return self.output_dense(merge_heads(context)), cache

    def remember(self, source):
        """The keys and values of a source (b, s, d), made once for all steps of decoding: float (b, 2, s, n, h)."""
        projected = self.key(source), self.value(source)
        return ops.stack([split_heads(part, self.num_heads) for part in projected], axis=1)

    def recall(self, x, memory, attention_mask=None, **terms):
        """A call whose source is given by what `remember` made of it."""
        query = split_heads(self.query(x), self.num_heads)
        context = self.attend(query, memory[:, 0], memory[:, 1], attention_mask, **terms)
        return self.output_dense(merge_heads(context))

    def project(self, x, source=None):
        """Query (b, t, n, h) from x, key and value (b, s, n, h) from `source` or x."""
        source = x if source is None else source
        projected = self.query(x), self.key(source), self.value(source)
        return tuple(split_heads(part, self.num_heads) for part in projected)

    def attend(self, query, key, value, mask=None, training=None, bias=None):
        """The context (b, t, n, h), fused where no probability is dropped."""
        if training and self.dropout.rate > 0:
            return self.weigh(query, key, value, mask, training, bias=bias)[0]
        if keras.backend.backend() == "jax" and keras.backend.standardize_dtype(query.dtype) == "float16":
            # Its fused attention asks for products of float16 that JAX compiles for GPUs only.
            probs = masked_softmax(Attention.scores(self, query, key, bias), mask)
            return Attention.mix(self, probs, value)
        if bias is not None and mask is not None:  # one of the two is all that PyTorch's fused attention takes
            bias, mask = ops.where(mask, bias, fill(bias.dtype)), None
        return ops.dot_product_attention(query, key, value, bias=bias, mask=mask, scale=1 / self.divisor(query))

    def weigh(self, query, key, value, mask=None, training=None, **terms):
        """The context (b, t, n, h) step by step, and the dictionary of `explicit`."""
        scores = self.scores(query, key, **terms)
        probs = masked_softmax(scores, mask)
        context = self.mix(self.dropout(probs, training=training), value, **terms)
        taps = {"queries": query, "keys": key, "values": value, "attention_scores": scores, "attention_probs": probs}
        return context, taps

    def scores(self, query, key, bias=None):
        """How much every query wants every key, (b, n, t, s), scaled and before the mask."""
        scores = ops.einsum("btnh,bsnh->bnts", query / self.divisor(query), key)
        return scores if bias is None else scores + ops.cast(bias, scores.dtype)

    def mix(self, probs, value, **terms):
        """The values (b, s, n, h) in these proportions (b, n, t, s), as (b, t, n, h)."""
        return ops.einsum("bnts,bsnh->btnh", probs, value)

    def divisor(self, query):
        """`scale`, or sqrt(h) in its place."""
        return self.scale or query.shape[-1] ** 0.5

    def compute_output_spec(self, x, attention_mask=None, training=None, source=None, **terms):
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
        logits = ops.where(mask, logits, fill("float32"))
    return ops.cast(ops.softmax(logits, axis=-1), scores.dtype)


def fill(dtype):
    """The score of a key that is not allowed, so far down that scores beside it do not count; finite in its dtype."""
    return ops.cast(-3e4 if keras.backend.standardize_dtype(dtype) == "float16" else -1e30, dtype)
