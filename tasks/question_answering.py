"""Extractive question answering: the piece of a passage that answers a question."""

import os
from itertools import groupby

import keras
import keras_hub
import numpy as np

from garden.layers import ClassificationHead
from garden.strings import as_strings

from .problems import SingleLabel
from .question_answering_batches import example_batches
from .question_answering_preprocessor import check_pairs
from .span_decoding import Answer, decode
from .squad import Example, read_squad
from .task import Task


class QuestionAnswering(Task, keras_hub.models.Task):
    """A dense layer that scores every token as the first and as the last of the answer (Devlin et al. 2018, 4.2).

    `fit` and `evaluate` take a list of `Example`, or the path of a file that `read_squad` reads; a passage that is
    longer than a row becomes several rows. What Keras takes works too: a tuple of questions and passages, with the
    positions of the first and the last token as targets, int (b, 2).

    Args:
        backbone: a garden backbone.
        preprocessor: a `QuestionAnsweringPreprocessor`; None to feed token ids.
        dropout: rate before the logits; None means the backbone's `question_answering_dropout`.

    Returns:
        Logits (b, 2, t), of starts and of ends. Those of question, padding and special tokens are as the dense layer
        gives them, like the published heads': the loss sees them, and `predict_answers` leaves them out.

    ```python
    model = garden.tasks.QuestionAnswering.from_preset("all_minilm_l6_v2_en", sequence_length=384)
    model.fit("train-v1.1.json", batch_size=16, epochs=2)
    answer = model.predict_answers(["Who wrote it?"], ["It was written by Ada Lovelace in 1843."])[0]
    answer.text, answer.start, answer.end
    ```
    """

    preprocessor_settings = ("sequence_length", "doc_stride", "max_query_length", "pad_to_multiple_of")

    def __init__(self, backbone, preprocessor=None, dropout=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.dropout = backbone.question_answering_dropout if dropout is None else dropout
        self.head = ClassificationHead(2, self.dropout, dtype=backbone.dtype_policy, name="question_answering")
        logits = self.head(backbone(backbone.input)[self.reads])
        super().__init__(inputs=backbone.input, outputs=keras.ops.transpose(logits, (0, 2, 1)), **kwargs)

    @property
    def num_outputs(self):
        length = self.preprocessor.sequence_length if self.preprocessor else self.backbone.max_sequence_length
        return length or np.iinfo("int32").max  # where no table limits a row

    def compile(self, optimizer="auto", loss="auto", *, metrics="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5, cross-entropy from logits, and accuracy.

        The loss is the mean of that of the starts and that of the ends, each over all tokens of the row.
        """
        super().compile(**SingleLabel().settings(optimizer, loss, metrics), **kwargs)

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
            found.append(decode(passages[i], windows, scores, n_best, null_threshold, max_answer_length))
        return found

    def _logits(self, windows, batch_size) -> list[np.ndarray]:
        """float (2, t) of each window, computed from the shortest to the longest.

        A batch that is not full repeats rows up to a power of two: a shape less to compile for at every new count.
        """
        order = np.argsort([len(window.token_ids) for window in windows], kind="stable")
        logits = [None] * len(windows)
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            batch = np.resize(batch, min(batch_size, 1 << (len(batch) - 1).bit_length()))
            packed = self.preprocessor.pack_windows([windows[i] for i in batch])
            for i, scores in zip(batch, self.predict_on_batch(packed), strict=True):
                logits[i] = scores
        return logits

    def _batches(self, examples, batch_size, shuffle):
        examples = examples if isinstance(examples, list) else read_squad(examples)
        return example_batches(examples, self.preprocessor, batch_size or 32, shuffle)

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}


def _are_examples(x):
    return isinstance(x, (str, os.PathLike)) or (isinstance(x, list) and bool(x) and isinstance(x[0], Example))
