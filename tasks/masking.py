"""BERT's masked-language-model corruption: pure NumPy functions of a batch."""

import numpy as np


def select_positions(selectable: np.ndarray, counts: np.ndarray, width: int, rng: np.random.Generator) -> np.ndarray:
    """For each row, `counts` of its selectable positions, drawn without replacement, in order.

    Args:
        selectable: bool (b, t).
        counts: how many to draw (b,); a row with fewer selectable positions gives all of them.
        width: p, the columns of the result.
        rng: where the draws come from.

    Returns:
        int (b, p); behind a row's positions stands t, which is no position.

    >>> select_positions(np.array([[False, True, True, False]]), np.array([2]), 3, np.random.default_rng(0)).tolist()
    [[1, 2, 4]]
    """
    length = selectable.shape[1]
    order = np.argsort(np.where(selectable, rng.random(selectable.shape), 2.0), axis=1)
    counts = np.minimum(counts, selectable.sum(axis=1))
    drawn = np.where(np.arange(length) < counts[:, None], order, length)
    drawn = np.pad(drawn, ((0, 0), (0, max(width - length, 0))), constant_values=length)
    return np.sort(drawn, axis=1)[:, :width]


def mask_tokens(
    token_ids: np.ndarray,
    positions: np.ndarray,
    mask_token_id: int,
    vocabulary_size: int,
    mask_token_rate: float,
    random_token_rate: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """A copy of the tokens in which those at the chosen positions are replaced, each by a draw of its own.

    The new token is the mask with probability `mask_token_rate`, any entry of the vocabulary, special tokens and the
    old token included (Google's rule), with `random_token_rate`, and else the old token.

    Args:
        token_ids: int (b, t).
        positions: int (b, p) as `select_positions` gives them.
        mask_token_id: id of the mask.
        vocabulary_size: random tokens are drawn from 0 to this.
        mask_token_rate, random_token_rate: probabilities, together at most 1.
        rng: where the draws come from.

    >>> mask_tokens(np.array([[5, 6]]), np.array([[1, 2]]), 4, 9, 1.0, 0.0, np.random.default_rng(0)).tolist()
    [[5, 4]]
    """
    rows, slots = np.nonzero(positions < token_ids.shape[1])
    columns = positions[rows, slots]
    draw = rng.random(len(rows))
    anything = rng.integers(vocabulary_size, size=len(rows))
    kept = token_ids[rows, columns]
    corrupted = token_ids.copy()
    corrupted[rows, columns] = np.select(
        [draw < mask_token_rate, draw < mask_token_rate + random_token_rate], [mask_token_id, anything], kept
    )
    return corrupted
