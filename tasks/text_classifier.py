"""Classification of a text or a pair of texts: one class, any number of classes, or a number."""

import keras_hub
import numpy as np

from garden.layers import ClassificationHead, Pooler

from .batching import predict_sorted
from .class_task import ClassTask
from .problems import find_problem


class TextClassifier(ClassTask, keras_hub.models.TextClassifier):
    """A classification head on a backbone's summary of the row (Devlin et al. 2018, section 4.1).

    A backbone without a pooled output gets the pooler that its published classifiers have.

    `fit`, `evaluate` and `predict` take raw strings, a tuple of two lists for pairs, or a `tf.data.Dataset` of either.

    Args:
        backbone: a garden backbone.
        num_classes: number of classes, or of numbers; may be left out with `class_names`, and for one number.
        preprocessor: from strings to inputs; None to feed token ids.
        dropout: rate before the logits; None means the backbone's `classifier_dropout`.
        class_names: the classes' names in the order of their ids; they are saved in the preset.
        problem: `"single_label_classification"`, `"multi_label_classification"` (targets are 0 or 1 (b, c), or lists of
            names) or `"regression"` (targets are numbers); see `garden.tasks.problems`.

    Returns:
        Logits (b, c).

    Raises:
        ValueError: as many names as classes are not given, a label is out of range, or there is no such problem.

    ```python
    classifier = garden.tasks.TextClassifier.from_preset("all_minilm_l6_v2_en", class_names=["bad", "good"])
    classifier.fit(["a fine film", "a dull film"], [1, 0])
    labels, probabilities = classifier.predict_labels(["what a fine day"])
    ```
    """

    reads = "pooled_output"
    head_settings = ("problem",)
    activation = None  # what KerasHub's `compile` asks to learn that the outputs are logits

    def __init__(
        self,
        backbone,
        num_classes=None,
        preprocessor=None,
        dropout=None,
        class_names=None,
        problem="single_label_classification",
        **kwargs,
    ):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.problem = find_problem(problem)
        usual = None if class_names else self.problem.num_classes
        self.set_classes(num_classes or usual, class_names, dropout)
        dtype = backbone.dtype_policy
        self.head = ClassificationHead(self.num_classes, self.dropout, dtype=dtype, name="classifier")
        self.pooler, outputs = None, backbone(backbone.input)
        if backbone.classifier_pooler:
            self.pooler = Pooler(backbone.hidden_dim, **backbone.classifier_pooler, dtype=dtype, name="pooler")
            pooled = self.pooler(outputs["sequence_output"], backbone.input["padding_mask"])
        else:
            pooled = outputs["pooled_output"]
        super().__init__(inputs=backbone.input, outputs=self.head(pooled), **kwargs)

    def compile(self, optimizer="auto", loss="auto", *, metrics="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5, and the loss and metrics of the problem."""
        super().compile(**self.problem.settings(optimizer, loss, metrics), **kwargs)

    def predict_labels(self, x, batch_size: int = 32) -> tuple[list, np.ndarray]:
        """The most probable class of each text, by name, and the probabilities of all.

        Args:
            x: list of strings, or a tuple of two lists for pairs.
            batch_size: texts a step; texts of similar length share one.

        Returns:
            Names, or ids as strings when there are no names, and float32 (len(x), c). Of a multi-label classifier a
            list of names for each text, those above 0.5.

        Raises:
            ValueError: something in `x` is not a string, or the problem is a regression.
        """
        values = self.predict_values(x, batch_size)
        return self.problem.labels(values, self.names), values

    def predict_values(self, x, batch_size: int = 32) -> np.ndarray:
        """The number of each text of a regression; of the other problems the probabilities of all classes.

        Args:
            x, batch_size: as in `predict_labels`.

        Returns:
            float32 (len(x), c); (len(x),) for a regression of one number.

        Raises:
            ValueError: something in `x` is not a string.
        """
        return self.problem.values(predict_sorted(self, x, batch_size))

    def check_targets(self, y):
        # Targets of another loss than the problem's own are the business of the user who compiled it.
        own = isinstance(self.loss, type(self.problem.loss()))
        return self.problem.check(y, self.num_classes, self.class_names) if y is not None and own else y

    @classmethod
    def from_garden_preset(cls, path, load_weights=True, **kwargs):
        if kwargs.get("problem", "") not in ("", cls._saved(path).get("problem")) and not kwargs.get("class_names"):
            kwargs.setdefault("num_classes", find_problem(kwargs["problem"]).num_classes)
        return super().from_garden_preset(path, load_weights, **kwargs)

    @classmethod
    def _saved(cls, path):
        saved = super()._saved(path)
        return {"problem": "single_label_classification", **saved} if saved else {}

    @staticmethod
    def published_problem(checkpoint) -> str:
        """What a published head is for. One of one output is a regression if nobody says, as in transformers."""
        outputs = len(checkpoint.class_names("TextClassifier") or ())
        usual = "regression" if outputs == 1 else "single_label_classification"
        return checkpoint.config.get("problem_type") or usual

    @classmethod
    def complete(cls, arguments, checkpoint):
        names = checkpoint.class_names("TextClassifier") or []
        published = cls.published_problem(checkpoint)
        if arguments.get("problem", published) != published:
            return arguments
        arguments = super().complete(arguments, checkpoint)
        same = len(names) == (arguments.get("num_classes") or len(arguments.get("class_names") or ()))
        return {"problem": published, **arguments} if same else arguments

    def get_config(self):
        return {**super().get_config(), "problem": self.problem.name}
