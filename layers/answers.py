"""The head for answers that XLNet was fine-tuned with: where one ends depends on where it starts."""

import keras
from keras import layers, ops

from .attention import fill
from .heads import TOKENS
from .initializers import truncated_normal


@keras.saving.register_keras_serializable("garden")
class AnswerHead(layers.Layer):
    """Scores of starts, of ends given a start, and of there being no answer (Yang et al. 2019, its `run_squad.py`).

    start(t) = dense(h_t), end(t | s) = dense(norm(tanh(dense([h_t; h_s])))), null = dense(tanh(dense([h~; h_end]))),
    where h_end is the state of the summary token and h~ the mean of all states by the probabilities of the starts.

    Args:
        num_starts: k, how many of the most probable starts are given ends, where none are told.
        token: which token is the row's summary, `"first"` or `"last"`.
        layer_norm_epsilon: epsilon of the norm.
        dropout: rate on what the logit of no answer is made of.

    Call arguments:
        sequence: float (b, t, d).
        padding_mask: int (b, t).
        answer_mask: int (b, t), 1 where an answer may start and end.
        start_positions: int (b, k), the starts to which ends are wanted; None takes the most probable ones.

    Returns:
        Logits of starts (b, t), starts int32 (b, k), logits of their ends (b, k, t), and logits of no answer (b,).

    >>> import numpy as np
    >>> from garden.layers import AnswerHead
    >>> h, ones = np.ones((2, 7, 8), "float32"), np.ones((2, 7), "int32")
    >>> [tuple(output.shape) for output in AnswerHead(num_starts=3)(h, ones, ones)]
    [(2, 7), (2, 3), (2, 3, 7), (2,)]
    """

    def __init__(self, num_starts=5, token="last", layer_norm_epsilon=1e-12, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.num_starts = num_starts
        self.token = TOKENS[token]
        self.end_norm = layers.LayerNormalization(epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="end_norm")
        self.dropout = layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, sequence_shape, padding_mask_shape, answer_mask_shape, start_positions_shape=None):
        width = sequence_shape[-1]
        self.start_logits = self._dense(1, width, "start_logits")
        self.end_dense = self._dense(width, 2 * width, "end_dense")
        self.end_norm.build((None, None, None, width))
        self.end_logits = self._dense(1, width, "end_logits")
        self.null_dense = self._dense(width, 2 * width, "null_dense")
        self.null_logits = self._dense(1, width, "null_logits", use_bias=False)
        self.built = True

    def _dense(self, units, width, name, use_bias=True):
        dense = layers.Dense(
            units, use_bias=use_bias, kernel_initializer=truncated_normal(), dtype=self.dtype_policy, name=name
        )
        dense.build((None, None, width))
        return dense

    def call(self, sequence, padding_mask, answer_mask, start_positions=None, training=None):
        allowed = answer_mask > 0
        starts = _masked(self.start_logits(sequence)[..., 0], allowed)
        if start_positions is None:
            start_positions = ops.top_k(starts, self.num_starts)[1]
        ends = _masked(self.ends(sequence, start_positions), allowed[:, None, :])
        null = self.null(sequence, starts, self.token(sequence, padding_mask), training)
        return starts, ops.cast(start_positions, "int32"), ends, null

    def ends(self, sequence, start_positions):
        """The logits (b, k, t) of ends for starts (b, k)."""
        start_states = ops.take_along_axis(sequence, start_positions[:, :, None], axis=1)[:, :, None, :]
        sequence = sequence[:, None, :, :]
        both = [sequence + 0 * start_states, start_states + 0 * sequence]  # each as (b, k, t, d)
        x = ops.tanh(self.end_dense(ops.concatenate(both, axis=-1)))
        return self.end_logits(self.end_norm(x))[..., 0]

    def null(self, sequence, starts, summary, training=None):
        """The logits (b,) of no answer."""
        probs = ops.cast(ops.softmax(ops.cast(starts, "float32"), axis=-1), sequence.dtype)
        start_state = ops.einsum("bt,btd->bd", probs, sequence)
        x = ops.tanh(self.null_dense(ops.concatenate([start_state, summary], axis=-1)))
        return self.null_logits(self.dropout(x, training=training))[..., 0]

    def compute_output_spec(self, sequence, padding_mask, answer_mask, start_positions=None, training=None):
        rows, length = sequence.shape[:2]
        starts = self.num_starts if start_positions is None else start_positions.shape[1]
        shapes = ((rows, length), (rows, starts), (rows, starts, length), (rows,))
        kinds = (self.compute_dtype, "int32", self.compute_dtype, self.compute_dtype)
        return tuple(keras.KerasTensor(*spec) for spec in zip(shapes, kinds, strict=True))


def _masked(logits, allowed):
    return ops.where(allowed, logits, fill(logits.dtype))
