"""BERT's second pretraining task: does the second text follow the first?"""

import keras_hub

from garden.layers import ClassificationHead

from .problems import SingleLabel
from .task import Task


class NextSentence(Task, keras_hub.models.Task):
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

    reads = "pooled_output"
    num_outputs = 2
    problem = SingleLabel()

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = ClassificationHead(self.num_outputs, dtype=backbone.dtype_policy, name="classifier")
        super().__init__(inputs=backbone.input, outputs=self.head(backbone(backbone.input)[self.reads]), **kwargs)

    def compile(self, optimizer="auto", loss="auto", *, metrics="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 5e-5, cross-entropy from logits, and accuracy."""
        super().compile(**self.problem.settings(optimizer, loss, metrics), **kwargs)
