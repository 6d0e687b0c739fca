"""The pre-norm block of a model with a memory."""

import keras

from .block import PreNormBlock


@keras.saving.register_keras_serializable("garden")
class RecurrentPreNormBlock(PreNormBlock):
    """x + sublayer(norm(x)), whose attention sees a memory through the same norm (Dai et al. 2019, `pre_lnorm`).

    A memory holds earlier inputs of the block as they were before the norm.

    Args are those of `Block`, and so are the call's, with one more:

    Call arguments:
        memory: float (b, m, d), earlier inputs of this block; None means none.

    Returns:
        float (b, t, d).

    >>> import numpy as np
    >>> from garden.layers import FeedForward, RecurrentPreNormBlock, RelativePositions, XLAttention
    >>> block = RecurrentPreNormBlock(XLAttention(num_heads=2), FeedForward(16))
    >>> x, memory = np.ones((1, 3, 8), "float32"), np.ones((1, 2, 8), "float32")
    >>> block(x, memory=memory, relative=RelativePositions()(x, memory)).shape == (1, 3, 8)
    True
    """

    def call(self, x, attention_mask=None, training=None, memory=None, **terms):
        return super().call(x, attention_mask, training, memory=self._normalised(memory), **terms)

    def explicit(self, x, attention_mask=None, training=None, memory=None, **terms):
        return super().explicit(x, attention_mask, training, memory=self._normalised(memory), **terms)

    def _normalised(self, memory):
        return None if memory is None else self.attention_norm(memory)
