"""Losses on the embeddings of pairs of texts, which stand in one batch as rows a0, b0, a1, b1, ..."""

import keras
from keras import ops

from garden.layers import unit_length


@keras.saving.register_keras_serializable("garden")
class MultipleNegativesRankingLoss(keras.losses.Loss):
    """Each text has to find its partner among the partners of the whole batch (Henderson et al. 2017, section 4.4).

    The cross-entropy of softmax(scale * cosine(a_i, b_j)) over j, with j = i as the right answer.

    Args:
        scale: factor on the cosines.

    Call arguments:
        y_true: (b,), not read.
        y_pred: float (2 * b, d), the pairs' embeddings in turn.

    Returns:
        A number, the mean over the pairs.

    >>> import numpy as np
    >>> from garden.tasks import MultipleNegativesRankingLoss
    >>> pairs = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> round(float(MultipleNegativesRankingLoss(scale=1.0)(np.zeros(2), pairs)), 4)  # log(1 + exp(-1))
    0.3133
    """

    def __init__(self, scale=20.0, name="multiple_negatives_ranking", **kwargs):
        super().__init__(name=name, **kwargs)
        self.scale = scale

    def call(self, y_true, y_pred):
        first, second = unit_length(y_pred[0::2]), unit_length(y_pred[1::2])
        scores = self.scale * ops.matmul(first, ops.transpose(second))
        return ops.logsumexp(scores, axis=-1) - ops.diagonal(scores)

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}


@keras.saving.register_keras_serializable("garden")
class CosineSimilarityLoss(keras.losses.Loss):
    """The squared difference between a pair's cosine and its score (Reimers and Gurevych 2019, section 3).

    Call arguments:
        y_true: float (b,), scores from -1 to 1.
        y_pred: float (2 * b, d), the pairs' embeddings in turn.

    Returns:
        A number, the mean over the pairs.

    >>> import numpy as np
    >>> from garden.tasks import CosineSimilarityLoss
    >>> pairs = np.array([[2.0, 0.0], [3.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> float(CosineSimilarityLoss()(np.array([0.5, 0.0]), pairs))
    0.125
    """

    def __init__(self, name="cosine_similarity", **kwargs):
        super().__init__(name=name, **kwargs)

    def call(self, y_true, y_pred):
        cosines = ops.sum(unit_length(y_pred[0::2]) * unit_length(y_pred[1::2]), axis=-1)
        return ops.square(cosines - ops.reshape(y_true, (-1,)))
