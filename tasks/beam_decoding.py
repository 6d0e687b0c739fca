"""From starts, the ends that belong to each, and a score of no answer to answers: pure functions."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .span_decoding import Answer, Candidate, answer_among, whole_characters
from .windows import Window


class Beams(NamedTuple):
    """What a model whose ends depend on their starts says to one window.

    Attributes:
        start_logits: float (t,).
        starts: int (k,), places in the row.
        end_logits: float (k, t), of the ends to each start.
        null: the logit of there being no answer.
    """

    start_logits: np.ndarray
    starts: np.ndarray
    end_logits: np.ndarray
    null: float


def decode_beams(
    passage: str,
    windows: Sequence[Window],
    beams: Sequence[Beams],
    n_best: int = 20,
    null_threshold: float | None = None,
    max_answer_length: int = 30,
) -> Answer:
    """The answer that the windows of one passage give together (`run_squad.py` of XLNet).

    A candidate's score is the logarithm of its probability, that of its start times that of its end. The score of no
    answer is of another kind: the lowest of all windows is `null_odds`, which the threshold is compared with. The
    original looks at the five best ends of a start; here at all of them.

    Args:
        passage, windows, n_best, null_threshold, max_answer_length: see `garden.tasks.decode`.
        beams: what the model says to each window.
    """
    pairs = zip(windows, beams, strict=True)
    found = [candidate for pair in pairs for candidate in _spans(passage, *pair, max_answer_length)]
    found.sort(key=lambda candidate: -candidate.score)
    best = found[0].score if found else 0.0
    return answer_among(found, best + min(float(beam.null) for beam in beams), n_best, null_threshold)


def _spans(passage, window, beams, max_answer_length) -> Iterator[Candidate]:
    """All candidates of a window that begin at one of its starts, where it sees most context."""
    start_scores, count = _log_softmax(beams.start_logits), len(window.offsets)
    for start, end_scores in zip(beams.starts, _log_softmax(beams.end_logits), strict=True):
        token = int(start) - window.first
        if not (0 <= token < count and window.most_context[token]):
            continue
        for last in range(token, min(token + max_answer_length, count)):
            a, b = whole_characters(passage, int(window.offsets[token, 0]), int(window.offsets[last, 1]))
            if a < b:
                score = start_scores[start] + end_scores[window.first + last]
                yield Candidate(passage[a:b], a, b, float(score), 0.0)


def _log_softmax(logits):
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))
