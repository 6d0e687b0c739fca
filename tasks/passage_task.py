"""What the tasks share that find answers in passages: examples in, windows through the model, answers out."""

import os
from itertools import groupby

import keras_hub
import numpy as np

from garden.strings import as_strings

from .question_answering_batches import example_batches
from .question_answering_preprocessor import check_pairs
from .span_decoding import Answer
from .squad import Example, read_squad
from .task import Task


class PassageTask(Task, keras_hub.models.Task):
    """A subclass makes the model, and says with `decode` how what it says to windows becomes an answer.

    KerasHub looks for a family's task among the subclasses of the one that is asked for, so none of these is another's.
    """

    preprocessor_settings = ("sequence_length", "doc_stride", "max_query_length", "pad_to_multiple_of")

    def fit(self, x=None, y=None, batch_size=None, sample_weight=None, validation_data=None, shuffle=True, **kwargs):
        """Keras's `fit` on examples, or on raw samples as in every task.

        Args:
            x: a list of `Example`, or a path for `read_squad`. An example without an answer teaches to answer "", one
                whose answers are not in its passage is left out with a warning.
            validation_data: likewise.
            batch_size: rows a step, 32 when None.
            y, sample_weight, shuffle, **kwargs: see `Task.fit`; examples carry their own targets.

        Raises:
            ValueError: no examples, an answer that is not where it should be, an empty question or passage.
        """
        if _are_examples(validation_data):
            validation_data = self._batches(validation_data, batch_size, shuffle=False)
        if _are_examples(x):
            x, batch_size = self._batches(x, batch_size, shuffle), None
        return super().fit(x, y, batch_size, sample_weight, validation_data, shuffle, **kwargs)

    def evaluate(self, x=None, y=None, batch_size=None, *args, **kwargs):
        """Keras's `evaluate`, the loss and the accuracy of positions, on what `fit` takes.

        For exact match and F1 see `garden.tasks.evaluate_answers`.
        """
        if _are_examples(x):
            x, batch_size = self._batches(x, batch_size, shuffle=False), None
        return super().evaluate(x, y, batch_size, *args, **kwargs)

    def predict_answers(
        self, questions, passages, n_best=20, null_threshold=None, max_answer_length=30, batch_size=32
    ) -> list[Answer]:
        """The answers, each an exact piece of its passage.

        Args:
            questions, passages: lists of strings, equally long.
            n_best, null_threshold, max_answer_length: see `garden.tasks.decode`.
            batch_size: windows a step; windows of similar length share one.

        Returns:
            For every question an `Answer`, for which `passage[answer.start:answer.end] == answer.text`.

        Raises:
            ValueError: a question or a passage is empty, or there are not as many of each.
        """
        for name, value in (
            ("n_best", n_best),
            ("max_answer_length", max_answer_length),
            ("batch_size", batch_size),
        ):
            if value < 1:
                raise ValueError(f"{name}={value} has to be 1 or more.")
        if self.preprocessor is None:
            raise ValueError(f"{self.name} has no preprocessor, so it cannot read text: predict on token ids instead.")
        questions, passages = as_strings(questions)[0], as_strings(passages)[0]
        check_pairs(questions, passages)
        rows = []
        for i, (question, passage) in enumerate(zip(questions, passages, strict=True)):
            rows += [(i, window) for window in self.preprocessor.windows(question, passage, name=f"Question {i}")]
        logits = self._logits([window for _, window in rows], batch_size)
        found = []
        for i, group in groupby(zip(rows, logits, strict=True), key=lambda row: row[0][0]):
            windows, scores = zip(*((window, scores) for (_, window), scores in group), strict=True)
            found.append(self.decode(passages[i], windows, scores, n_best, null_threshold, max_answer_length))
        return found

    def _logits(self, windows, batch_size) -> list[np.ndarray]:
        """What the model says to each window, float (2, t), computed from the shortest to the longest.

        A batch that is not full repeats rows up to a power of two: a shape less to compile for at every new count.
        """
        order = np.argsort([len(window.token_ids) for window in windows], kind="stable")
        logits = [None] * len(windows)
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            batch = np.resize(batch, min(batch_size, 1 << (len(batch) - 1).bit_length()))
            packed = self.preprocessor.pack_windows([windows[i] for i in batch])
            for i, scores in zip(batch, self._said(packed), strict=True):
                logits[i] = scores
        return logits

    def _said(self, packed):
        """What the model says to each row of a batch, as `decode` takes it."""
        return self.predict_on_batch(packed)

    def _batches(self, examples, batch_size, shuffle):
        examples = examples if isinstance(examples, list) else read_squad(examples)
        return example_batches(examples, self.preprocessor, batch_size or 32, shuffle)


def _are_examples(x):
    return isinstance(x, (str, os.PathLike)) or (isinstance(x, list) and bool(x) and isinstance(x[0], Example))
