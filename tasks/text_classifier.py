"""Classification of a text or a pair of texts."""

import keras
import keras_hub
import numpy as np

from garden.layers import ClassificationHead, Pooler

from .batching import predict_sorted
from .checks import check_labels
from .class_task import ClassTask


class TextClassifier(ClassTask, keras_hub.models.TextClassifier):
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
        self.set_classes(num_classes, class_names, dropout)
        dtype = backbone.dtype_policy
        self.head = ClassificationHead(self.num_classes, self.dropout, dtype=dtype, name="classifier")
        self.pooler, outputs = None, backbone(backbone.input)
        if backbone.classifier_pooler:
            self.pooler = Pooler(backbone.hidden_dim, **backbone.classifier_pooler, dtype=dtype, name="pooler")
            pooled = self.pooler(outputs["sequence_output"], backbone.input["padding_mask"])
        else:
            pooled = outputs["pooled_output"]
        super().__init__(inputs=backbone.input, outputs=self.head(pooled), **kwargs)

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
        return [self.names[i] for i in probabilities.argmax(-1)], probabilities

    def check_targets(self, y):
        # Anything but sparse labels is the business of the loss that the user compiled.
        sparse = isinstance(self.loss, keras.losses.SparseCategoricalCrossentropy)
        return check_labels(y, self.num_classes) if y is not None and sparse else y
