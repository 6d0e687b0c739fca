"""What answers are worth: exact match and F1 as SQuAD's official scripts count them, over any pair of such rules."""

import re
import string
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .squad import Example

_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Rule(NamedTuple):
    """How one predicted text is compared with one right text.

    Attributes:
        exact_match: (prediction, answer) -> whether they count as the same.
        f1: (prediction, answer) -> from 0 to 1.
    """

    exact_match: Callable[[str, str], bool]
    f1: Callable[[str, str], float]


def normalized(text: str) -> str:
    """Lower case, without ASCII punctuation, the articles a, an and the, and superfluous blanks.

    >>> normalized("The  U.S. Army,")
    'us army'
    """
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def exact_match(prediction: str, answer: str) -> bool:
    """Whether the normalized texts are equal.

    >>> exact_match("the Denver Broncos", "Denver Broncos.")
    True
    """
    return normalized(prediction) == normalized(answer)


def f1(prediction: str, answer: str) -> float:
    """Harmonic mean of the shares of words in common; where one text has no word, 1 if the other has none, else 0.

    >>> f1("Denver Broncos won", "the Denver Broncos")
    0.8
    """
    predicted, right = normalized(prediction).split(), normalized(answer).split()
    if not predicted or not right:
        return float(predicted == right)
    common = (Counter(predicted) & Counter(right)).total()
    # precision = common / predicted and recall = common / right, put together
    return 2 * common / (len(predicted) + len(right))


SQUAD = Rule(exact_match, f1)


def evaluate_answers(examples: Sequence[Example], predictions: Mapping[str, str], rule: Rule = SQUAD) -> dict:
    """Exact match and F1 in percent, each the mean over the questions of the best over a question's right answers.

    A question that has no prediction counts as wrong, with a warning. The right answer to an unanswerable question is
    "". As in SQuAD 2.0's script, an answer that the rule cannot tell from "", such as "the", is not asked for.

    Args:
        examples: the questions with their answers.
        predictions: id -> text.
        rule: `SQUAD`, or `garden.tasks.CMRC` for Chinese.

    Returns:
        `exact_match`, `f1` and `total`; where some questions are unanswerable the same with `has_answer_` and
        `no_answer_` before them.

    Raises:
        ValueError: no examples, or one without answers.

    >>> from garden.tasks.squad import AnswerSpan
    >>> example = Example("q1", "Who won?", "The Broncos won.", (AnswerSpan("The Broncos", 0),))
    >>> evaluate_answers([example], {"q1": "Broncos"})
    {'exact_match': 100.0, 'f1': 100.0, 'total': 1}
    """
    scores = _scores(examples, predictions, rule)
    answerable = [bool(example.answers) for example in examples]
    figures = _means(scores)
    if not all(answerable):
        for prefix, wanted in (("has_answer_", True), ("no_answer_", False)):
            part = [score for score, has in zip(scores, answerable, strict=True) if has is wanted]
            figures |= {prefix + name: value for name, value in _means(part).items()} if part else {}
    return figures


def best_null_threshold(
    examples: Sequence[Example],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
    rule: Rule = SQUAD,
) -> tuple[float, float]:
    """The null threshold with the best F1 on these examples, and that F1 in percent (`best_f1_thresh` of SQuAD 2.0).

    Args:
        examples: the questions with their answers.
        predictions: id -> the best text that is not "", so those made without a null threshold.
        null_odds: id -> `Answer.null_odds`.
        rule: as in `evaluate_answers`.

    Returns:
        The threshold for `predict_answers`, and F1. 0.0 where answering nothing at all is best.

    >>> from garden.tasks.squad import AnswerSpan
    >>> examples = [Example("q1", "?", "a fox", (AnswerSpan("fox", 2),)), Example("q2", "?", "a fox", ())]
    >>> best_null_threshold(examples, {"q1": "fox", "q2": "fox"}, {"q1": -3.0, "q2": 1.5})
    (-3.0, 100.0)
    """
    scores = {e.id: score for e, (_, score) in zip(examples, _scores(examples, predictions, rule), strict=True)}
    answerable = {example.id: bool(example.answers) for example in examples}
    current = best = sum(not has for has in answerable.values())
    threshold = 0.0
    for id in sorted(scores, key=lambda id: null_odds[id]):  # each next question is answered rather than refused
        current += scores[id] if answerable[id] else -bool(predictions[id])
        if current > best:
            best, threshold = current, null_odds[id]
    return threshold, 100 * best / len(scores)


def _scores(examples, predictions, rule):
    """(exact match, F1) of each question."""
    if not examples:
        raise ValueError("There are no examples to measure on.")
    missing = [example.id for example in examples if example.id not in predictions]
    if missing:
        count = f"{len(missing)} questions have no prediction and count as wrong"
        warnings.warn(f"{count}, first {missing[0]}.", stacklevel=3)
    wrong = (0, 0.0)
    return [_best(e, predictions[e.id], rule) if e.id in predictions else wrong for e in examples]


def _best(example, prediction, rule):
    if example.answers is None:
        raise ValueError(f"Question {example.id} has no answers to compare with.")
    texts = [answer.text for answer in example.answers if not rule.exact_match(answer.text, "")] or [""]
    return max(rule.exact_match(prediction, text) for text in texts), max(rule.f1(prediction, text) for text in texts)


def _means(scores):
    exact, f1 = (100 * sum(column) / len(scores) for column in zip(*scores, strict=True))
    return {"exact_match": exact, "f1": f1, "total": len(scores)}
