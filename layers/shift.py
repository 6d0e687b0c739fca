"""The relative shift: scores by distance become scores by key."""

from keras import ops


def relative_shift(scores, length):
    """Moves every query's row of scores to its place, by reshapes and without a gather (Dai et al. 2019).

    Column r stands for a distance that falls by one a column. The last query sees the first key at column 0, and each
    query before it one column later: query t's score for key s is read at column T - 1 - t + s.

    Args:
        scores: float (b, n, t, r), of every query with every distance.
        length: s, the number of keys. With r = s + t - 1 columns all keys are served; with r = s, those that lie
            behind the query or at its place, and what the others get means nothing: a causal mask hides them.

    Returns:
        float (b, n, t, s).

    >>> import numpy as np
    >>> from garden.layers import relative_shift
    >>> distances = np.tile(np.arange(4.0, -3, -1), (1, 1, 3, 1))  # three queries behind a memory of two
    >>> np.array(relative_shift(distances, 5))[0, 0].astype(int).tolist()
    [[2, 1, 0, -1, -2], [3, 2, 1, 0, -1], [4, 3, 2, 1, 0]]
    """
    heads = ops.shape(scores)[1]
    queries, columns = ops.shape(scores)[2], ops.shape(scores)[3]
    if not (isinstance(columns, int) and isinstance(length, int) and columns > length):
        scores, columns = ops.pad(scores, ((0, 0), (0, 0), (0, 0), (0, 1))), columns + 1
    # Row after row that score is the number t * (r - 1) + T - 1 + s, so that rows one shorter stand it below s.
    scores = ops.reshape(scores, (-1, heads, queries * columns))
    scores = scores[..., queries - 1 : queries * columns - 1]
    return ops.reshape(scores, (-1, heads, queries, columns - 1))[..., :length]


def block_distances(length, block=128):
    """The distances that blocks of queries can have from the keys of their row, for `relative_scores`.

    All queries of a row together have twice as many distances as any one of them; a block's queries have few more than
    one. There is one block where `length` is not known yet.

    Args:
        length: t, queries and keys.
        block: queries that a block has at least.

    Returns:
        int32 (c, j + t) with t = c * j, falling by one a column.

    >>> import numpy as np
    >>> from garden.layers import block_distances
    >>> np.array(block_distances(4, block=2)).tolist()
    [[1, 0, -1, -2, -3, -4], [3, 2, 1, 0, -1, -2]]
    """
    most = max(length // block, 1) if isinstance(length, int) else 1
    blocks = next(blocks for blocks in range(most, 0, -1) if blocks == 1 or length % blocks == 0)
    queries = length // blocks
    last = queries * ops.arange(1, blocks + 1, dtype="int32") - 1
    return last[:, None] - ops.arange(queries + length, dtype="int32")


def relative_scores(x, positions):
    """The products of every query with the vector of its distance from every key, a block of queries at a time.

    Args:
        x: float (b, t, n, h), the queries.
        positions: float (c, j + t, n, h), vectors of the distances of `block_distances`.

    Returns:
        float (b, n, t, s), with as many keys as queries.

    >>> import numpy as np
    >>> from garden.layers import block_distances, relative_scores
    >>> vectors = np.array(block_distances(3)).astype("float32")[..., None, None]
    >>> np.array(relative_scores(np.ones((1, 3, 1, 1), "float32"), vectors))[0, 0].astype(int).tolist()
    [[0, -1, -2], [1, 0, -1], [2, 1, 0]]
    """
    (blocks, _, heads, width), length = ops.shape(positions), ops.shape(x)[1]
    queries = length // blocks
    x = ops.reshape(x, (-1, blocks, queries, heads, width))
    scores = ops.einsum("bcjnh,crnh->bncjr", x, positions)
    scores = ops.reshape(scores, (-1, heads * blocks, queries, ops.shape(positions)[1]))
    return ops.reshape(relative_shift(scores, length), (-1, heads, length, length))
