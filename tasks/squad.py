"""Questions, passages and answers in JSON: SQuAD 1.1 and 2.0, CMRC2018 in both of its layouts, DRCD."""

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from garden.files import whole_folder

from .span_decoding import Answer


class AnswerSpan(NamedTuple):
    """A right answer: `passage[start : start + len(text)] == text`; `start` is None where the passage lacks it."""

    text: str
    start: int | None


class Example(NamedTuple):
    """One question.

    Attributes:
        id: what predictions call it.
        question, passage: the texts.
        answers: right answers, usually by several people; none of them where the passage does not answer the question,
            and None where nobody has said.
    """

    id: str
    question: str
    passage: str
    answers: tuple[AnswerSpan, ...] | None = None


def read_squad(path: str | os.PathLike) -> list[Example]:
    """The questions of a JSON file.

    Two layouts are known: SQuAD's, which DRCD and later editions of CMRC2018 share, and the list of `context_text` and
    `qas` in which CMRC2018 came first, and which does not say where answers stand.

    An answer that does not stand at its `answer_start` is taken where the passage has it nearest to there. One that the
    passage does not have at all keeps its text, for measuring, and no start, so that it cannot be learnt from. A
    warning counts both.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: not JSON in one of the layouts, an empty question, passage or answer, or an id that occurs twice;
            the message names the question.

    References: [Rajpurkar et al., 2016](https://arxiv.org/abs/1606.05250) and
    [2018](https://arxiv.org/abs/1806.03822), [Cui et al., 2018](https://arxiv.org/abs/1810.07366),
    [Shao et al., 2018](https://arxiv.org/abs/1806.00920).

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "train.json")
    >>> answer = {"text": "Ada", "answer_start": 3}
    >>> qas = [{"id": "q1", "question": "Who?", "answers": [answer]}]
    >>> _ = file.write_text(json.dumps({"data": [{"paragraphs": [{"context": "by Ada", "qas": qas}]}]}))
    >>> read_squad(file)[0].answers
    (AnswerSpan(text='Ada', start=3),)
    """
    examples, moved, lost = {}, [], []
    for id, question, passage, answers in _entries(_read_json(Path(path)), Path(path)):
        _check(path, id, question, passage, answers, examples)
        spans = [_placed(text, start, passage) for text, start in answers or ()]
        examples[id] = Example(id, question, passage, None if answers is None else tuple(spans))
        for (_, start), span in zip(answers or (), spans, strict=True):
            if span.start is None:
                lost.append(id)
            elif start is not None and span.start != start:
                moved.append(id)
    for ids, fault in ((moved, "not at their answer_start but elsewhere in"), (lost, "not in")):
        if ids:
            warnings.warn(f"{path}: {len(ids)} answers are {fault} the passage, first of {ids[0]}.", stacklevel=2)
    return list(examples.values())


def write_predictions(folder: str | os.PathLike, ids: Sequence[str], answers: Sequence[Answer]) -> None:
    """Writes answers under the names and in the form of BERT's `run_squad.py`, all or nothing.

    `predictions.json` is what official scripts read, id to text; `nbest_predictions.json` holds for each id its
    candidates; `null_odds.json` what the null threshold is compared with.

    Args:
        folder: where to.
        ids: of the questions.
        answers: of `QuestionAnswering.predict_answers`, in the same order.

    ```python
    answers = model.predict_answers([e.question for e in examples], [e.passage for e in examples])
    garden.tasks.write_predictions("answers", [e.id for e in examples], answers)
    ```
    """
    pairs = list(zip(ids, answers, strict=True))
    contents = {
        "predictions.json": {id: answer.text for id, answer in pairs},
        "nbest_predictions.json": {id: [c._asdict() for c in answer.n_best] for id, answer in pairs},
        "null_odds.json": {id: answer.null_odds for id, answer in pairs},
    }
    with whole_folder(folder) as draft:
        for name, content in contents.items():
            (draft / name).write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", "utf-8")


def _read_json(path):
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path}.") from None
    except ValueError as error:
        raise ValueError(f"{path} is not JSON in UTF-8: {error}.") from None


def _entries(content, path) -> Iterator[tuple]:
    """(id, question, passage, answers) of each question, answers as (text, start or None) or None for unknown."""
    last = "the first question"
    try:
        for entry in _squad(content["data"]) if isinstance(content, dict) else _cmrc(content):
            yield entry
            last = f"what follows question {entry[0]}"
    except (KeyError, TypeError, AttributeError) as error:
        fault = f"there is no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{path} is in the layout neither of SQuAD nor of CMRC2018: at {last}, {fault}.") from None


def _squad(data):
    for article in data:
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                answers = [(answer["text"], answer["answer_start"]) for answer in qa.get("answers") or ()]
                unknown = "answers" not in qa and "is_impossible" not in qa
                yield qa["id"], qa["question"], paragraph["context"], _answers(qa, answers, unknown)


def _answers(qa, answers, unknown):
    if qa.get("is_impossible"):
        return []
    return None if unknown else answers


def _cmrc(data):
    for article in data:
        for qa in article["qas"]:
            answers = None if "answers" not in qa else [(text, None) for text in qa["answers"]]
            yield qa["query_id"], qa["query_text"], article["context_text"], answers


def _check(path, id, question, passage, answers, seen):
    if id in seen:
        raise ValueError(f"{path}: the id {id} occurs twice.")
    texts = {"question": [question], "passage": [passage], "answer": [text for text, _ in answers or ()]}
    for name, values in texts.items():
        for value in values:
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"{path}: question {id} has an empty {name}, {value!r}.")


def _placed(text, start, passage):
    """The answer where the passage has it, at `start` or nearest to there."""
    if start is not None and start >= 0 and passage.startswith(text, start):
        return AnswerSpan(text, start)
    found, place = [], passage.find(text)
    while place >= 0:
        found.append(place)
        place = passage.find(text, place + 1)
    return AnswerSpan(text, min(found, key=lambda place: abs(place - (start or 0)), default=None))
