"""Batches whose rows have similar length, so that little of a batch is padding."""

from collections.abc import Iterator

import keras
import numpy as np


def length_grouped(
    x, y=None, *, tokenizer, batch_size: int = 32, seed: int | None = None, drop_remainder: bool = False
):
    """A `tf.data.Dataset` of raw batches in which the rows have similar length, drawn anew every epoch.

    With `pad_to_multiple_of` on the preprocessor each batch is padded to its own longest row only. Rows are shuffled,
    sorted inside windows of 50 batches and the batches shuffled again, so that batches stay random.

    Args:
        x: list of strings, or a tuple of two lists for pairs.
        y: labels, one a row.
        tokenizer: its ids are counted.
        batch_size: rows a batch; the last one may be smaller.
        seed: of the order; None for a new one every time.
        drop_remainder: leaves out the rows of a smaller last batch, others every epoch, unless it is the only batch:
            one shape less to compile for.

    Returns:
        A dataset of `x` or `(x, y)`, a new order at each iteration.

    ```python
    data = length_grouped(texts, labels, tokenizer=classifier.preprocessor.tokenizer, batch_size=32, seed=0)
    classifier.fit(data, epochs=2)
    ```
    """
    columns = tuple(np.asarray(column, dtype=object) for column in _columns(x))
    x = columns if isinstance(x, tuple) else columns[0]
    samples = x if y is None else (x, np.asarray(y))
    return batches_by_length(samples, token_counts(x, tokenizer), batch_size, seed, drop_remainder)


def batches_by_length(
    samples, lengths: np.ndarray, batch_size: int = 32, seed: int | None = None, drop_remainder: bool = False
):
    """`length_grouped` for samples of any kind whose lengths are known.

    Args:
        samples: arrays or TensorFlow tensors, ragged ones too, in tuples or dictionaries; a sample is a row of each.
        lengths: int (n,).
        batch_size, seed, drop_remainder: as in `length_grouped`.

    Returns:
        A dataset of batches in the form of `samples`, a new order at each iteration.

    >>> import numpy as np
    >>> from garden.tasks import batches_by_length
    >>> data = batches_by_length((np.array(["a b", "c"]), np.array([1, 0])), np.array([2, 1]), seed=0)
    >>> [labels.numpy().tolist() for _, labels in data]
    [[0, 1]]
    """
    import tensorflow as tf

    rng = np.random.default_rng(seed)
    taken = taken_rows(len(lengths), batch_size, drop_remainder)
    tensors = keras.tree.map_structure(
        lambda x: x if isinstance(x, tf.RaggedTensor) else tf.convert_to_tensor(x), samples
    )
    rows = tf.data.Dataset.from_generator(
        lambda: grouped_rows(lengths, batch_size, rng, taken), output_signature=tf.TensorSpec((None,), tf.int64)
    )
    dataset = rows.map(lambda chosen: keras.tree.map_structure(lambda tensor: tf.gather(tensor, chosen), tensors))
    return dataset.apply(tf.data.experimental.assert_cardinality(-(-taken // batch_size)))


def taken_rows(count: int, batch_size: int, drop_remainder: bool) -> int:
    """How many rows an epoch has: without those of a smaller last batch, unless that is the only one.

    >>> from garden.tasks.batching import taken_rows
    >>> taken_rows(70, 32, drop_remainder=True), taken_rows(7, 32, drop_remainder=True)
    (64, 7)
    """
    return count // batch_size * batch_size if drop_remainder and count > batch_size else count


def grouped_rows(
    lengths: np.ndarray, batch_size: int, rng: np.random.Generator, taken: int | None = None, window: int = 50
) -> Iterator[np.ndarray]:
    """The rows of each batch of one epoch: random, of similar length inside a batch.

    Args:
        lengths: int (n,).
        batch_size: rows a batch.
        rng: where the order comes from.
        taken: how many rows this epoch has, drawn at random; None for all.
        window: batches that are sorted together.

    >>> import numpy as np
    >>> from garden.tasks.batching import grouped_rows
    >>> rows = list(grouped_rows(np.array([9, 1, 8, 2]), 2, np.random.default_rng(0)))
    >>> sorted(sorted(batch.tolist()) for batch in rows)
    [[0, 2], [1, 3]]
    """
    order = rng.permutation(len(lengths))[:taken]
    size = window * batch_size
    batches = []
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        batches += [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
    # Only the very last batch may be short, and Keras expects a short one at the end.
    *full, last = batches
    yield from (full[i] for i in rng.permutation(len(full)))
    yield last


def predict_sorted(task, x, batch_size: int = 32, lengths: np.ndarray | None = None) -> np.ndarray:
    """What `task.predict(x)` gives, computed from the shortest to the longest text and returned in the order of `x`.

    Args:
        task: a task with a preprocessor.
        x: list of strings, or a tuple of two lists.
        batch_size: rows a step.
        lengths: int (len(x),), what to sort by; None counts the tokens of each row.

    Returns:
        float32 (len(x), ...); no rows for an empty list.

    Raises:
        ValueError: something in `x` is not a string, or the task has no preprocessor.
    """
    if task.preprocessor is None:
        raise ValueError(f"{task.name} has no preprocessor, so it cannot read text: predict on token ids instead.")
    lengths = token_counts(x, task.preprocessor.tokenizer) if lengths is None else lengths
    if not len(lengths):
        return np.zeros((0, *task.output_shape[1:]), "float32")
    order = np.argsort(lengths, kind="stable")
    columns = tuple([column[i] for i in order] for column in _columns(x))
    found = task.predict(columns if isinstance(x, tuple) else columns[0], batch_size=batch_size, verbose=0)
    found = keras.tree.map_structure(lambda array: np.asarray(array, "float32"), found)
    return found[np.argsort(order)]


def token_counts(x, tokenizer) -> np.ndarray:
    """Tokens of every row, without special ones: int (n,); of both texts for pairs."""
    counts = [[len(ids) for ids in tokenizer(list(column))] if len(column) else [] for column in _columns(x)]
    return np.sum(np.array(counts, "int64"), axis=0)


def _columns(x):
    return x if isinstance(x, tuple) else (x,)
