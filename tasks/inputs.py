"""Raw samples in memory, checked and turned into datasets that Keras can shuffle."""

import keras
import numpy as np

from .checks import check_token_ids


def is_dataset(x) -> bool:
    """Whether x yields its own batches (`tf.data`, grain, a generator) rather than being samples in memory."""
    return not isinstance(x, (list, tuple, dict)) and not hasattr(x, "__array__")


def check_samples(task, x, y=None):
    """Samples in memory, in the form that KerasHub takes, or the reason why they are none.

    Args:
        task: a task; with a preprocessor it takes text, without one the inputs of its backbone.
        x: list or array of strings, a tuple of two for pairs, or a dictionary of arrays.
        y: targets, or None.

    Returns:
        x with text as object arrays, and y as an array.

    Raises:
        ValueError: nothing in x, something that is not a string, columns of different length, impossible targets.
    """
    if task.preprocessor is None:
        x = check_token_ids(x, task.backbone.vocabulary_size, task.backbone.longest_row)
        sizes = {name: len(array) for name, array in x.items()}
    else:
        columns = task.text_columns(x)
        sizes = {f"text {i + 1}": len(column) for i, column in enumerate(columns)}
        x = columns if isinstance(x, tuple) else columns[0]
    if y is not None:
        y = np.asarray(task.check_targets(y))
        sizes["the targets"] = len(y)
    if len(set(sizes.values())) > 1:
        raise ValueError(f"Columns of different length: {', '.join(f'{name} {size}' for name, size in sizes.items())}.")
    if not all(sizes.values()):
        raise ValueError("There is nothing to work on: the input is empty.")
    return x, y


def shuffled(x, y, sample_weight, batch_size: int | None):
    """Checked samples as a `tf.data.Dataset` of batches, shuffled anew every epoch; Keras's seed fixes how.

    KerasHub's own `fit` on lists keeps their order, which ruins training on a file sorted by label.
    """
    import tensorflow as tf

    samples = keras.utils.pack_x_y_sample_weight(x, y, sample_weight)
    dataset = tf.data.Dataset.from_tensor_slices(samples)
    return dataset.shuffle(len(dataset)).batch(batch_size or 32)
