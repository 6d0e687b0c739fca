"""Entities in label sequences, and how many of them were found: pure functions of lists of labels."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# BILOU's and BMES's letters, in those of IOBES.
_PREFIXES = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S", "M": "I"}


class EntitySpan(NamedTuple):
    """One entity: its type, its first word, and the word behind its last."""

    type: str
    start: int
    end: int


class Score(NamedTuple):
    """Precision, recall and their harmonic mean, and the number of true entities."""

    precision: float
    recall: float
    f1: float
    support: int


class EntityScores(NamedTuple):
    """The scores of all entities together, the mean over the types, and those of each type."""

    micro: Score
    macro: Score
    types: dict[str, Score]


def spans(labels: Iterable[str]) -> list[EntitySpan]:
    """The entities that a sequence of labels describes, from left to right, by the rules of conlleval.

    A label is `O`, or a prefix, a hyphen and a type. An entity begins at B or S, at I or E where none is open, and at
    I or E of another type than the open one; it ends before the next beginning, before `O`, and behind E or S. This
    reads IOB1, IOB2 and IOBES alike, sequences that start with I included; BILOU's and BMES's letters are read as
    those of IOBES. A prefix without a type is of the type `_`.

    Args:
        labels: the labels of the words of one text.

    Raises:
        ValueError: a label of another form.

    Reference: seqeval's `get_entities`, which follows the CoNLL-2000 task's conlleval.

    >>> from garden.tasks.entities import spans
    >>> [tuple(span) for span in spans(["I-PER", "I-PER", "O", "B-LOC", "I-ORG"])]
    [('PER', 0, 2), ('LOC', 3, 4), ('ORG', 4, 5)]
    """
    found, open_type = [], None
    for i, (prefix, type_) in enumerate(map(_parts, labels)):
        if prefix in ("I", "E") and type_ == open_type:
            found[-1] = found[-1]._replace(end=i + 1)
        elif prefix != "O":
            found.append(EntitySpan(type_, i, i + 1))
        open_type = type_ if prefix in ("B", "I") else None
    return found


def bio_labels(entities: Iterable[EntitySpan], length: int) -> list[str]:
    """The labels in IOB2 of spans that do not overlap: the inverse of `spans`.

    Args:
        entities: (type, start, end) of each.
        length: words of the text.

    Raises:
        ValueError: a span that is empty, beyond the text or over another.

    >>> from garden.tasks.entities import bio_labels
    >>> bio_labels([("PER", 0, 2)], 3)
    ['B-PER', 'I-PER', 'O']
    """
    labels = ["O"] * length
    for type_, start, end in entities:
        if not 0 <= start < end <= length or any(label != "O" for label in labels[start:end]):
            raise ValueError(f"The {type_} from {start} to {end} is empty, beyond {length} words or over another span.")
        labels[start:end] = [f"B-{type_}", *[f"I-{type_}"] * (end - start - 1)]
    return labels


def entity_scores(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> EntityScores:
    """Precision, recall and F1 of whole entities: one is right if type, first and last word are.

    As in seqeval's default mode: what divides by zero is 0, and the mean is over the types of either side.

    Args:
        true, predicted: the labels of each text.

    Raises:
        ValueError: another number of texts or labels on one side than on the other.

    >>> from garden.tasks.entities import entity_scores
    >>> scores = entity_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "B-LOC", "I-LOC"]])
    >>> scores.micro
    Score(precision=0.5, recall=0.5, f1=0.5, support=2)
    >>> scores.types["LOC"].f1
    0.0
    """
    if len(true) != len(predicted):
        raise ValueError(f"There are {len(true)} true rows of labels but {len(predicted)} predicted ones.")
    for i, (row, other) in enumerate(zip(true, predicted, strict=True)):
        if len(row) != len(other):
            raise ValueError(f"Row {i} has {len(row)} true labels but {len(other)} predicted ones.")
    real, found = ({(i, *span) for i, row in enumerate(rows) for span in spans(row)} for rows in (true, predicted))
    types = {}
    for name in sorted({type_ for _, type_, _, _ in real | found}):
        types[name] = _score(*({entity for entity in side if entity[1] == name} for side in (real, found)))
    columns = zip(*(score[:3] for score in types.values()), strict=True)
    means = [sum(column) / len(types) for column in columns] or [0.0] * 3
    return EntityScores(_score(real, found), Score(*means, len(real)), types)


def _score(real: set, found: set) -> Score:
    right = len(real & found)
    precision, recall = (right / len(side) if side else 0.0 for side in (found, real))
    return Score(precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0, len(real))


def _parts(label: str) -> tuple[str, str]:
    prefix, _, type_ = label.partition("-")
    if label == "O":
        return "O", ""
    if prefix not in _PREFIXES:
        raise ValueError(f"{label!r} is no label of an entity: write O, or B- or I- and a type, such as B-PER.")
    return _PREFIXES[prefix], type_ or "_"
