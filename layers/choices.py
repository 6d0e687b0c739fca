"""Several texts a row, one a choice: folded into rows of their own for the backbone, and their logits folded back."""

import keras
from keras import layers, ops

# The logit of a choice that does not exist. Its probability is 0 in every dtype, and
# unlike minus infinity it leaves a loss with smoothed labels finite.
NO_CHOICE = -1e4


@keras.saving.register_keras_serializable("garden")
class FoldChoices(layers.Layer):
    """The choices of all rows, one below the other.

    Call arguments:
        x: (b, c, t), c choices a row.

    Returns:
        (b * c, t).

    >>> import numpy as np
    >>> from garden.layers import FoldChoices
    >>> FoldChoices()(np.ones((2, 3, 4), "int32")).shape == (6, 4)
    True
    """

    def call(self, x):
        return ops.reshape(x, (-1, ops.shape(x)[-1]))

    def compute_output_spec(self, x):
        return keras.KerasTensor((None, x.shape[-1]), x.dtype)


@keras.saving.register_keras_serializable("garden")
class UnfoldChoices(layers.Layer):
    """The logits of each row's choices side by side; a choice that is all padding does not exist.

    Call arguments:
        logits: float (b * c, 1).
        padding_mask: int (b, c, t).

    Returns:
        float (b, c), -1e4 where there is no choice, which is a probability of 0.

    >>> import numpy as np
    >>> from garden.layers import UnfoldChoices
    >>> np.array(UnfoldChoices()(np.ones((2, 1)), np.array([[[1, 1], [0, 0]]]))).tolist()
    [[1.0, -10000.0]]
    """

    def call(self, logits, padding_mask):
        exists = ops.any(padding_mask > 0, axis=-1)
        return ops.where(exists, ops.reshape(logits, ops.shape(exists)), ops.cast(NO_CHOICE, logits.dtype))

    def compute_output_spec(self, logits, padding_mask):
        return keras.KerasTensor(padding_mask.shape[:2], logits.dtype)
