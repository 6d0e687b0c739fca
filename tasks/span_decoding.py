"""From logits of starts and ends to answers, each an exact piece of its passage: pure functions."""

import heapq
import itertools
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .windows import Window


class Candidate(NamedTuple):
    """One possible answer: `passage[start:end] == text`.

    Attributes:
        text: "" stands for "the passage does not answer this", and `start` and `end` are then 0.
        start, end: characters of the passage.
        score: sum of the logits of its first and its last token.
        probability: softmax of the score among the candidates of the n-best list.
    """

    text: str
    start: int
    end: int
    score: float
    probability: float


class Answer(NamedTuple):
    """The answer to one question: the fields of a `Candidate`, and what it was chosen from.

    Attributes:
        text, start, end, score, probability: see `Candidate`.
        n_best: candidates of different text, the best first.
        null_score: score of "the passage does not answer this", the lowest of all windows.
        null_odds: `null_score` less the score of the best candidate with a text; the threshold is compared with it.
    """

    text: str
    start: int
    end: int
    score: float
    probability: float
    n_best: list[Candidate]
    null_score: float
    null_odds: float


def decode(
    passage: str,
    windows: Sequence[Window],
    logits: Sequence[np.ndarray],
    n_best: int = 20,
    null_threshold: float | None = None,
    max_answer_length: int = 30,
) -> Answer:
    """The answer that the windows of one passage give together (`run_squad.py` of BERT).

    A candidate starts where its window sees most context and ends at most `max_answer_length` tokens later in the same
    window. Google's code looks only at the n best starts and ends of a window; here every such pair is looked at.

    Args:
        passage: the text.
        windows: its windows.
        logits: for each float (2, t), of starts and of ends.
        n_best: length of the list.
        null_threshold: None for data in which every question has an answer. Else "" is a candidate too, and is the
            answer when `null_odds` is above this number; 0.0 is Google's default.
        max_answer_length: in tokens.
    """
    found = heapq.merge(
        *(_spans(passage, *pair, max_answer_length) for pair in zip(windows, logits, strict=True)),
        key=lambda candidate: -candidate.score,
    )
    return answer_among(found, min(map(_null_score, windows, logits)), n_best, null_threshold)


def answer_among(found, null_score: float, n_best: int, null_threshold: float | None) -> Answer:
    """The answer among candidates, which come the best first; see `decode` for the other arguments."""
    null = Candidate("", 0, 0, null_score, 0.0)
    found = list(itertools.islice(_distinct(found), n_best)) or [null]
    odds = null.score - found[0].score
    listed = found
    if null_threshold is not None:
        listed = sorted([*found, null], key=lambda candidate: -candidate.score)[:n_best]
        listed += [] if null in listed else [null]
    weights = np.exp([candidate.score - listed[0].score for candidate in listed])
    probabilities = weights / weights.sum()
    listed = [c._replace(probability=float(p)) for c, p in zip(listed, probabilities, strict=True)]
    wanted = "" if null_threshold is not None and odds > null_threshold else found[0].text
    # Where a list of one holds only "", the best text has no place in it, and no probability.
    best = next((candidate for candidate in listed if candidate.text == wanted), found[0])
    return Answer(*best, listed, null.score, odds)


def whole_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without blanks at its ends, widened so that no letter loses an accent or variation sign behind it.

    Uncased tokenizers drop such marks, so that no token covers them.

    >>> whole_characters("un cafe\\u0301 !", 2, 7)
    (3, 8)
    """
    while end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end += 1
    while 0 < start < end and unicodedata.category(text[start]).startswith("M"):
        start -= 1
    piece = text[start:end]
    return end - len(piece.lstrip()), start + len(piece.rstrip())


def _spans(passage, window, logits, max_answer_length) -> Iterator[Candidate]:
    """All candidates of a window, the best first."""
    count = len(window.offsets)
    start, end = np.asarray(logits, "float64")[:, window.first : window.first + count]
    first = np.flatnonzero(window.most_context)[:, None]
    last = first + np.arange(min(max_answer_length, count))
    scores = np.where(last < count, start[first] + end[np.minimum(last, count - 1)], -np.inf)
    for place in np.argsort(-scores, axis=None, kind="stable")[: int((last < count).sum())]:
        i, length = divmod(int(place), last.shape[1])
        token = first[i, 0]
        a, b = whole_characters(passage, int(window.offsets[token, 0]), int(window.offsets[token + length, 1]))
        if a < b:
            yield Candidate(passage[a:b], a, b, float(scores[i, length]), 0.0)


def _null_score(window, logits):
    start, end = logits
    return float(start[window.null]) + float(end[window.null])


def _distinct(candidates):
    seen = set()
    for candidate in candidates:
        if candidate.text not in seen:
            seen.add(candidate.text)
            yield candidate
