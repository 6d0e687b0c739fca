"""Text as it arrives: strings, bytes, arrays and tensors of them, turned into a list of Python strings."""

import sys

import numpy as np


def as_strings(x) -> tuple[list[str], bool]:
    """The strings in `x`, and whether `x` was a batch of them.

    Args:
        x: a string, UTF-8 bytes, or at most one axis (b,) of those: a list, tuple, NumPy array (object, str or bytes),
            pandas column or TensorFlow tensor.

    Raises:
        ValueError: a row is no text (None, NaN, a number) or not UTF-8, which the message names, or `x` has more axes.

    >>> as_strings(np.array([b"caf\\xc3\\xa9", b"bar"]))
    (['café', 'bar'], True)
    >>> as_strings("one")
    (['one'], False)
    """
    x = _plain(x)
    if not isinstance(x, list):
        return [_decoded(x, "The text")], False
    if all(type(row) is str for row in x):
        return x, True
    return [_decoded(row, f"Row {i} of the batch") for i, row in enumerate(x)], True


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
    """A list of strings, or each such list in a tuple, as an object array; anything else as it is.

    Keras looks at every leaf of what a layer is given, and a list of strings has as many leaves as rows.

    >>> as_one_leaf((["good", "bad"], [1, 0]))
    (array(['good', 'bad'], dtype=object), [1, 0])
    """
    if isinstance(x, tuple):
        return tuple(as_one_leaf(part) for part in x)
    if not isinstance(x, list) or not is_text(x):
        return x
    leaf = np.empty(len(x), dtype=object)
    leaf[:] = x
    return leaf


def refuse_surrogates(texts: list[str]) -> None:
    """Raises the ValueError that names the first row which UTF-8 cannot hold: one with half of a surrogate pair."""
    for i, text in enumerate(texts):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"Row {i} of the batch has half of a surrogate pair, U+{ord(text[error.start]):04X}, at position "
                f"{error.start}: remove it, for example with text.encode('utf-8', 'ignore').decode()."
            ) from None


def in_graph() -> bool:
    """Whether TensorFlow is tracing a `tf.data` pipeline or a `tf.function`, so that strings are symbolic."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and not tf.executing_eagerly()


def _plain(x):
    if hasattr(x, "__array__") and not isinstance(x, np.generic):
        x = np.asarray(x)
        if x.ndim > 1:
            raise ValueError(f"Text of shape {x.shape} has more than one axis: pass one column, for example x[:, 0].")
        return x.tolist()
    return list(x) if isinstance(x, tuple) else x


def _decoded(row, where: str) -> str:
    if isinstance(row, str):
        return str(row)
    if not isinstance(row, bytes):
        raise ValueError(f"{where} is {row!r}, not a string: drop it, or put a string there (an empty one will do).")
    try:
        return row.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"{row[error.start]:#04x}"
        raise ValueError(
            f"{where} is not UTF-8, byte {byte} at position {error.start}: decode it from its own encoding first."
        ) from None
