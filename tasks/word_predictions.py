"""From a tagger's logits at word pieces to the labels of words."""

import keras
import numpy as np
from keras import ops

from .words import windows, word_pieces


def word_logits(task, rows: list[list[str]], batch_size: int) -> np.ndarray:
    """The logits at the first piece of each word, of all rows one after the other: float32 (words, c).

    Args:
        task: a `TokenClassifier` with a preprocessor.
        rows: words; a row that is too long goes through the model in windows.
        batch_size: windows a step; those of similar length share one.
    """
    preprocessor, parts, before = task.preprocessor, [], 0
    for row, (ids, words) in zip(rows, word_pieces(rows, preprocessor.tokenizer), strict=True):
        parts += windows(ids, words + before, preprocessor.sequence_length - 2)
        before += len(row)
    parts = sorted(parts, key=lambda part: len(part[0]))
    logits = np.zeros((before, task.num_classes), "float32")
    for i in range(0, len(parts), batch_size):
        ids, marks = zip(*parts[i : i + batch_size], strict=True)
        packed = preprocessor.pack_ids(ids)
        marks = preprocessor.pack_marks([row.tolist() for row in marks])
        inputs = {name: packed[name] for name in task.backbone.input_names}
        found = keras.Model.predict_on_batch(task, inputs)  # KerasHub's would look for text
        logits[marks[marks >= 0]] = found[marks >= 0]
    return logits


def best(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each word's most probable label (words,) and its softmax (words, c).

    >>> best(np.array([[0.0, 0.0, 9.0]]))[0].tolist()
    [2]
    """
    probabilities = np.exp(logits - logits.max(-1, keepdims=True, initial=-np.inf))
    return logits.argmax(-1), probabilities / probabilities.sum(-1, keepdims=True)


def best_sequences(crf, logits: np.ndarray, lengths: np.ndarray, rows_a_step: int = 512):
    """As `best`, with the labels of each row's most probable sequence, and the marginals in place of the softmax.

    Args:
        crf: a `garden.layers.CRF`.
        logits: float (words, c), the rows one after the other.
        lengths: int (rows,), the words of each.
        rows_a_step: rows that are decoded together, those of similar length.
    """
    labels, probabilities = np.zeros(len(logits), int), np.zeros_like(logits)
    starts, order = np.cumsum(lengths) - lengths, np.argsort(lengths, kind="stable")
    for rows in (order[i : i + rows_a_step] for i in range(0, len(order), rows_a_step)):
        columns = np.arange(max(lengths[rows].max(), 1))
        mask = columns < lengths[rows][:, None]
        words = (starts[rows][:, None] + columns)[mask]
        block = np.zeros((*mask.shape, logits.shape[-1]), "float32")
        block[mask] = logits[words]
        labels[words] = ops.convert_to_numpy(crf.decode(block, mask))[mask]
        probabilities[words] = ops.convert_to_numpy(crf.marginals(block, mask))[mask]
    return labels, probabilities
