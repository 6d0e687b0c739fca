"""Which of several choices answers a question about a text: RACE, SWAG, C3."""

import keras
import keras_hub
import numpy as np

from garden.layers import ClassificationHead, FoldChoices, Pooler, UnfoldChoices
from garden.strings import as_strings

from .batching import predict_sorted, token_counts
from .checks import check_answers, check_labels
from .multiple_choice_preprocessing import choice_array
from .problems import SingleLabel
from .task import Task


class MultipleChoice(Task, keras_hub.models.Task):
    """A score for each choice from the summary of its row, and a softmax over the scores (Devlin et al. 2018, 4.4).

    Samples are a tuple of contexts (b,), questions (b,) and choices, a list of strings for each question; targets are
    the places of the right choices, from 0. Questions may differ in their number of choices.

    Args:
        backbone: a garden backbone. One without a pooled output gets the pooler that its published heads have.
        preprocessor: from strings to inputs; None to feed token ids (b, c, t).
        dropout: rate before the scores; None means the backbone's `classifier_dropout`.

    Returns:
        Logits (b, c), -1e4 for a choice that is all padding.

    Raises:
        ValueError: a question without choices, or a target that is none of its question's choices.

    ```python
    task = garden.tasks.MultipleChoice.from_preset("bert_base_en_uncased", sequence_length=128)
    samples, answers = read_swag("train.csv")
    task.fit(samples, answers)
    chosen, probabilities = task.predict_choices((["It rains."], ["The street is"], [["wet.", "dry."]]))
    ```
    """

    reads = "pooled_output"
    problem = SingleLabel()

    def __init__(self, backbone, preprocessor=None, dropout=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.dropout = backbone.classifier_dropout if dropout is None else dropout
        dtype = backbone.dtype_policy
        self.head = ClassificationHead(1, self.dropout, dtype=dtype, name="classifier")
        self.pooler = None
        if backbone.classifier_pooler:  # the published heads drop out behind it only
            settings = {**backbone.classifier_pooler, "dropout": 0.0}
            self.pooler = Pooler(backbone.hidden_dim, **settings, dtype=dtype, name="pooler")
        inputs = {name: keras.Input((None, None), dtype="int32", name=name) for name in backbone.input_names}
        rows = {name: FoldChoices(dtype=dtype, name=f"fold_{name}")(x) for name, x in inputs.items()}
        outputs = backbone(rows)
        pooled = self.pooler(outputs["sequence_output"], rows["padding_mask"]) if self.pooler else outputs[self.reads]
        logits = UnfoldChoices(dtype=dtype, name="unfold")(self.head(pooled), inputs["padding_mask"])
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

    def compile(self, optimizer="auto", loss="auto", *, metrics="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5, cross-entropy from logits, and accuracy."""
        super().compile(**self.problem.settings(optimizer, loss, metrics), **kwargs)

    def predict_choices(self, x, batch_size: int = 8) -> tuple[np.ndarray, np.ndarray]:
        """The most probable choice of each question, and the probabilities of all.

        Args:
            x: a tuple of contexts, questions and choices.
            batch_size: questions a step; those with contexts of similar length share one.

        Returns:
            int64 (b,), and float32 (b, c), 0 where a question has fewer than c choices.

        Raises:
            ValueError: see `MultipleChoice`.
        """
        x = self.text_columns(x)
        if not len(x[0]):
            return np.zeros(0, "int64"), np.zeros((0, 0), "float32")
        lengths = token_counts(x[0], self.preprocessor.tokenizer) if self.preprocessor else None
        probabilities = self.problem.values(predict_sorted(self, x, batch_size, lengths))
        return probabilities.argmax(-1), probabilities

    def text_columns(self, x):
        if not isinstance(x, tuple) or len(x) != 3:
            raise ValueError("MultipleChoice takes a tuple of contexts, questions and choices.")
        contexts, questions = (np.array(as_strings(column)[0], dtype=object) for column in x[:2])
        choices = choice_array(x[2])
        if not len(contexts) == len(questions) == len(choices):
            sizes = f"contexts {len(contexts)}, questions {len(questions)}, choices {len(choices)}"
            raise ValueError(f"Columns of different length: {sizes}.")
        for i, row in enumerate(choices):
            count = (row != "").sum()
            if not count or (row[:count] == "").any():
                raise ValueError(f"Question {i} has {'an empty choice' if count else 'no choices'}.")
        return contexts, questions, choices

    def training_samples(self, x, y=None):
        x, y = super().training_samples(x, y)
        if y is not None and self.preprocessor:
            y, counts = check_labels(y, x[2].shape[1]).reshape(len(y)), (x[2] != "").sum(1)
            for i in np.flatnonzero(y >= counts):
                raise ValueError(f"The answer to question {i} is choice {y[i]}, but it has {counts[i]}, from 0.")
        return x, y

    def preprocess_samples(self, x, y=None, sample_weight=None):
        """As in `Task`; the answers are checked against the choices that their questions have."""
        samples = super().preprocess_samples(x, y, sample_weight)
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(samples)
        y = y if y is None else check_answers(y, x["padding_mask"])
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def check_targets(self, y):
        return y  # how many choices there are is known beside the samples only

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}
