"""The second pretraining task: does the second text follow the first (BERT), or precede it (ALBERT)?"""

import keras_hub

from garden.layers import ClassificationHead

from .problems import SingleLabel
from .task import Task


class _SentencePair(Task, keras_hub.models.Task):
    """Two classes for a pair of texts, read from the pooled output."""

    reads = "pooled_output"
    needs = "a pooled output"
    num_outputs = 2
    problem = SingleLabel()

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = ClassificationHead(self.num_outputs, dtype=backbone.dtype_policy, name="classifier")
        super().__init__(inputs=backbone.input, outputs=self.head(backbone(backbone.input)[self.reads]), **kwargs)

    @classmethod
    def fits(cls, backbone_cls):
        return super().fits(backbone_cls) and backbone_cls.classifier_pooler is None

    def compile(self, optimizer="auto", loss="auto", *, metrics="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5, cross-entropy from logits, and accuracy."""
        super().compile(**self.problem.settings(optimizer, loss, metrics), **kwargs)


class NextSentence(_SentencePair):
    """Next-sentence prediction (Devlin et al. 2018, section 3.1, task 2).

    Class 0 means that the second text follows the first, class 1 that it was drawn at random.

    Args:
        backbone: a garden backbone with a pooled output.
        preprocessor: from pairs of strings to inputs; None to feed token ids.

    Returns:
        Logits (b, 2).

    ```python
    task = garden.tasks.NextSentence.from_preset("bert_base_en_uncased")
    task.predict((["he opened the door"], ["it was dark inside"]))
    ```
    """


class SentenceOrder(_SentencePair):
    """Sentence-order prediction (Lan et al. 2019, section 3.1): two texts that follow each other, in which order?

    Class 0 means that they stand in their own order, class 1 that they are swapped.

    Args:
        backbone: a garden backbone with a pooled output.
        preprocessor: from pairs of strings to inputs; None to feed token ids.

    Returns:
        Logits (b, 2).

    ```python
    task = garden.tasks.SentenceOrder.from_preset("albert_base_zh")
    task.predict((["他打开了门"], ["里面很黑"]))
    ```
    """
