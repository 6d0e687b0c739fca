"""Rows of token ids cut to length, framed by their special tokens and padded: pure NumPy functions."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

TRUNCATIONS = ("round_robin", "waterfall", "first")


def pack(
    segments: Sequence[list[list[int]]],
    start: int | None,
    end: int,
    pad: int,
    sequence_length: int,
    truncate: str = "round_robin",
    pad_to_multiple_of: int | None = None,
    between: Sequence[int] = (),
    suffix: Sequence[int] = (),
    pads_left: bool = False,
) -> dict[str, np.ndarray]:
    """`[start] A [end]` or `[start] A [end] B [end]` for each row of one or two segments, and padding.

    Args:
        segments: one or two lists of b rows of ids.
        start, end, pad: ids of the special tokens; truncation never cuts them. None leaves the start out.
        sequence_length: the most tokens of a row, special tokens included.
        truncate: "round_robin", "waterfall" or "first", see `kept_lengths`.
        pad_to_multiple_of: None pads to `sequence_length`, a number to the longest row rounded up to that multiple.
        between: further special tokens, in front of B.
        suffix: special tokens behind everything, in segment 2.
        pads_left: whether the padding stands in front of the tokens, and not behind them.

    Returns:
        int32 arrays (b, t): `token_ids`; `segment_ids`, 1 for B and its end; `padding_mask`, 1 for tokens, 0 for
        padding.

    Raises:
        ValueError: see `check_settings`.

    >>> packed = pack([[[7, 8, 9]], [[5, 6]]], start=1, end=2, pad=0, sequence_length=8)
    >>> packed["token_ids"].tolist(), packed["segment_ids"].tolist()
    ([[1, 7, 8, 9, 2, 5, 6, 2]], [[0, 0, 0, 0, 0, 1, 1, 1]])
    >>> packed = pack([[[7, 8]]], start=None, end=4, pad=5, sequence_length=6, suffix=[3], pads_left=True)
    >>> packed["token_ids"].tolist(), packed["segment_ids"].tolist()
    ([[5, 5, 7, 8, 4, 3]], [[0, 0, 0, 0, 0, 2]])
    """
    before = [] if start is None else [start]
    special = len(before) + len(suffix) + (1 if len(segments) == 1 else 2 + len(between))
    check_settings(special, sequence_length, truncate, pad_to_multiple_of)
    first, *second = _truncated(segments, sequence_length - special, truncate)
    first = [[*before, *row, end] for row in first]
    second = [[*between, *row, end] for row in second[0]] if second else [[]] * len(first)
    first_lengths = _lengths(first)
    suffix_places = first_lengths + _lengths(second)
    lengths = suffix_places + len(suffix)
    width = _width(lengths, sequence_length, pad_to_multiple_of)
    places = np.arange(width) - pads_left * (width - lengths[:, None])
    real = (places >= 0) & (places < lengths[:, None])
    token_ids = np.full(real.shape, pad, np.int32)
    flat = chain.from_iterable(chain.from_iterable(zip(first, second, [suffix] * len(first), strict=True)))
    token_ids[real] = np.fromiter(flat, np.int32, int(lengths.sum()))
    segment_ids = np.where(places >= suffix_places[:, None], 2, places >= first_lengths[:, None])
    return {
        "token_ids": token_ids,
        "segment_ids": np.where(real, segment_ids, 0).astype(np.int32),
        "padding_mask": real.astype(np.int32),
    }


def kept_lengths(first: np.ndarray, second: np.ndarray, budget: int, truncate: str) -> tuple[np.ndarray, np.ndarray]:
    """How many tokens of each of two segments, given their lengths (b,), fit together into `budget`.

    "round_robin" is BERT's rule: the longer segment loses a token at a time, the second where they tie. "waterfall"
    keeps as much of the first as fits, and fills the rest with the second. "first" cuts the first: it keeps as much of
    the second as fits, and fills the rest with the first.

    >>> first, second = kept_lengths(np.array([9, 2]), np.array([9, 9]), 7, "round_robin")
    >>> first.tolist(), second.tolist()
    ([4, 2], [3, 5])
    """
    if truncate == "first":
        second = np.minimum(second, budget)
        return np.minimum(first, budget - second), second
    if truncate == "round_robin":
        first = np.minimum(first, np.maximum(budget - second, (budget + 1) // 2))
    else:
        first = np.minimum(first, budget)
    return first, np.minimum(second, budget - first)


def padded_rows(
    rows: Sequence[Sequence[int]], fill: int, sequence_length: int, pad_to_multiple_of: int | None = None
) -> np.ndarray:
    """Finished rows, none longer than `sequence_length`, as one int32 array (b, t), filled up on the right.

    >>> padded_rows([[7, 8], [9]], fill=0, sequence_length=3).tolist()
    [[7, 8, 0], [9, 0, 0]]
    """
    lengths = _lengths(rows)
    width = _width(lengths, sequence_length, pad_to_multiple_of)
    padded = np.full((len(rows), width), fill, np.int32)
    padded[np.arange(width) < lengths[:, None]] = np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum()))
    return padded


def check_settings(special: int, sequence_length: int, truncate: str, pad_to_multiple_of: int | None) -> None:
    """Raises the ValueError that names the setting with which `pack` could not work, given its special tokens.

    >>> check_settings(3, sequence_length=4, truncate="round_robin", pad_to_multiple_of=None)
    """
    if sequence_length <= special:
        raise ValueError(
            f"sequence_length={sequence_length} leaves no room for text beside {special} special tokens: "
            f"use at least {special + 1}."
        )
    if truncate not in TRUNCATIONS:
        raise ValueError(f"truncate={truncate!r} is no rule: take {' or '.join(TRUNCATIONS)}.")
    if pad_to_multiple_of is not None and pad_to_multiple_of < 1:
        raise ValueError(f"pad_to_multiple_of={pad_to_multiple_of} has to be 1 or more, or None.")


def _truncated(segments: Sequence[list[list[int]]], budget: int, truncate: str) -> list[list[list[int]]]:
    if len(segments) == 1:
        return [[row[:budget] for row in segments[0]]]
    kept = kept_lengths(*map(_lengths, segments), budget, truncate)
    return [[row[:n] for row, n in zip(*pair, strict=True)] for pair in zip(segments, kept, strict=True)]


def _lengths(rows: list[list[int]]) -> np.ndarray:
    return np.fromiter(map(len, rows), np.int64, len(rows))


def _width(lengths: np.ndarray, sequence_length: int, multiple: int | None) -> int:
    if multiple is None:
        return sequence_length
    longest = int(lengths.max(initial=1))
    return min(-(-longest // multiple) * multiple, sequence_length)
