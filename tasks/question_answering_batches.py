"""From examples with answers to batches of windows with the positions of the answers."""

import warnings

import numpy as np

from .batching import grouped_rows, taken_rows
from .squad import Example
from .windows import Window, covering_tokens


def example_batches(
    examples: list[Example],
    preprocessor,
    batch_size: int,
    shuffle: bool = True,
    seed: int | None = None,
    drop_remainder: bool = False,
):
    """A `tf.data.Dataset` of packed batches and the positions (b, 2) of first and last token.

    Args:
        examples: an answer's first span is what is learnt.
        preprocessor: a `QuestionAnsweringPreprocessor`.
        batch_size: windows a batch; the last one may be smaller.
        shuffle: a new order every epoch. Where the preprocessor pads to the longest row of a batch, rows of similar
            length share one.
        seed: of the order; None takes Keras's.
        drop_remainder: as in `garden.tasks.length_grouped`.

    Raises:
        ValueError: see `labelled_windows`.
    """
    import tensorflow as tf

    if preprocessor is None:
        raise ValueError("Without a preprocessor the task takes token_ids, segment_ids and padding_mask, not examples.")
    windows, targets = labelled_windows(examples, preprocessor)
    lengths = np.array([len(window.token_ids) for window in windows])
    # NumPy's global state, which `keras.utils.set_random_seed` sets.
    rng = np.random.default_rng(np.random.randint(2**31) if seed is None else seed)
    taken = taken_rows(len(windows), batch_size, drop_remainder)
    together = 50 if preprocessor.pad_to_multiple_of else 1

    def batches():
        order = np.arange(len(windows))
        rows = grouped_rows(lengths, batch_size, rng, taken, window=together)
        for batch in rows if shuffle else np.split(order, order[batch_size::batch_size]):
            yield preprocessor.pack_windows([windows[i] for i in batch]), targets[batch]

    spec = {name: tf.TensorSpec((None, width), dtype) for name, (dtype, width) in preprocessor.packed_spec().items()}
    dataset = tf.data.Dataset.from_generator(batches, output_signature=(spec, tf.TensorSpec((None, 2), tf.int32)))
    return dataset.apply(tf.data.experimental.assert_cardinality(-(-taken // batch_size)))


def labelled_windows(examples: list[Example], preprocessor) -> tuple[list[Window], np.ndarray]:
    """The windows of all examples, and where each holds the answer: int32 (windows, 2), see `Window.positions`.

    Args:
        examples: those whose answer has no place in the passage, or no token there, are left out, and a warning says
            how many.
        preprocessor: a `QuestionAnsweringPreprocessor`.

    Raises:
        ValueError: an answer that its passage does not hold at that place, an empty question or passage, an example
            without labels, or nothing that is left.
    """
    windows, targets, left_out = [], [], []
    for example in examples:
        where = f"Question {example.id}"
        _check_answers(example, where)
        found = preprocessor.windows(example.question, example.passage, where)
        tokens = _answer_tokens(found, example.answers)
        if example.answers and tokens is None:
            left_out.append(example.id)
            continue
        windows += found
        targets += [window.positions(tokens) for window in found]
    if left_out:
        warnings.warn(
            f"{len(left_out)} examples whose answer is not in the passage are left out, such as {left_out[0]}.",
            stacklevel=2,
        )
    if not windows:
        raise ValueError("There is nothing to learn from: no example has an answer that is in its passage.")
    return windows, np.array(targets, "int32")


def _check_answers(example, where):
    if example.answers is None:
        raise ValueError(f"{where} has no answers, not even that there is none: it cannot be learnt from.")
    for text, start in example.answers:
        if start is not None and (start < 0 or not text or example.passage[start : start + len(text)] != text):
            raise ValueError(
                f"{where}: the passage of {len(example.passage)} characters does not have the answer {text!r} "
                f"at {start}, where it should stand."
            )


def _answer_tokens(windows, answers):
    """First and last token, among all of the passage, of the first answer that has a place in it, or None."""
    placed = [(answer.start, answer.start + len(answer.text)) for answer in answers if answer.start is not None]
    offsets = np.zeros((windows[-1].span[1], 2), "int32")
    for window in windows:
        offsets[slice(*window.span)] = window.offsets
    return covering_tokens(offsets, *placed[0]) if placed else None
