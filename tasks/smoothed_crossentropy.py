"""Cross-entropy with smoothed labels, for models that write text."""

from math import log

import keras
from keras import ops


@keras.saving.register_keras_serializable("garden")
class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy against 1 - e for the right token and e / (v - 1) for each other one (Szegedy et al. 2016).

    As in tensor2tensor the entropy of that target is subtracted, so that 0 is the optimum. Padding does not count.

    Args:
        label_smoothing: e; 0.1 in Vaswani et al. 2017, section 5.4.

    Call arguments:
        y_true: int (b, t).
        y_pred: float (b, t, v), logits.

    Raises:
        ValueError: `label_smoothing` is not in [0, 1).

    >>> import numpy as np
    >>> from garden.tasks import SmoothedCrossentropy
    >>> logits = np.log(np.array([[[0.9, 0.05, 0.05]]], "float32"))
    >>> abs(float(SmoothedCrossentropy(0.1)(np.array([[0]]), logits))) < 1e-6
    True
    """

    def __init__(self, label_smoothing=0.1, name="smoothed_crossentropy", **kwargs):
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing={label_smoothing} has to be at least 0 and less than 1.")
        super().__init__(name=name, **{"reduction": "mean_with_sample_weight", **kwargs})
        self.label_smoothing = label_smoothing

    def call(self, y_true, y_pred):
        logs = ops.log_softmax(ops.cast(y_pred, "float32"), axis=-1)
        others = logs.shape[-1] - 1
        right = ops.take_along_axis(logs, ops.cast(y_true, "int32")[..., None], axis=-1)[..., 0]
        rest = ops.sum(logs, axis=-1) - right
        sure, unsure = 1 - self.label_smoothing, self.label_smoothing / others
        optimum = sure * log(sure) + (self.label_smoothing * log(unsure) if unsure else 0.0)
        return optimum - sure * right - unsure * rest

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}
