"""What answers are worth beyond accuracy: correlations and F1 of label sets, pure functions of NumPy arrays."""

import numpy as np


def pearson(a, b) -> float:
    """Pearson's correlation of two columns; NaN where one of them is constant.

    Args:
        a, b: float (n,).

    Raises:
        ValueError: columns of different length, fewer than two rows, or a value that is not finite.

    >>> round(pearson([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 6)
    1.0
    """
    a, b = _columns(a, b)
    if not (np.ptp(a) and np.ptp(b)):
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)), -1, 1))


def spearman(a, b) -> float:
    """Spearman's rank correlation of two columns, with equal values sharing the mean of their ranks; see `pearson`.

    >>> round(spearman([1.0, 2.0, 3.0], [1.0, 10.0, 100.0]), 6)
    1.0
    """
    a, b = _columns(a, b)
    return pearson(ranks(a), ranks(b))


def ranks(values) -> np.ndarray:
    """The rank of each value, from 1; equal values share the mean of their ranks.

    >>> ranks([10.0, 30.0, 10.0, 20.0]).tolist()
    [1.5, 4.0, 1.5, 3.0]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def multi_label_f1(truth, predicted) -> dict[str, float]:
    """F1 of label sets: `micro` over all decisions together, `macro` the mean of the F1 of each class.

    A class, or all of them, without a single positive in truth and prediction has F1 0.

    Args:
        truth, predicted: 0 or 1, (n, c).

    Raises:
        ValueError: the two differ in shape, or hold something other than 0 and 1.

    >>> multi_label_f1([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    {'micro': 0.8, 'macro': 0.8333333333333333}
    """
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    if truth.shape != predicted.shape or truth.ndim != 2:
        raise ValueError(f"Label sets of shapes {truth.shape} and {predicted.shape}: give (n, c) for both.")
    if not (np.isin(truth, (0, 1)).all() and np.isin(predicted, (0, 1)).all()):
        raise ValueError("Label sets must be 0 or 1: compare probabilities with a threshold first.")
    right = (truth * predicted).sum(0)
    whole = truth.sum(0) + predicted.sum(0)
    each = np.divide(2 * right, whole, out=np.zeros(len(whole)), where=whole > 0)
    return {
        "micro": float(2 * right.sum() / whole.sum()) if whole.sum() else 0.0,
        "macro": float(each.mean()),
    }


def _columns(a, b):
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise ValueError(f"Columns of shapes {a.shape} and {b.shape} have no correlation: give two of (n,), n >= 2.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("Columns with NaN or infinity have no correlation.")
    return a, b
