"""Readers of the published multiple-choice data: RACE, SWAG and C3.

Each gives `(samples, answers)` as `MultipleChoice.fit` takes them: a tuple of contexts, questions and choices, and the
places of the right choices from 0.
"""

import csv
import json
import sys
from pathlib import Path


def read_race(folder) -> tuple[tuple, list[int]]:
    """RACE (Lai et al. 2017): a folder of .txt files, one JSON object each, with article, questions, options, answers.

    Args:
        folder: searched with its subfolders `high` and `middle`.

    Raises:
        FileNotFoundError: there are no .txt files.
        ValueError: a file is malformed, or an answer is none of its options; the message names file and question.

    >>> import json, pathlib, tempfile
    >>> from garden.tasks.multiple_choice_data import read_race
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> passage = {"article": "It rains.", "questions": ["Streets are"], "options": [["dry", "wet"]], "answers": ["B"]}
    >>> _ = (folder / "1.txt").write_text(json.dumps(passage))
    >>> read_race(folder)
    ((['It rains.'], ['Streets are'], [['dry', 'wet']]), [1])
    """
    files = sorted(Path(folder).rglob("*.txt"))
    if not files:
        raise FileNotFoundError(f"{folder} holds no .txt file of RACE.")
    rows = []
    for file in files:
        passage = _json(file)
        columns = [_field(passage, name, file) for name in ("questions", "options", "answers")]
        if len({len(column) for column in columns}) > 1:
            raise ValueError(f"{file} has {', '.join(str(len(c)) for c in columns)} questions, options and answers.")
        for i, (question, options, letter) in enumerate(zip(*columns, strict=True)):
            letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(options)]
            where = f"{file}, question {i}"
            rows.append(_row(_field(passage, "article", file), question, options, letter, list(letters), where))
    return _columns(rows)


def read_swag(file) -> tuple[tuple, list[int] | None]:
    """SWAG (Zellers et al. 2018): a CSV file with the columns sent1, sent2, ending0 to ending3 and label.

    Returns:
        The samples and the answers; None for answers where the file has no column `label`, as the test file.

    Raises:
        ValueError: a column is missing, or a label is none of the endings; the message names the line.
    """
    with open(file, encoding="utf-8-sig", newline="") as lines:
        csv.field_size_limit(sys.maxsize)
        reader = csv.DictReader(lines)
        endings = sorted(name for name in reader.fieldnames or () if name.startswith("ending"))
        missing = [name for name in ("sent1", "sent2") if name not in (reader.fieldnames or ())]
        if missing or len(endings) < 2:
            raise ValueError(f"{file} has no column {', '.join(missing) or 'ending0, ending1'}: it is not SWAG's CSV.")
        labelled, places, rows = "label" in reader.fieldnames, [str(i) for i in range(len(endings))], []
        for row in reader:
            answer = row["label"] if labelled else "0"
            choices = [row[name] for name in endings]
            rows.append(_row(row["sent1"], row["sent2"], choices, answer, places, f"{file}, line {reader.line_num}"))
    samples, answers = _columns(rows)
    return samples, answers if labelled else None


def read_c3(file) -> tuple[tuple, list[int]]:
    """C3 (Sun et al. 2020): a JSON list of [lines of the passage, [{question, choice, answer}], id]; 2 to 4 choices.

    The lines of a passage, or turns of a dialogue, are joined by line breaks.

    Raises:
        ValueError: the file is malformed, or an answer is none of the choices; the message names passage and question.
    """
    rows = []
    for number, passage in enumerate(_json(file)):
        where = f"{file}, passage {number}"
        if not isinstance(passage, list) or len(passage) < 2:
            raise ValueError(f"{where} is not a list of lines, questions and an id.")
        lines, questions = passage[:2]
        for i, item in enumerate(questions):
            here = f"{where}, question {i}"
            question, choices, answer = (_field(item, name, here) for name in ("question", "choice", "answer"))
            rows.append(_row("\n".join(lines), question, choices, answer, choices, here))
    return _columns(rows)


def _row(context, question, choices, answer, answers, where):
    """One question; the answer's place is that in `answers`."""
    texts = [context, question, *choices]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{where} has a text, question or choice that is no string.")
    if len(choices) < 2 or "" in choices:
        raise ValueError(f"{where} has {'an empty choice' if '' in choices else 'fewer than two choices'}.")
    if answer not in answers:
        raise ValueError(f"{where} has the answer {answer!r}, which is none of {', '.join(answers)}.")
    return context, question, choices, answers.index(answer)


def _columns(rows):
    contexts, questions, choices, answers = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    return (contexts, questions, choices), answers


def _field(record, name, where):
    if not isinstance(record, dict) or name not in record:
        raise ValueError(f"{where} has no {name!r}.")
    return record[name]


def _json(file):
    try:
        return json.loads(Path(file).read_text("utf-8-sig"))
    except ValueError as error:  # JSON or UTF-8
        raise ValueError(f"{file} is no JSON in UTF-8: {error}.") from None
