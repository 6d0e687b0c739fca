"""Two-stream attention (XLNet, Yang et al. 2019, section 2.3): what a token says, and what stands at its place.

The content stream h sees tokens, its own included. The query stream g knows the places that are to be predicted but not
what stands there. Both run through the same layers, and the keys and values of both are made of the content.
"""

import keras
from keras import layers, ops

from .initializers import truncated_normal
from .mask import distances
from .xl import XLAttention


def same_segment(segment_ids, memory_mask=None):
    """Which query and key are of the same segment; only whether two ids are equal counts, a memory's are 0.

    Args:
        segment_ids: int (b, t).
        memory_mask: int (b, m), or None where there is no memory; its shape alone is read.

    Returns:
        bool (b, t, s).

    >>> import numpy as np
    >>> from garden.layers import same_segment
    >>> np.array(same_segment(np.array([[7, 0]]), memory_mask=np.array([[1]]))).tolist()
    [[[False, True, False], [True, False, True]]]
    """
    keys = segment_ids
    if memory_mask is not None:
        keys = ops.concatenate([ops.zeros_like(memory_mask, dtype=segment_ids.dtype), segment_ids], axis=1)
    return ops.equal(segment_ids[:, :, None], keys[:, None, :])


def stream_masks(attention_mask, permutation_mask, memory_mask=None):
    """Which key each of the two streams may attend where tokens are predicted in the order of a permutation.

    Args:
        attention_mask: bool (b, 1, t, s), what may be attended in any order.
        permutation_mask: int (b, t, t), 1 where a query may not look at a key: at those that come later, and at itself
            where it is to be predicted.
        memory_mask: int (b, m), or None where there is no memory; its shape alone is read.

    Returns:
        bool (b, 1, t, s) of the content stream, whose tokens always see themselves, and of the query stream.

    >>> import numpy as np
    >>> from garden.layers import stream_masks
    >>> content, query = stream_masks(np.ones((1, 1, 2, 2), bool), np.array([[[1, 0], [1, 1]]]))
    >>> np.array(content)[0, 0].astype(int).tolist(), np.array(query)[0, 0].astype(int).tolist()
    ([[1, 1], [0, 1]], [[0, 1], [0, 0]])
    """
    earlier = ops.equal(permutation_mask, 0)
    if memory_mask is not None:
        memory = ops.logical_or(ops.ones_like(memory_mask, dtype="bool")[:, None, :], earlier[:, :, :1])
        earlier = ops.concatenate([memory, earlier], axis=-1)
    query_mask = ops.logical_and(attention_mask, earlier[:, None, :, :])
    itself = ops.equal(distances(permutation_mask[:, 0, :], memory_mask), 0)
    return ops.logical_or(query_mask, itself), query_mask


