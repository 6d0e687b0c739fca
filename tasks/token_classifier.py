"""One label for every word of a text: parts of speech, named entities, word boundaries."""

from typing import NamedTuple

import keras
import keras_hub
import numpy as np
from keras import ops

from garden.layers import CRF, ClassificationHead
from garden.strings import as_strings, refuse_surrogates

from .checks import check_labels
from .class_task import ClassTask
from .entities import spans
from .token_classifier_preprocessor import check_lengths
from .word_predictions import best, best_sequences, word_logits


class Entity(NamedTuple):
    """One entity in a text: `text` is the original string from `start` to `end`.

    `score` is the mean probability of the labels of its words.
    """

    label: str
    start: int
    end: int
    text: str
    score: float


class TokenClassifier(ClassTask, keras_hub.models.Task):
    """A classification head at every position (Devlin et al. 2018, section 5.3): the first piece speaks for its word.

    `fit` and `evaluate` take lists of words, or plain strings, of which the preprocessor's `split` says how they become
    words, and for each row one label a word, by name or id. A `tf.data.Dataset` yields ragged tensors of words and of
    ids. The loss is the mean over the words: other pieces, special tokens and padding have no part in it. What a row
    has beyond the preprocessor's `sequence_length` is not learned from, but predicted all the same.

    Args:
        backbone: a garden backbone.
        num_classes: number of labels; may be left out with `class_names`.
        preprocessor: from words to inputs; None to feed token ids, labels (b, t) and, as `sample_weight` (b, t), which
            positions count.
        dropout: rate before the logits; None means the backbone's `classifier_dropout`.
        class_names: the labels in the order of their ids, such as `["O", "B-PER", "I-PER"]`; they are saved in the
            preset.
        crf: whether a `garden.layers.CRF` scores whole sequences: the loss is then the negative logarithm of their
            probability, per word, and the labels are those of the best sequence. Its tables start at zero and learn at
            the rate of all weights.

    Returns:
        Logits (b, t, c).

    Raises:
        ValueError: as many names as classes are not given, a row has not one label a word, or a label is none of them.

    ```python
    tagger = garden.tasks.TokenClassifier.from_preset("bert_base_en_cased", class_names=["O", "B-PER", "I-PER"])
    tagger.fit([["Ada", "Lovelace", "wrote", "it"]], [["B-PER", "I-PER", "O", "O"]])
    tagger.predict_entities(["It was written by Ada Lovelace."])
    ```
    """

    preprocessor_settings = ("sequence_length", "split", "pad_to_multiple_of")
    head_settings = ("crf",)

    def __init__(
        self, backbone, num_classes=None, preprocessor=None, dropout=None, class_names=None, crf=False, **kwargs
    ):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.set_classes(num_classes, class_names, dropout)
        dtype = backbone.dtype_policy
        self.head = ClassificationHead(self.num_classes, self.dropout, dtype=dtype, name="token_classifier")
        self.sequence_model = CRF(dtype=dtype, name="crf") if crf else None
        logits = self.head(backbone(backbone.input)[self.reads])
        outputs = self.sequence_model(logits) if crf else logits
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @property
    def crf(self) -> bool:
        """Whether a CRF scores whole sequences."""
        return self.sequence_model is not None

    def compile(self, optimizer="auto", loss="auto", *, weighted_metrics="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5, the mean cross-entropy of the words, and their accuracy.

        With a CRF the loss is its own. Keras's cross-entropy as it comes would divide by all positions, padding too.
        """
        if self.crf and loss not in ("auto", None):
            raise ValueError(f"With crf=True the loss is that of the CRF: leave {loss!r} out.")
        if loss == "auto":
            reduction = "mean_with_sample_weight"
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
        super().compile(
            optimizer=keras.optimizers.Adam(5e-5) if optimizer == "auto" else optimizer,
            loss=None if self.crf else loss,
            weighted_metrics=[keras.metrics.SparseCategoricalAccuracy()]
            if weighted_metrics == "auto"
            else weighted_metrics,
            **kwargs,
        )

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Keras's hook: with a CRF, the negative log-likelihood of the rows per counted word."""
        if not self.crf:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y_pred.shape[1] is None:
            raise ValueError("A CRF trains on rows of one width in TensorFlow: leave pad_to_multiple_of out.")
        weights = ops.ones_like(y, dtype="float32") if sample_weight is None else ops.cast(sample_weight, "float32")
        likelihood = self.sequence_model.log_likelihood(y_pred, y, weights > 0)
        loss = ops.divide_no_nan(-ops.sum(likelihood * ops.max(weights, axis=1)), ops.sum(weights))
        return sum(self.losses, loss)

    def predict_labels(self, x, batch_size: int = 32) -> list[list[str]]:
        """The label of each word, by name.

        A row that is too long is read in windows that overlap by half, so every word has a label.

        Args:
            x: a list of rows, each a list of words or a string.
            batch_size: rows a step; rows of similar length share one.

        Returns:
            For each row as many labels as it has words, ids as strings where there are no names.

        Raises:
            ValueError: a word is empty or no string, or the task has no preprocessor.
        """
        return [[self.names[i] for i in labels] for labels, _ in self._classify(self._rows(x), batch_size)]

    def predict_entities(self, texts, batch_size: int = 32) -> list[list[Entity]]:
        """The entities in each text, with offsets into the string as it was given.

        Args:
            texts: a list of strings; the preprocessor's `split` says how they become words.
            batch_size: as in `predict_labels`.

        Returns:
            For each text its entities from left to right.

        Raises:
            ValueError: `class_names` are no labels of entities, or something in `texts` is not a string.
        """
        spans(self.names)  # refuses other labels before the work
        texts = as_strings(texts)[0]
        rows, found = self._rows(texts), []
        for text, (labels, probabilities) in zip(texts, self._classify(rows, batch_size), strict=True):
            places = self.preprocessor.spans(text)
            own = probabilities[np.arange(len(labels)), labels]
            found.append([])
            for type_, first, stop in spans(self.names[i] for i in labels):
                start, end = places[first][0], places[stop - 1][1]
                found[-1].append(Entity(type_, start, end, text[start:end], float(own[first:stop].mean())))
        return found

    def check_samples(self, x, y=None):
        """Checked rows and the ids of their labels, as ragged tensors."""
        if self.preprocessor is None:
            return super().check_samples(x, y)
        rows = self._rows(x)
        if not rows:
            raise ValueError("There is nothing to work on: the input is empty.")
        refuse_surrogates([" ".join(row) for row in rows])  # TensorFlow's message names no row
        return _ragged(rows, "string"), None if y is None else _ragged(self._label_ids(rows, y), "int32")

    def _rows(self, x):
        if self.preprocessor is None:
            raise ValueError(f"{self.name} has no preprocessor, so it cannot read words: predict on token ids instead.")
        return self.preprocessor.rows(x)

    def _label_ids(self, rows, y):
        ids = {name: i for i, name in enumerate(self.class_names or ())}
        found = []
        for i, labels in enumerate(check_lengths(rows, y)):
            unknown = [label for label in labels if isinstance(label, str) and label not in ids]
            if unknown:
                raise ValueError(f"Row {i} has the label {unknown[0]!r}, which is none of {', '.join(self.names)}.")
            found.append([ids[label] if isinstance(label, str) else label for label in labels])
            check_labels(found[-1], self.num_classes)
        return found

    def _classify(self, rows, batch_size):
        """For each row the ids of its words' labels (n,) and the probabilities of all (n, c)."""
        lengths = np.array([len(row) for row in rows], int)
        logits = word_logits(self, rows, batch_size)
        labels, probabilities = best_sequences(self.sequence_model, logits, lengths) if self.crf else best(logits)
        ends = np.cumsum(lengths)
        return [(labels[end - n : end], probabilities[end - n : end]) for end, n in zip(ends, lengths, strict=True)]


def _ragged(rows, dtype):
    import tensorflow as tf

    flat = [value for row in rows for value in row]
    return tf.RaggedTensor.from_row_lengths(tf.constant(flat, dtype), [len(row) for row in rows])
