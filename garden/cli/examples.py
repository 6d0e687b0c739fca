"""Labelled texts: what a table becomes before training, and how a part of them is held out."""

from dataclasses import dataclass

import numpy as np

from .data import Table


@dataclass(frozen=True)
class Examples:
    """Texts with their class names.

    Attributes:
        texts: the texts, or the first ones of pairs.
        labels: the class name of each.
        pairs: the second texts, or None.
    """

    texts: list[str]
    labels: list[str]
    pairs: list[str] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def inputs(self) -> list[str] | tuple[list[str], list[str]]:
        """What a task's `fit` and `predict` take."""
        return self.texts if self.pairs is None else (self.texts, self.pairs)

    def take(self, rows: np.ndarray) -> "Examples":
        """The examples at the given positions."""
        pairs = None if self.pairs is None else [self.pairs[row] for row in rows]
        return Examples([self.texts[row] for row in rows], [self.labels[row] for row in rows], pairs)

    def label_ids(self, class_names: list[str]) -> np.ndarray:
        """int32 (b,): the position of each label in `class_names`; raises ValueError for a label that is not there."""
        unknown = sorted(set(self.labels) - set(class_names))
        if unknown:
            raise ValueError(
                f"{_some(unknown)} is no class the model is trained on; the classes are {_some(class_names)}"
            )
        position = {name: index for index, name in enumerate(class_names)}
        return np.array([position[label] for label in self.labels], "int32")


def from_table(table: Table, text_column: str, label_column: str, pair_column: str | None = None) -> Examples:
    """The examples of a table; raises ValueError for a missing column or an empty label."""
    pairs = table.texts(pair_column) if pair_column else None
    return Examples(table.texts(text_column), table.labels(label_column), pairs)


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


def _some(names: list[str], limit: int = 10) -> str:
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
