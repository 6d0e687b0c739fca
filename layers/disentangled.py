"""Attention to content and to position apart (DeBERTa, He et al. 2020)."""

import keras
from keras import layers, ops

from .attention import Attention
from .shift import relative_scores

TERMS = ("c2p", "p2c", "p2p")


@keras.saving.register_keras_serializable("garden")
class DisentangledAttention(Attention):
    """Attention whose score has, beside content to content, terms with the relative position (He et al. 2020, 3.1).

    score(t, s) = (q_t k_s + q_t kr_{t-s} + k_s qr_{t-s} + qr_{t-s} kr_{t-s}) / sqrt(h * c)

    kr and qr are projections of the table of relative positions, and c is the number of terms, that of the content
    included. Both terms are read at t - s, as the published models were trained, and not one at s - t as the paper's
    equation 4 has it. They are computed for every distance, and shifted to the keys.

    Args:
        num_heads: n; it divides the width of the input.
        dropout: rate on the attention probabilities.
        pos_att_type: any of `c2p` (content to position), `p2c` (position to content) and `p2p` (position to position,
            in no published model) with `|` between them, or `""`.
        share_att_key: whether the table goes through the projections of the content.
        key_bias: whether the projections to keys have a bias; those of version 1 have none.
        position_dropout: rate on the table.

    Call arguments:
        x: float (b, t, d), of which queries are made.
        attention_mask: bool, broadcast to (b, n, t, s), True where attention is allowed.
        source: float (b, t, d), of which keys and values are made; None means x.
        table, rows: float (r, d) and int (2, c, j + t), made by `RelativeEmbedding`.

    Returns:
        float (b, t, d).

    Raises:
        ValueError: a term that is none of these.

    >>> import numpy as np
    >>> from garden.layers import DisentangledAttention, RelativeEmbedding
    >>> x = np.ones((1, 3, 8), "float32")
    >>> table, rows = RelativeEmbedding(bucket_size=4, hidden_dim=8)(x[:, :, 0])
    >>> DisentangledAttention(num_heads=2)(x, table=table, rows=rows).shape == (1, 3, 8)
    True
    """

    def __init__(
        self,
        num_heads,
        dropout=0.0,
        pos_att_type="c2p|p2c",
        share_att_key=False,
        key_bias=True,
        position_dropout=0.0,
        **kwargs,
    ):
        terms = pos_att_type.split("|") if pos_att_type else []
        if unknown := sorted(set(terms) - set(TERMS)):
            raise ValueError(f"pos_att_type has {', '.join(unknown)}; there are {', '.join(TERMS)}.")
        super().__init__(num_heads, dropout, **kwargs)
        self.terms = tuple(terms)
        self.share_att_key = share_att_key
        self.key_bias = key_bias
        self.position_dropout = layers.Dropout(position_dropout, dtype=self.dtype_policy, name="position_dropout")

    def build(self, input_shape):
        super().build(input_shape)
        if self.share_att_key:
            return
        for name, readers in (("position_key", {"c2p", "p2p"}), ("position_query", {"p2c", "p2p"})):
            if readers.intersection(self.terms):
                self.build_one(name, self.query.units, input_shape)

    def build_one(self, name, units, input_shape, use_bias=None):
        biased = self.key_bias if name in ("key", "position_key") else use_bias
        super().build_one(name, units, input_shape, biased)

    def attend(self, query, key, value, mask=None, training=None, **relative):
        if training and self.dropout.rate > 0:
            return self.weigh(query, key, value, mask, training, **relative)[0]
        bias = self.bias(query, key, **relative)
        return super().attend(query, key, value, mask, training, bias=bias)

    def scores(self, query, key, **relative):
        return super().scores(query, key, bias=self.bias(query, key, **relative))

    def bias(self, query, key, table, rows):
        """What the terms with a position add to the scores, float (b, n, t, s), scaled; None without such terms."""
        table = self.position_dropout(table)  # by the call's own `training`
        terms = [getattr(self, f"_{term}")(query / self.divisor(query), key, table, rows) for term in self.terms]
        return sum(terms[1:], terms[0]) if terms else None

    def _c2p(self, query, key, table, rows):
        return relative_scores(query, self._position("key", table, rows[0]))

    def _p2c(self, query, key, table, rows):
        # Seen from the key the query lies at the opposite distance.
        position = self._position("query", table, rows[1]) / self.divisor(query)
        return ops.swapaxes(relative_scores(key, position), 2, 3)

    def _p2p(self, query, key, table, rows):
        position = self._position("query", table, rows[0]) / self.divisor(query)
        both = ops.sum(position * self._position("key", table, rows[0]), axis=-1, keepdims=True)
        return relative_scores(ops.ones_like(query[:1, :, :, :1]), both)

    def _position(self, name, table, rows):
        """The table (r, d) as keys or queries, one for each of the distances: float (c, j + t, n, h)."""
        dense = getattr(self, name if self.share_att_key else f"position_{name}")
        projected = dense(table)
        return ops.take(ops.reshape(projected, (-1, self.num_heads, dense.units // self.num_heads)), rows, axis=0)

    def divisor(self, query):
        return (query.shape[-1] * (1 + len(self.terms))) ** 0.5
