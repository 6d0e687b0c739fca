"""Attention over relative positions and a memory of earlier segments (Transformer-XL, Dai et al. 2019)."""

import keras
from keras import layers, ops

from .attention import Attention, split_heads
from .initializers import truncated_normal
from .shift import relative_shift


def relative_distances(queries, keys, causal=False, last=None):
    """The distances of `relative_shift`'s columns, from the last query's to the first key down.

    Args:
        queries: t.
        keys: s, those of the memory included.
        causal: whether distances end at 0, r = s of them, and not at that of the first query to the last key, r = s +
            t - 1.
        last: the last query's place among the keys; None means that of the last key. A decoder whose cache is not full
            gives `index + t - 1`.

    Returns:
        float32 (r,), positive where the key lies behind the query.

    >>> import numpy as np
    >>> from garden.layers import relative_distances
    >>> np.array(relative_distances(3, 5)).tolist(), np.array(relative_distances(3, 5, causal=True)).tolist()
    ([4.0, 3.0, 2.0, 1.0, 0.0, -1.0, -2.0], [4.0, 3.0, 2.0, 1.0, 0.0])
    """
    last = keys - 1 if last is None else last
    columns = keys if causal else keys + queries - 1
    return ops.cast(last, "float32") - ops.arange(columns, dtype="float32")


def sinusoids(distances, width):
    """Sines, then cosines, of distances at wavelengths from 2 pi to 10000 * 2 pi (Dai et al. 2019, 3.3).

    Unlike those of Vaswani et al. 2017 the two are not interleaved.

    Args:
        distances: float (..., r).
        width: d, an even number.

    Returns:
        float32 (..., r, d).

    >>> import numpy as np
    >>> from garden.layers import sinusoids
    >>> [round(float(x), 2) for x in sinusoids(np.ones(1), 4)[0]]
    [0.84, 0.01, 0.54, 1.0]
    """
    frequencies = ops.convert_to_tensor([10000 ** (-j / width) for j in range(0, width, 2)], "float32")
    angles = ops.cast(distances, "float32")[..., None] * frequencies
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


@keras.saving.register_keras_serializable("garden")
class RelativePositions(layers.Layer):
    """The table of relative positions that all layers of a model project: sinusoids of every distance, dropped out.

    Args:
        causal: whether no query looks ahead, so that no distance is negative.
        clamp_length: distances beyond it, either way, count as it; None leaves all as they are.
        bi_data: whether the second half of the batch is read backwards, its distances negated (Yang et al. 2019).
        dropout: rate on the table.

    Call arguments:
        x: float (b, t, d), the queries, of which only the shape is read.
        memory: float (b, m, d), the earlier segments, of which only the shape is read; None means none.
        keys: s, the number of keys; None means those of x and of the memory.
        last: see `relative_distances`.
        ahead: how many places the queries stand ahead of x.

    Returns:
        float (1, r, d), or (b, r, d) with `bi_data`.

    Raises:
        ValueError: d is odd, or so is b with `bi_data`.

    >>> import numpy as np
    >>> from garden.layers import RelativePositions
    >>> x = np.ones((2, 3, 8), "float32")
    >>> RelativePositions()(x).shape == (1, 5, 8), RelativePositions(causal=True)(x, memory=x).shape == (1, 6, 8)
    (True, True)
    """

    def __init__(self, causal=False, clamp_length=None, bi_data=False, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.causal = causal
        self.clamp_length = clamp_length
        self.bi_data = bi_data
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape, memory_shape=None):
        if x_shape[-1] % 2:
            raise ValueError(
                f"hidden_dim={x_shape[-1]} is odd, and half of a relative position is sines: make it even."
            )
        self.built = True

    def call(self, x, memory=None, keys=None, last=None, ahead=0, training=None):
        queries = ops.shape(x)[1]
        if keys is None:
            keys = queries if memory is None else queries + ops.shape(memory)[1]
        distances = relative_distances(queries, keys, self.causal, last) + ahead
        if self.clamp_length:
            distances = ops.clip(distances, -self.clamp_length, self.clamp_length)
        table = sinusoids(self._by_row(distances, x), x.shape[-1])
        return self.dropout(ops.cast(table, self.compute_dtype), training=training)

    def _by_row(self, distances, x):
        """The distances (r,) of every row, (1, r) or (b, r)."""
        if not self.bi_data:
            return distances[None]
        rows = ops.shape(x)[0]
        if isinstance(rows, int) and rows % 2:
            raise ValueError(f"bi_data reads half of a batch backwards, and {rows} rows have no half: add or drop one.")
        forward = ops.arange(rows) < rows // 2
        return ops.where(forward, 1.0, -1.0)[:, None] * distances

    def compute_output_spec(self, x, memory=None, keys=None, last=None, ahead=0, training=None):
        rows = x.shape[0] if self.bi_data else 1
        return keras.KerasTensor((rows, None, x.shape[-1]), dtype=self.compute_dtype)


