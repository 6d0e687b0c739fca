"""A linear-chain conditional random field over the labels of a sequence."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("garden")
class CRF(layers.Layer):
    """Scores whole label sequences: logits, and what it costs to start, to end and to go from label to label.

    The score of labels y_1 ... y_n is start[y_1] + sum_i logits[i, y_i] + sum_i transitions[y_i, y_{i+1}] + end[y_n],
    and their probability is the softmax of the scores of all sequences (Lafferty et al. 2001; Lample et al. 2016,
    section 2.2). The three tables start at zero, where the labels are independent.

    Called, the layer gives its logits back: its tables act in `log_likelihood`, `decode` and `marginals`. Each takes a
    mask, and only counted positions belong to the chain: the label before a position is that of the last counted one,
    however many lie between. All is computed in float32.

    Call arguments:
        logits: float (b, t, c).

    Returns:
        The logits.

    >>> import numpy as np
    >>> from garden.layers import CRF
    >>> crf, logits, mask = CRF(), np.array([[[2.0, 1.0], [0.0, 1.0]]], "float32"), np.ones((1, 2), bool)
    >>> np.array(crf.decode(crf(logits), mask)).tolist()
    [[0, 1]]
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        # XLA cannot differentiate TensorFlow's scan, and Keras then compiles without it.
        self.supports_jit = keras.config.backend() != "tensorflow"

    def build(self, input_shape):
        c = input_shape[-1]
        self.transitions = self.add_weight(name="transitions", shape=(c, c), initializer="zeros")
        self.start = self.add_weight(name="start", shape=(c,), initializer="zeros")
        self.end = self.add_weight(name="end", shape=(c,), initializer="zeros")
        self.built = True

    def call(self, logits):
        return logits

    def log_likelihood(self, logits, labels, mask):
        """The logarithm of the probability of each row's labels.

        Args:
            logits: float (b, t, c).
            labels: int (b, t); those at positions that do not count may be anything.
            mask: bool (b, t), the positions that count.

        Returns:
            float32 (b,); 0 for a row without counted positions.
        """
        logits, mask, (labels, _) = self._chain(logits, mask, labels)
        transitions, start, end = self._tables()
        labels, counted = ops.where(mask, labels, 0), ops.cast(mask, "float32")
        emitted = ops.take_along_axis(logits, labels[:, :, None], axis=2)[:, :, 0]
        pairs = labels[:, :-1] * logits.shape[-1] + labels[:, 1:]
        passed = ops.take(ops.reshape(transitions, (-1,)), pairs)
        lengths = ops.sum(ops.cast(mask, "int32"), axis=1)
        last = ops.take_along_axis(labels, ops.maximum(lengths - 1, 0)[:, None], axis=1)[:, 0]
        score = ops.sum(emitted * counted, axis=1) + ops.sum(passed * counted[:, 1:], axis=1)
        score += ops.take(start, labels[:, 0]) + ops.take(end, last)
        total = ops.logsumexp(_forward(logits, mask, transitions, start)[:, -1] + end, axis=-1)
        return ops.where(lengths > 0, score - total, 0.0)

    def decode(self, logits, mask):
        """Each row's most probable labels, by Viterbi's algorithm.

        Args:
            logits, mask: as in `log_likelihood`.

        Returns:
            int32 (b, t); 0 at positions that do not count.
        """
        logits, chain, (_, places) = self._chain(logits, mask)
        labels = _viterbi(logits, chain, *self._tables())
        return ops.where(mask, ops.take_along_axis(labels, places, axis=1), 0)

    def marginals(self, logits, mask):
        """The probability of each label at each counted position, whatever the others are.

        Args:
            logits, mask: as in `log_likelihood`.

        Returns:
            float32 (b, t, c); uniform at positions that do not count.
        """
        transitions, start, end = self._tables()
        both = -ops.cast(logits, "float32")  # it is in the sums from either side
        for backward, table, first in ((False, transitions, start), (True, ops.transpose(transitions), end)):
            ordered, chain, (_, places) = self._chain(logits, mask, backward=backward)
            both += ops.take_along_axis(_forward(ordered, chain, table, first), places[:, :, None], axis=1)
        return ops.softmax(ops.where(ops.cast(mask, "bool")[:, :, None], both, 0.0), axis=-1)

    def _tables(self):
        return [ops.cast(table, "float32") for table in (self.transitions, self.start, self.end)]

    def _chain(self, logits, mask, labels=None, backward=False):
        """Logits, mask and labels with each row's counted positions in front, and where every position has gone."""
        logits, mask = ops.cast(logits, "float32"), ops.cast(mask, "bool")
        position = ops.cumsum(ops.ones_like(mask, dtype="int32"), axis=1)
        length = mask.shape[1] or ops.shape(mask)[1]
        rank = (length + 1 - position) if backward else position
        order = ops.argsort(ops.where(mask, rank, rank + length), axis=1)
        places = ops.argsort(order, axis=1)
        # One column more, which never counts: not every backend scans over the nothing behind a lone column.
        moved = None if labels is None else _widened(ops.take_along_axis(ops.cast(labels, "int32"), order, axis=1))
        front = _widened(ops.take_along_axis(logits, order[:, :, None], axis=1))
        return front, _widened(ops.take_along_axis(mask, order, axis=1)), (moved, places)


def _widened(x):
    return ops.concatenate([x, ops.zeros_like(x[:, :1])], axis=1)


def _forward(logits, mask, transitions, start):
    """For each position and label the logarithm of the summed scores of all beginnings that end there: (b, t, c)."""

    def step(alpha, x):
        logit, counted = x
        arrived = ops.logsumexp(alpha[:, :, None] + transitions, axis=1) + logit
        alpha = ops.where(counted[:, None], arrived, alpha)
        return alpha, alpha

    first = start + logits[:, 0]
    _, later = ops.scan(step, first, (_time_first(logits[:, 1:]), _time_first(mask[:, 1:])))
    return ops.concatenate([first[:, None], _time_first(later)], axis=1)


def _viterbi(logits, mask, transitions, start, end):
    """The labels of the best path through rows whose counted positions stand in front: int32 (b, t)."""
    stay = ops.zeros_like(mask[:, :1], dtype="int32") + ops.arange(logits.shape[-1], dtype="int32")

    def step(carry, x):
        (alpha, _), (logit, counted) = carry, x
        scores = alpha[:, :, None] + transitions
        alpha = ops.where(counted[:, None], ops.max(scores, axis=1) + logit, alpha)
        came_from = ops.where(counted[:, None], ops.cast(ops.argmax(scores, axis=1), "int32"), stay)
        return (alpha, came_from), (alpha, came_from)

    def back(label, came_from):
        label = ops.take_along_axis(came_from, label[:, None], axis=1)[:, 0]
        return label, label

    first = (start + logits[:, 0], stay)
    (alpha, _), (_, came_from) = ops.scan(step, first, (_time_first(logits[:, 1:]), _time_first(mask[:, 1:])))
    last = ops.cast(ops.argmax(alpha + end, axis=-1), "int32")
    _, earlier = ops.scan(back, last, came_from, reverse=True)
    return ops.concatenate([_time_first(earlier), last[:, None]], axis=1)


def _time_first(x):
    return ops.swapaxes(x, 0, 1)
