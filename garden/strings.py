"""Text as it arrives: strings, bytes, arrays and tensors of them, turned into a list of Python strings."""

import sys

import numpy as np


def as_strings(x) -> tuple[list[str], bool]:
    """The strings in `x`, and whether `x` was a batch of them.

    Args:
        x: A string, UTF-8 bytes, or a list, tuple, NumPy array (object, str or bytes), pandas column or TensorFlow tensor
            of those with at most one axis, (b,).

    Raises:
        ValueError: A row is no text (None, NaN, a number), is not UTF-8, or `x` has more than one axis. The message names
            the row.

    >>> as_strings(np.array([b"caf\\xc3\\xa9", b"bar"]))
    (['café', 'bar'], True)
    >>> as_strings("one")
    (['one'], False)
    """
    x = _plain(x)
    if not isinstance(x, list):
        return [_decoded(x, "the text")], False
    if all(type(row) is str for row in x):
        return x, True
    return [_decoded(row, f"row {i} of the batch") for i, row in enumerate(x)], True


def is_text(x) -> bool:
    """Whether `x` is a string, or an array, tensor or list whose first entry is one.

    >>> is_text(["good", "bad"]), is_text([1, 0])
    (True, False)
    """
    if isinstance(x, (str, bytes)) or "string" in str(getattr(x, "dtype", "")).lower():
        return True
    try:
        return isinstance(next(iter(x)), (str, bytes))
    except (TypeError, StopIteration):  # a scalar, or nothing at all
        return False


def as_one_leaf(x):
    """A list (or each list of a tuple of segments) as an object array: Keras looks at every leaf of what a layer is given,
    and a list of strings would be as many leaves as it has rows."""
    if isinstance(x, tuple):
        return tuple(as_one_leaf(segment) for segment in x)
    if not isinstance(x, list):
        return x
    leaf = np.empty(len(x), dtype=object)
    leaf[:] = x
    return leaf


def refuse_surrogates(texts: list[str]) -> None:
    """Raise the ValueError that names the first row which UTF-8 cannot hold (half of a surrogate pair)."""
    for i, text in enumerate(texts):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            character = f"U+{ord(text[error.start]):04X}"
            raise ValueError(
                f"row {i} of the batch has half of a surrogate pair, {character}, at position {error.start}; remove it, for "
                "example with text.encode('utf-8', 'ignore').decode()"
            ) from None


def in_graph() -> bool:
    """Whether TensorFlow is tracing a tf.data pipeline or a tf.function, so that strings are symbolic."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and not tf.executing_eagerly()


def _plain(x):
    if hasattr(x, "__array__") and not isinstance(x, np.generic):
        x = np.asarray(x)
        if x.ndim > 1:
            raise ValueError(f"text of shape {x.shape} has more than one axis; pass one column, for example x[:, 0]")
        return x.tolist()
    return list(x) if isinstance(x, tuple) else x


def _decoded(row, where: str) -> str:
    if isinstance(row, str):
        return str(row)
    if not isinstance(row, bytes):
        raise ValueError(f"{where} is {row!r}, not a string; drop it, or put a string there (an empty one will do)")
    try:
        return row.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where} is not UTF-8: byte {row[error.start]:#04x} at position {error.start}; decode it from its own encoding"
        ) from None
