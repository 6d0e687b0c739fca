"""Labelled samples: what a file becomes before training, and how a part of them is held out."""

from dataclasses import dataclass

import numpy as np

from .data import Table


@dataclass(frozen=True)
class Examples:
    """Samples with what is to be learnt of them.

    Attributes:
        inputs: a list, or a tuple of lists, as a task's `fit` and `predict` take them.
        targets: what belongs to each: a class name, a number, labels of words, the place of a choice.
    """

    inputs: list | tuple[list, ...]
    targets: list

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: np.ndarray) -> "Examples":
        """The examples at the given positions."""
        if isinstance(self.inputs, tuple):
            inputs = tuple([column[row] for row in rows] for column in self.inputs)
        else:
            inputs = [self.inputs[row] for row in rows]
        return Examples(inputs, [self.targets[row] for row in rows])


def text_inputs(table: Table, text_column: str, pair_column: str | None = None) -> list[str] | tuple:
    """The texts of a table, or the columns of its pairs; raises ValueError for a missing column."""
    texts = table.texts(text_column)
    return (texts, table.texts(pair_column)) if pair_column else texts


def class_names(labels: list[str]) -> list[str]:
    """The distinct labels in order, whole numbers by value; raises ValueError if there are fewer than two.

    >>> class_names(["10", "9", "10"])
    ['9', '10']
    """
    names = sorted(set(labels))
    if len(names) < 2:
        raise ValueError(f"all {len(labels)} labels are {names[0]!r}: a classifier needs two classes or more")
    try:
        return sorted(names, key=int)
    except ValueError:
        return names


def label_ids(labels: list[str], names: list[str]) -> np.ndarray:
    """int32 (b,): the position of each label in `names`; raises ValueError for a label that is not there.

    >>> label_ids(["b", "a"], ["a", "b"]).tolist()
    [1, 0]
    """
    unknown = sorted(set(labels) - set(names))
    if unknown:
        raise ValueError(f"{some(unknown)} is no class the model is trained on; the classes are {some(names)}")
    position = {name: index for index, name in enumerate(names)}
    return np.array([position[label] for label in labels], "int32")


def random_split(groups: list, fraction: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Positions to train on and positions held out, the latter those of `fraction` of the groups, rounded, in order.

    Args:
        groups: the group of each row; rows of one group stay together.
        fraction: share of the groups to hold out.
        seed: which ones.

    Raises ValueError if nothing would be held out or nothing left.

    >>> train, held_out = random_split(["a", "a", "b", "c", "d"], 0.25)
    >>> len({*train}) + len({*held_out})
    5
    """
    distinct = list(dict.fromkeys(groups))
    order = np.random.default_rng(seed).permutation(len(distinct))
    chosen = {distinct[i] for i in order[: round(fraction * len(distinct))]}
    held_out = np.array([group in chosen for group in groups], bool)
    if not held_out.any() or held_out.all():
        raise ValueError(f"{fraction} of {len(distinct)} texts leaves nothing to train or to validate on")
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def stratified_split(labels: list[str], fraction: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Positions to train on and positions held out, each class giving up `fraction` of its rows, rounded.

    Raises ValueError if nothing would be held out. The order within each part is that of `labels`.

    >>> train, held_out = stratified_split(["a"] * 8 + ["b"] * 4, 0.25)
    >>> len(train), len(held_out)
    (9, 3)
    """
    generator = np.random.default_rng(seed)
    values = np.array(labels)
    held_out = np.zeros(len(labels), bool)
    for name in np.unique(values):
        rows = generator.permutation(np.flatnonzero(values == name))
        held_out[rows[: min(round(fraction * len(rows)), len(rows) - 1)]] = True
    if not held_out.any():
        raise ValueError(f"{fraction} of {len(labels)} rows leaves no text of any class to validate on; take more")
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def some(names: list[str], limit: int = 10) -> str:
    """Names for a message, not more than `limit` of them."""
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
