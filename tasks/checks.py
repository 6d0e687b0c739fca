"""Checks on the host, before a compiled step: inside it JAX clamps what is out of range and GPUs return zeros."""

import sys
from collections.abc import Callable

import numpy as np


def check_labels(y, num_classes: int):
    """Returns labels that are all in [0, num_classes).

    Args:
        y: int array or TensorFlow tensor of any shape. Inside a `tf.data` pipeline the check becomes part of it.
        num_classes: how many classes there are.

    Raises:
        ValueError: labels that are not whole numbers, or out of range; in a pipeline TensorFlow's InvalidArgumentError.

    >>> from garden.tasks.checks import check_labels
    >>> check_labels([0, 1], 2)
    [0, 1]
    """
    return _in_range(y, num_classes, f"labels must be whole numbers from 0 to {num_classes - 1}")


def check_answers(y, padding_mask):
    """Returns answers that are all places among the choices of their question.

    Args:
        y: int (b,), array or TensorFlow tensor.
        padding_mask: int (b, c, t) of the same kind; a choice that is all padding does not exist.

    Raises:
        ValueError: an answer that is none of the choices; in a pipeline TensorFlow's InvalidArgumentError.

    >>> import numpy as np
    >>> from garden.tasks.checks import check_answers
    >>> check_answers([1], np.array([[[1, 1], [1, 0], [0, 0]]]))
    [1]
    """
    rule = "answers must be places among the choices of their question, from 0"
    if not _is_tensorflow(y):
        counts = (np.asarray(padding_mask) > 0).any(-1).sum(-1)
        return _in_range(y, counts.reshape(np.shape(y)), rule)
    import tensorflow as tf

    counts = tf.reduce_sum(tf.cast(tf.reduce_any(padding_mask > 0, axis=-1), "int32"), axis=-1)
    return _in_range(y, tf.reshape(counts, tf.shape(y)), rule)


def check_token_ids(x, vocabulary_size: int, max_sequence_length: int | None):
    """Returns model inputs whose token ids are in the vocabulary and whose rows fit the position table.

    Args:
        x: dictionary with `token_ids`, int (b, t), or with those of an encoder and of a decoder.
        vocabulary_size: v.
        max_sequence_length: the longest row, or None.

    Raises:
        ValueError: strings instead of ids, an id out of range or a row too long; in a pipeline InvalidArgumentError.

    >>> import numpy as np
    >>> from garden.tasks.checks import check_token_ids
    >>> sorted(check_token_ids({"token_ids": np.array([[1, 2]])}, 10, 4))
    ['token_ids']
    """
    names = [name for name in x if name.endswith("token_ids")] if isinstance(x, dict) else []
    if not names:
        raise ValueError("Without a preprocessor the task takes token_ids, segment_ids and padding_mask, not raw text.")
    return {**x, **{name: _checked_ids(x[name], vocabulary_size, max_sequence_length) for name in names}}


def _checked_ids(ids, vocabulary_size, max_sequence_length):
    length = np.shape(ids)[-1] if not _is_tensorflow(ids) else ids.shape[-1]
    if None not in (length, max_sequence_length) and length > max_sequence_length:
        raise ValueError(
            f"The rows have {length} tokens, more than the {max_sequence_length} positions: truncate them."
        )
    return _in_range(ids, vocabulary_size, f"token ids must be from 0 to {vocabulary_size - 1}")


def check_numbers(y, width: int, rule: str, valid: Callable):
    """Returns targets as float32, all of them `valid`, one row of `width` numbers an example.

    Args:
        y: numbers (b, width), or (b,) where `width` is 1: an array, a list or a TensorFlow tensor.
        width: numbers an example.
        rule: what the targets have to be, for the message.
        valid: from an array or tensor of numbers to booleans, True where a number is what the rule says.

    Raises:
        ValueError: targets that are no numbers, of another shape, or not valid; in a pipeline InvalidArgumentError.

    >>> from garden.tasks.checks import check_numbers
    >>> check_numbers([1, 0], 1, "targets must be 0 or 1", lambda y: (y == 0) | (y == 1)).tolist()
    [1.0, 0.0]
    """
    numbers = y if _is_tensorflow(y) else _array(y, rule)
    shape = tuple(numbers.shape)
    if shape[1:] != (width,) and not (width == 1 and len(shape) == 1):
        raise ValueError(f"{rule}, {width} for each example, but they have the shape {shape}.")
    if _is_tensorflow(y):
        return _valid_tensorflow(y, rule, valid)
    wrong = np.argwhere(~valid(numbers))
    if wrong.size:
        raise ValueError(f"{rule}, not {numbers[tuple(wrong[0])]} (example {wrong[0][0]}).")
    return numbers.astype("float32")


def _array(y, rule):
    try:
        numbers = np.asarray(y)
    except ValueError:  # rows of different length
        raise ValueError(f"{rule}, and as many for each example.") from None
    if numbers.dtype.kind not in "biuf":
        wrong = next((value for value in numbers.flat if not isinstance(value, (int, float, np.number))), numbers)
        raise ValueError(f"{rule}, not {wrong!r}.")
    return numbers.astype("float32") if numbers.dtype.kind == "b" else numbers


def _valid_tensorflow(y, rule, valid):
    import tensorflow as tf

    if not (y.dtype.is_integer or y.dtype.is_floating or y.dtype.is_bool):
        raise ValueError(f"{rule}, not {y.dtype.name}.")
    numbers = tf.cast(y, "float32")
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(valid(numbers)), [f"{rule}; got", y])]):
        return tf.identity(numbers)


def _in_range(values, limit, rule):
    if _is_tensorflow(values):
        return _in_range_tensorflow(values, limit, rule)
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "biuf":
        raise ValueError(f"{rule}, not {numbers.flat[0]!r}.")
    wrong = numbers[(numbers < 0) | (numbers >= limit) | (numbers != np.floor(numbers))]
    if wrong.size:
        raise ValueError(f"{rule}, not {wrong.flat[0]}.")
    return values


def _in_range_tensorflow(values, limit, rule):
    import tensorflow as tf

    if not values.dtype.is_integer:
        raise ValueError(f"{rule}, not {values.dtype.name}.")
    limit = tf.cast(limit, values.dtype)
    inside = tf.reduce_all((values >= 0) & (values < limit))
    with tf.control_dependencies([tf.debugging.Assert(inside, [f"{rule}; got", values])]):
        return tf.identity(values)


def _is_tensorflow(x):
    tf = sys.modules.get("tensorflow")
    return tf is not None and tf.is_tensor(x)
