"""What one segment leaves behind for the next."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("garden")
class Memory(layers.Layer):
    """The states of this segment behind those of earlier ones, cut to the last, without a gradient (Dai et al. 2019).

    Args:
        length: how many places are kept at most; None keeps all.
        reuse_length: how many of a segment's first places are kept, where the next segment begins behind them and
            repeats the others (Yang et al. 2019); None means all.

    Call arguments:
        states: float (b, l, t, d), or a list of l tensors (b, t, d).
        padding_mask: int (b, t).
        memory: float (b, l, m, d).
        memory_mask: int (b, m), 0 where the memory holds nothing.

    Returns:
        The memory for the next segment, and its mask: 0 also where there was padding.

    >>> import numpy as np
    >>> from garden.layers import Memory
    >>> state, ones = np.ones((1, 3, 8), "float32"), np.ones((1, 3), "int32")
    >>> memory, mask = Memory(length=4)([state, state], ones, np.zeros((1, 2, 3, 8), "float32"), 0 * ones)
    >>> memory.shape == (1, 2, 4, 8), np.array(mask).tolist()
    (True, [[0, 1, 1, 1]])
    """

    def __init__(self, length=None, reuse_length=None, **kwargs):
        super().__init__(**kwargs)
        self.length = length
        self.reuse_length = reuse_length
        self.built = True

    def call(self, states, padding_mask, memory, memory_mask):
        states = ops.stack(states, axis=1) if isinstance(states, (list, tuple)) else states
        token = ops.cast(padding_mask > 0, memory_mask.dtype)
        memory = ops.concatenate([memory, ops.cast(self._first(states, 2), memory.dtype)], axis=2)
        memory_mask = ops.concatenate([memory_mask, self._first(token, 1)], axis=1)
        return ops.stop_gradient(self._last(memory, 2)), self._last(memory_mask, 1)

    def _first(self, x, axis):
        return x[(slice(None),) * axis + (slice(None, self.reuse_length or None),)]

    def _last(self, x, axis):
        return x[(slice(None),) * axis + (slice(-self.length if self.length else None, None),)]

    def compute_output_spec(self, states, padding_mask, memory, memory_mask):
        return (
            keras.KerasTensor((*memory.shape[:2], None, memory.shape[-1]), dtype=memory.dtype),
            keras.KerasTensor((memory_mask.shape[0], None), dtype=memory_mask.dtype),
        )
