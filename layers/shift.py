"""The relative shift: scores by distance become scores by key."""

from keras import ops


def relative_shift(scores, length):
    """Moves every query's row of scores to its place, by a pad and two reshapes and without a gather (Dai et al. 2019).

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
    heads = scores.shape[1]
    queries, columns = ops.shape(scores)[2], ops.shape(scores)[3]
    scores = ops.pad(scores, ((0, 0), (0, 0), (0, 0), (1, 0)))
    scores = ops.reshape(scores, (-1, heads, columns + 1, queries))[:, :, 1:, :]
    return ops.reshape(scores, (-1, heads, queries, columns))[..., :length]