@keras.saving.register_keras_serializable("garden")
class RelativeBiases(layers.Layer):
    """What every query wants whatever it says: the vectors u and v of Dai et al. 2019, section 3.3.

    They are a part of their own so that layers can share them.

    Args:
        num_heads: n.
        head_dim: h.

    Attributes:
        r_w_bias: u (n, h), added to the queries that meet the keys' content.
        r_r_bias: v (n, h), added to those that meet the keys' distance.

    >>> from garden.layers import RelativeBiases
    >>> biases = RelativeBiases(num_heads=2, head_dim=4)
    >>> biases.build()
    >>> biases.count_params()
    16
    """

    def __init__(self, num_heads, head_dim, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.head_dim = head_dim

    def build(self, input_shape=None):
        self.r_w_bias = self._vectors("r_w_bias")
        self.r_r_bias = self._vectors("r_r_bias")
        self.built = True

    def _vectors(self, name):
        return self.add_weight(name=name, shape=(self.num_heads, self.head_dim), initializer=truncated_normal())


@keras.saving.register_keras_serializable("garden")
class XLAttention(Attention):
    """Attention to content and to distance, over this segment and a memory of earlier ones (Dai et al. 2019, 3.3).

    score(t, s) = ((q_t + u) k_s + (q_t + v) W r_{t-s}) / sqrt(h)

    Its projections have no bias.

    Args:
        num_heads: n; it divides `hidden_dim` where there is no `head_dim`.
        dropout: rate on the attention probabilities.
        hidden_dim: width of the output; None means that of the input.
        head_dim: h, width of a head; None means hidden_dim / n.
        scale: what the whole sum is divided by; None means sqrt(h).
        biases: a `RelativeBiases` that layers share; None makes one for this layer alone.

    Call arguments:
        x: float (b, t, d), of which queries are made.
        attention_mask: bool, broadcast to (b, n, t, s), True where attention is allowed; the memory's keys come first.
        source: float (b, s - m, d), of which keys and values are made; None means x.
        memory: float (b, m, d), the layer's input of earlier segments, in front of the source; None means none.
        relative: float (1 or b, r, d), made by `RelativePositions`.

    Returns:
        float (b, t, hidden_dim).

    >>> import numpy as np
    >>> from garden.layers import RelativePositions, XLAttention
    >>> x, memory = np.ones((1, 3, 8), "float32"), np.ones((1, 2, 8), "float32")
    >>> relative = RelativePositions()(x, memory)
    >>> XLAttention(num_heads=2)(x, memory=memory, relative=relative).shape == (1, 3, 8)
    True
    """

    def __init__(self, num_heads, dropout=0.0, hidden_dim=None, head_dim=None, scale=None, biases=None, **kwargs):
        super().__init__(num_heads, dropout, hidden_dim, head_dim, use_bias=False, scale=scale, **kwargs)
        self.biases = biases
        self.shares = biases is not None

    def build(self, input_shape):
        super().build(input_shape)
        self.build_one("relative_dense", self.query.units, input_shape)
        if self.biases is None:
            head_dim = self.query.units // self.num_heads
            self.biases = RelativeBiases(self.num_heads, head_dim, dtype=self.dtype_policy, name="biases")
        if not self.biases.built:
            self.biases.build()

    def call(self, x, attention_mask=None, training=None, source=None, memory=None, **terms):
        return super().call(x, attention_mask, training, behind(memory, x if source is None else source), **terms)

    def explicit(self, x, attention_mask=None, training=None, source=None, memory=None, **terms):
        return super().explicit(x, attention_mask, training, behind(memory, x if source is None else source), **terms)

    def attend(self, query, key, value, mask=None, training=None, **terms):
        if training and self.dropout.rate > 0:
            return self.weigh(query, key, value, mask, training, **terms)[0]
        bias = self.bias(query, key, **terms)
        return super().attend(query + self.biases.r_w_bias, key, value, mask, training, bias=bias)

    def scores(self, query, key, **terms):
        return super().scores(query + self.biases.r_w_bias, key, bias=self.bias(query, key, **terms))

    def bias(self, query, key, relative):
        """What is added to the scores of the keys' content, (b, n, t, s), scaled."""
        query = (query + self.biases.r_r_bias) / self.divisor(query)
        relative = split_heads(self.relative_dense(relative), self.num_heads)
        if relative.shape[0] == 1:  # one table for all rows
            scores = ops.einsum("btnh,rnh->bntr", query, relative[0])
        else:
            scores = ops.einsum("btnh,brnh->bntr", query, relative)
        return relative_shift(scores, ops.shape(key)[1])

    def compute_output_spec(self, x, attention_mask=None, training=None, source=None, memory=None, **terms):
        return super().compute_output_spec(x)

    def get_config(self):
        config = {name: getattr(self, name) for name in ("num_heads", "hidden_dim", "head_dim", "scale")}
        biases = keras.saving.serialize_keras_object(self.biases) if self.shares else None
        return {**super().get_config(), **config, "dropout": self.dropout.rate, "biases": biases}

    @classmethod
    def from_config(cls, config):
        biases = keras.saving.deserialize_keras_object(config["biases"]) if config["biases"] else None
        return cls(**{**config, "biases": biases})


def behind(memory, x):
    """x (b, t, d) behind a memory (b, m, d), as (b, m + t, d); or x itself, where there is no memory.

    >>> import numpy as np
    >>> from garden.layers.xl import behind
    >>> behind(np.zeros((1, 2, 4)), np.zeros((1, 3, 4))).shape == (1, 5, 4)
    True
    """
    return x if memory is None else ops.concatenate([ops.cast(memory, x.dtype), x], axis=1)