@keras.saving.register_keras_serializable("garden")
class TwoStreamAttention(XLAttention):
    __doc__ = (
        """Transformer-XL's attention that also minds segments, and serves both streams with one set of weights.

    score(t, s) = ((q_t + u) k_s + (q_t + v) W r_{t-s} + (q_t + w) e) / sqrt(h), where e is one of two vectors, for keys
    of the query's own segment and for those of others.

    Called on the content h (b, t, d) alone it is the content stream. For the query stream it is called on g (b, p, d)
    with `source=h`, the mask of the query stream, and `target_mapping`.
"""
        + XLAttention.__doc__.split("sqrt(h)\n", 1)[1].split("    Returns:")[0]
        + """        same_segment: bool (b, t, s), see the function of this name; None leaves segments out.
        target_mapping: (b, p, t), the place of each query as a one in a row of zeros, or a row of zeros alone for a
            filling; None where queries stand at their places.

    Returns:
        float (b, t, hidden_dim), or (b, p, hidden_dim) with `target_mapping`.

    >>> import numpy as np
    >>> from garden.layers import RelativePositions, TwoStreamAttention, stream_masks
    >>> h, g = np.ones((1, 3, 8), "float32"), np.ones((1, 1, 8), "float32")
    >>> attention, relative = TwoStreamAttention(num_heads=2), RelativePositions()(h)
    >>> content_mask, query_mask = stream_masks(np.ones((1, 1, 3, 3), bool), np.array([[[0, 0, 1]] * 3]))
    >>> target = np.array([[[0, 0, 1]]])
    >>> attention(h, content_mask, relative=relative).shape == (1, 3, 8)
    True
    >>> attention(g, query_mask, source=h, target_mapping=target, relative=relative).shape == (1, 1, 8)
    True
    """
    )

    def build(self, input_shape):
        super().build(input_shape)
        head_dim = self.query.units // self.num_heads
        for name, shape in (("r_s_bias", ()), ("seg_embed", (2,))):
            weight = self.add_weight(
                name=name, shape=(*shape, self.num_heads, head_dim), initializer=truncated_normal()
            )
            setattr(self, name, weight)

    def attend(self, query, key, value, mask=None, training=None, target_mapping=None, **terms):
        if target_mapping is None:
            return super().attend(query, key, value, mask, training, **terms)
        target_mapping = ops.cast(target_mapping, query.dtype)
        query = ops.einsum("bpnh,bpt->btnh", query, target_mapping)
        context = super().attend(query, key, value, mask, training, **terms)
        return ops.einsum("btnh,bpt->bpnh", context, target_mapping)

    def bias(self, query, key, relative, same_segment=None):
        bias = super().bias(query, key, relative)
        if same_segment is None:
            return bias
        query = (query + self.r_s_bias) / self.divisor(query)
        same, other = (ops.einsum("btnh,nh->bnt", query, self.seg_embed[i])[..., None] for i in (0, 1))
        return bias + ops.where(same_segment[:, None, :, :], same, other)


@keras.saving.register_keras_serializable("garden")
class TwoStreamEmbeddings(layers.Layer):
    """Where the two streams begin: the content at the tokens' vectors, all queries at one vector (Yang et al. 2019).

    No position and no segment is added, and nothing normalised. `token_embedding` and `mask_embedding` are its layers.

    Args:
        vocabulary_size: v.
        hidden_dim: d.
        dropout: rate on what either stream begins with.

    Call arguments:
        token_ids: int (b, t).

    Returns:
        float (b, t, d), the first state of the content stream.

    >>> import numpy as np
    >>> from garden.layers import TwoStreamEmbeddings
    >>> embeddings = TwoStreamEmbeddings(10, 8)
    >>> embeddings(np.array([[1, 2, 3]])).shape == (1, 3, 8)
    True
    >>> embeddings.mask_embedding(np.zeros((1, 2, 3))).shape == (1, 2, 8)
    True
    """

    def __init__(self, vocabulary_size, hidden_dim, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.token_embedding = layers.ReversibleEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name="token_embedding",
        )
        self.mask_embedding = MaskEmbedding(hidden_dim, dropout, dtype=self.dtype_policy, name="mask_embedding")
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, token_ids_shape):
        self.token_embedding.build(token_ids_shape)
        self.mask_embedding.build()
        self.built = True

    def call(self, token_ids, training=None):
        return self.dropout(self.token_embedding(token_ids), training=training)


@keras.saving.register_keras_serializable("garden")
class MaskEmbedding(layers.Layer):
    """The vector with which every query begins, whatever stands at its place.

    Args:
        hidden_dim: d.
        dropout: rate on it.

    Call arguments:
        target_mapping: (b, p, t), of which only the shape is read.

    Returns:
        float (b, p, d), the first state of the query stream.

    >>> import numpy as np
    >>> from garden.layers import MaskEmbedding
    >>> MaskEmbedding(8)(np.zeros((1, 2, 3))).shape == (1, 2, 8)
    True
    """

    def __init__(self, hidden_dim, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, target_mapping_shape=None):
        self.embeddings = self.add_weight(name="embeddings", shape=(self.hidden_dim,), initializer=truncated_normal())
        self.built = True

    def call(self, target_mapping, training=None):
        rows, queries = ops.shape(target_mapping)[:2]
        return self.dropout(ops.broadcast_to(self.embeddings, (rows, queries, self.hidden_dim)), training=training)

    def compute_output_spec(self, target_mapping, training=None):
        return keras.KerasTensor((*target_mapping.shape[:2], self.hidden_dim), dtype=self.compute_dtype)
