"""Classification of a text or a pair of texts."""

import json
import warnings

import keras
import keras_hub
import numpy as np

from garden.layers import ClassificationHead, Pooler

from .batching import predict_sorted
from .checks import check_labels
from .task import Task


class TextClassifier(Task, keras_hub.models.TextClassifier):
    """A classification head on a backbone's summary of the row (Devlin et al. 2018, section 4.1).

    A backbone without a pooled output gets the pooler that its published classifiers have.

    `fit`, `evaluate` and `predict` take raw strings, a tuple of two lists for pairs, or a `tf.data.Dataset` of either.

    Args:
        backbone: a garden backbone.
        num_classes: number of classes; may be left out with `class_names`.
        preprocessor: from strings to inputs; None to feed token ids.
        dropout: rate before the logits; None means the backbone's `classifier_dropout`.
        class_names: the classes' names in the order of their ids; they are saved in the preset.

    Returns:
        Logits (b, c).

    Raises:
        ValueError: as many names as classes are not given, or a label is out of range.

    ```python
    classifier = garden.tasks.TextClassifier.from_preset("all_minilm_l6_v2_en", class_names=["bad", "good"])
    classifier.fit(["a fine film", "a dull film"], [1, 0])
    labels, probabilities = classifier.predict_labels(["what a fine day"])
    ```
    """

    reads = "pooled_output"
    activation = None  # what KerasHub's `compile` asks to learn that the outputs are logits

    def __init__(self, backbone, num_classes=None, preprocessor=None, dropout=None, class_names=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.num_classes = _count(num_classes, class_names)
        self.dropout = backbone.classifier_dropout if dropout is None else dropout
        self.class_names = list(class_names) if class_names else None
        dtype = backbone.dtype_policy
        self.head = ClassificationHead(self.num_classes, self.dropout, dtype=dtype, name="classifier")
        self.pooler, outputs = None, backbone(backbone.input)
        if backbone.classifier_pooler:
            self.pooler = Pooler(backbone.hidden_dim, **backbone.classifier_pooler, dtype=dtype, name="pooler")
            pooled = self.pooler(outputs["sequence_output"], backbone.input["padding_mask"])
        else:
            pooled = outputs["pooled_output"]
        super().__init__(inputs=backbone.input, outputs=self.head(pooled), **kwargs)

    @property
    def num_outputs(self):
        return self.num_classes

    def predict_labels(self, x, batch_size: int = 32) -> tuple[list[str], np.ndarray]:
        """The most probable class of each text, by name, and the probabilities of all.

        Args:
            x: list of strings, or a tuple of two lists for pairs.
            batch_size: texts a step; texts of similar length share one.

        Returns:
            Names, or ids as strings when there are no names, and float32 (len(x), c).

        Raises:
            ValueError: something in `x` is not a string.
        """
        logits = predict_sorted(self, x, batch_size)
        probabilities = np.exp(logits - logits.max(-1, keepdims=True))
        probabilities /= probabilities.sum(-1, keepdims=True)
        names = self.class_names or [str(i) for i in range(self.num_classes)]
        return [names[i] for i in probabilities.argmax(-1)], probabilities

    def check_targets(self, y):
        # Anything but sparse labels is the business of the loss that the user compiled.
        sparse = isinstance(self.loss, keras.losses.SparseCategoricalCrossentropy)
        return check_labels(y, self.num_classes) if y is not None and sparse else y

    @classmethod
    def from_garden_preset(cls, path, load_weights=True, **kwargs):
        # KerasHub drops the trained head whenever num_classes is given; here only when it differs.
        saved = json.loads((path / "task.json").read_text("utf-8"))["config"] if (path / "task.json").exists() else {}
        wanted = kwargs.get("num_classes") or len(kwargs.get("class_names") or ()) or saved.get("num_classes")
        if wanted == saved.get("num_classes"):
            kwargs.pop("num_classes", None)
        elif saved:
            kwargs = {"num_classes": wanted, "class_names": None, **kwargs}
            found = f"{path} classifies into {saved['num_classes']} classes, not {wanted}"
            warnings.warn(f"{found}: the head is fresh and in need of training.", stacklevel=4)
        return super().from_garden_preset(path, load_weights, **kwargs)

    @classmethod
    def complete(cls, arguments, checkpoint):
        if arguments.get("num_classes") or arguments.get("class_names"):
            return arguments
        names = checkpoint.class_names("TextClassifier") or []
        generic = all(name == f"LABEL_{i}" for i, name in enumerate(names))
        return {**arguments, "num_classes": len(names) or None, "class_names": None if generic else names}

    def get_config(self):
        own = {"num_classes": self.num_classes, "dropout": self.dropout, "class_names": self.class_names}
        return {**super().get_config(), **own}


def _count(num_classes, class_names):
    if num_classes is None and not class_names:
        raise ValueError("How many classes? Give num_classes or class_names: the checkpoint has no head that says it.")
    if num_classes is not None and class_names and num_classes != len(class_names):
        raise ValueError(f"num_classes={num_classes} but class_names has {len(class_names)}: {', '.join(class_names)}.")
    return num_classes or len(class_names)
