"""Self-attention with relative position representations (Shaw et al. 2018)."""

import keras
from keras import ops

from .attention import Attention
from .initializers import kernel_initializer


def clipped_places(distance, limit: int, dtype="float32"):
    """Which relative position each key has for each query, as one-hot vectors.

    Position 0 is `limit` places or more before the query, `limit` the query's own, 2 * limit as many or more behind it.
    The vectors route numbers between (t, s) and (t, r) by matrix products, which on all backends cost no more than
    gathering and are differentiated as cheaply.

    Args:
        distance: int (t, s), the query's place minus the key's.
        limit: k; farther places count as this.
        dtype: of the result.

    Returns:
        (t, s, r) with r = 2 * limit + 1.

    >>> import numpy as np
    >>> from garden.layers import clipped_places
    >>> np.array(clipped_places(np.array([[0, -1, -2, -3]]), 2)).argmax(-1).tolist()
    [[2, 3, 4, 4]]
    """
    return ops.one_hot(ops.clip(-distance, -limit, limit) + limit, 2 * limit + 1, dtype=dtype)


@keras.saving.register_keras_serializable("garden")
class RelativeAttention(Attention):
    """Attention whose keys and values know how far away they are (Shaw et al. 2018, section 3.2).

    score(t, s) = q_t (k_s + wK[place of s]) / sqrt(h), and the output is the sum of p(t, s) (v_s + wV[place of s]).
    Both terms go by relative positions, (b, n, t, r); nothing is as large as (t, s, h).

    Args:
        max_relative_position: k; farther places count as this.
        share_heads: whether all heads have the same tables, as in tensor2tensor, or each its own.
        num_heads, dropout, hidden_dim, head_dim, use_bias, scale, initializer: as in `garden.layers.Attention`.

    Call arguments:
        x, attention_mask, source: as in `garden.layers.Attention`.
        places: float (t, s, r), see `clipped_places`.

    Returns:
        float (b, t, hidden_dim).

    >>> import numpy as np
    >>> from garden.layers import RelativeAttention, clipped_places, distances
    >>> x, mask = np.ones((1, 5, 8), "float32"), np.ones((1, 5))
    >>> RelativeAttention(2, num_heads=2)(x, places=clipped_places(distances(mask), 2)).shape == (1, 5, 8)
    True
    """

    def __init__(self, max_relative_position, num_heads, share_heads=False, **kwargs):
        super().__init__(num_heads, **kwargs)
        self.max_relative_position = max_relative_position
        self.share_heads = share_heads

    def build(self, input_shape):
        super().build(input_shape)
        heads = 1 if self.share_heads else self.num_heads
        shape = (heads, 2 * self.max_relative_position + 1, self.query.units // self.num_heads)
        for name in ("relative_keys", "relative_values"):
            table = self.add_weight(name=name, shape=shape, initializer=kernel_initializer("glorot_uniform"))
            setattr(self, name, table)

    def attend(self, query, key, value, mask=None, training=None, places=None):
        return self.weigh(query, key, value, mask, training, places=places)[0]

    def scores(self, query, key, places=None):
        query = query / self.divisor(query)
        by_place = ops.einsum("btnh,nrh->bntr", query, self._table(self.relative_keys))
        return ops.einsum("btnh,bsnh->bnts", query, key) + ops.einsum("bntr,tsr->bnts", by_place, places)

    def mix(self, probs, value, places=None):
        by_place = ops.einsum("bnts,tsr->bntr", probs, places)
        return super().mix(probs, value) + ops.einsum("bntr,nrh->btnh", by_place, self._table(self.relative_values))

    def _table(self, table):
        table = ops.cast(table, self.compute_dtype)
        return ops.broadcast_to(table, (self.num_heads, *table.shape[1:]))
