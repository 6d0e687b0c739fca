"""What the integer `padding_mask` means, as pure functions.

`padding_mask` is (b, t): 0 is padding, k >= 1 says that the position belongs to the k-th sequence packed into its row.
With one sequence a row this is the usual 0/1 mask. Nothing here depends on where the padding stands.

`memory_mask` is (b, m): 0 says that a place of the memory in front of the row holds nothing. With it the keys are those
of the memory and then those of the row, s = m + t, and every query may attend what the memory holds.
"""

from keras import ops


def attention_mask(padding_mask, memory_mask=None):
    """Which query may attend which key: those with the same number.

    Padding attends padding, so that a row of nothing else has a finite softmax.

    Args:
        padding_mask: int (b, t).
        memory_mask: int (b, m), or None where there is no memory.

    Returns:
        bool (b, 1, t, s), True where attention is allowed; the 1 is the axis of heads.

    >>> import numpy as np
    >>> from garden.layers import attention_mask
    >>> np.array(attention_mask(np.array([[1, 2, 2, 0]])))[0, 0].astype(int).tolist()
    [[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    """
    allowed = _same_sequence(padding_mask)
    if memory_mask is not None:
        remembered = ops.logical_and(memory_mask[:, None, :] > 0, ops.ones_like(padding_mask[:, :, None], "bool"))
        allowed = ops.concatenate([remembered, allowed], axis=-1)
    return allowed[:, None, :, :]


def causal_mask(padding_mask, memory_mask=None):
    """Which query may attend which key where none may look ahead: those with the same number and no later place.

    Args:
        padding_mask: int (b, t).
        memory_mask: int (b, m), or None where there is no memory.

    Returns:
        bool (b, 1, t, s), True where attention is allowed.

    >>> import numpy as np
    >>> from garden.layers import causal_mask
    >>> np.array(causal_mask(np.array([[1, 2, 2, 0]])))[0, 0].astype(int).tolist()
    [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    """
    return ops.logical_and(attention_mask(padding_mask, memory_mask), distances(padding_mask, memory_mask) >= 0)


def cross_mask(padding_mask, source_padding_mask):
    """Which query may attend which key of another row, an encoder's: those with the same number.

    Args:
        padding_mask: int (b, t), of the queries.
        source_padding_mask: int (b, s), of the keys.

    Returns:
        bool (b, 1, t, s), True where attention is allowed.

    >>> import numpy as np
    >>> from garden.layers import cross_mask
    >>> np.array(cross_mask(np.array([[1, 2, 2]]), np.array([[1, 1, 2, 0]])))[0, 0].astype(int).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]]
    """
    return ops.equal(padding_mask[:, :, None], source_padding_mask[:, None, :])[:, None, :, :]


def distances(padding_mask, memory_mask=None):
    """How many places a key lies behind a query, by columns: negative for a key that is yet to come.

    Args:
        padding_mask: int (b, t); its shape alone is read.
        memory_mask: int (b, m), or None where there is no memory; likewise.

    Returns:
        int32 (t, s), the query's place minus the key's.

    >>> import numpy as np
    >>> from garden.layers import distances
    >>> np.array(distances(np.ones((1, 3)))).tolist()
    [[0, -1, -2], [1, 0, -1], [2, 1, 0]]
    >>> np.array(distances(np.ones((1, 2)), memory_mask=np.ones((1, 2)))).tolist()
    [[2, 1, 0, -1], [3, 2, 1, 0]]
    """
    places = _places(padding_mask)
    if memory_mask is None:
        return places[:, None] - places[None, :]
    remembered = _places(memory_mask)
    places = places + ops.sum(ops.ones_like(remembered))
    return places[:, None] - ops.concatenate([remembered, places])[None, :]


def positions(padding_mask):
    """The place of every token inside its own sequence, counted from 0.

    Args:
        padding_mask: int (b, t).

    Returns:
        int32 (b, t).

    >>> import numpy as np
    >>> from garden.layers import positions
    >>> np.array(positions(np.array([[0, 0, 1, 1, 1], [1, 1, 2, 2, 2]]))).tolist()
    [[0, 1, 0, 1, 2], [0, 1, 0, 1, 2]]
    """
    column = ops.cumsum(ops.ones_like(padding_mask), axis=1)
    earlier = column[:, None, :] < column[:, :, None]
    return ops.sum(ops.cast(ops.logical_and(_same_sequence(padding_mask), earlier), "int32"), axis=-1)


def first_token_mask(padding_mask):
    """Marks the first token that is not padding, the one BERT's pooler reads; an all-padding row has none.

    Args:
        padding_mask: int (b, t).

    Returns:
        bool (b, t), at most one True a row.

    >>> import numpy as np
    >>> from garden.layers import first_token_mask
    >>> np.array(first_token_mask(np.array([[0, 1, 1], [1, 2, 0]]))).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    token = padding_mask > 0
    return ops.logical_and(token, ops.equal(ops.cumsum(ops.cast(token, "int32"), axis=1), 1))


def last_token_mask(padding_mask):
    """Marks the last token that is not padding, the one XLNet's summary reads; an all-padding row has none.

    Args:
        padding_mask: int (b, t).

    Returns:
        bool (b, t), at most one True a row.

    >>> import numpy as np
    >>> from garden.layers import last_token_mask
    >>> np.array(last_token_mask(np.array([[0, 1, 1], [1, 2, 0]]))).astype(int).tolist()
    [[0, 0, 1], [0, 1, 0]]
    """
    token = padding_mask > 0
    count = ops.cumsum(ops.cast(token, "int32"), axis=1)
    return ops.logical_and(token, ops.equal(count, count[:, -1:]))


def _same_sequence(padding_mask):
    return cross_mask(padding_mask, padding_mask)[:, 0]


def _places(mask):
    return ops.cumsum(ops.ones_like(mask[0], dtype="int32"))  # no arange: a functional model has no length yet
