"""Nearest neighbours among embeddings, exactly: pure NumPy functions."""

import numpy as np


def similarity(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The cosine of every row of `a` with every row of `b`; 0 with a row of zeros.

    Args:
        a: float (n, d).
        b: float (m, d).

    Returns:
        float32 (n, m).

    Raises:
        ValueError: they are no matrices of one width, or hold what is not finite.

    >>> similarity([[1.0, 0.0]], [[2.0, 0.0], [0.0, 3.0], [0.0, 0.0], [-4.0, 0.0]]).tolist()
    [[1.0, 0.0, 0.0, -1.0]]
    """
    a, b = _unit_rows(a, b)
    return _product(a, b)


def nearest(
    queries: np.ndarray, corpus: np.ndarray, top_k: int = 10, block_size: int = 4096
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of `corpus` with the highest cosine to each query, the nearest first; the earlier row where they tie.

    The matrix product is made block by block, so that memory stays at `block_size` squared.

    Args:
        queries: float (n, d).
        corpus: float (m, d).
        top_k: k, neighbours a query; all of the corpus where it has fewer.
        block_size: rows of queries and of the corpus that are multiplied at once.

    Returns:
        int64 (n, k), rows of the corpus, and float32 (n, k), their cosines.

    Raises:
        ValueError: see `similarity`; or `top_k` or `block_size` is less than 1.

    >>> rows, cosines = nearest([[1.0, 0.0]], [[0.0, 1.0], [5.0, 0.0], [1.0, 0.0]], top_k=2)
    >>> rows.tolist(), cosines.tolist()
    ([[1, 2]], [[1.0, 1.0]])
    """
    if top_k < 1 or block_size < 1:
        raise ValueError(f"top_k={top_k} and block_size={block_size} have to be 1 or more.")
    queries, corpus = _unit_rows(queries, corpus)
    found = [
        _nearest(queries[i : i + block_size], corpus, top_k, block_size)
        for i in range(0, max(len(queries), 1), block_size)
    ]
    rows, cosines = zip(*found, strict=True)
    return np.concatenate(rows), np.concatenate(cosines)


def _nearest(queries, corpus, top_k, block_size):
    rows = np.zeros((len(queries), 0), "int64")
    cosines = np.zeros((len(queries), 0), "float32")
    for start in range(0, len(corpus), block_size):
        block = _product(queries, corpus[start : start + block_size])
        # A later row that only ties with the worst so far does not enter.
        new = np.flatnonzero((block > cosines[:, -1:]).any(0)) if rows.shape[1] == top_k else np.arange(block.shape[1])
        cosines = np.concatenate([cosines, block[:, new]], axis=1)
        rows = np.concatenate([rows, np.broadcast_to(start + new, (len(queries), len(new)))], axis=1)
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :top_k]
        rows, cosines = np.take_along_axis(rows, best, axis=1), np.take_along_axis(cosines, best, axis=1)
    return rows, cosines


def _product(a, b):
    # In float64, so that equal rows give equal float32 cosines in blocks of every shape.
    return (a.astype("float64") @ b.astype("float64").T).astype("float32")


def _unit_rows(a, b):
    a, b = np.asarray(a, "float32"), np.asarray(b, "float32")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"Embeddings of shapes {a.shape} and {b.shape} cannot be compared: give (n, d) and (m, d).")
    for name, rows in (("first", a), ("second", b)):
        wrong = np.flatnonzero(~np.isfinite(rows).all(1))
        if wrong.size:
            raise ValueError(f"Row {wrong[0]} of the {name} embeddings is not finite.")
    return tuple(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (a, b))
