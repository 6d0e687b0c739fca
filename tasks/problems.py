"""What a classifier's outputs mean: its loss, which targets it takes and how its logits are read.

The names are those of `problem_type` in Hugging Face's configurations.
"""

from abc import ABC, abstractmethod

import keras
import numpy as np

from .checks import check_labels, check_numbers


class Problem(ABC):
    """One reading of a row of logits (b, c).

    Attributes:
        name: what configurations call it.
        num_classes: c where nobody states it; None where somebody has to.

    >>> from garden.tasks.problems import PROBLEMS
    >>> list(PROBLEMS)
    ['single_label_classification', 'multi_label_classification', 'regression']
    """

    name = ""
    num_classes = None

    @abstractmethod
    def loss(self):
        """The loss that `compile` takes for `"auto"`."""

    @abstractmethod
    def metrics(self) -> list:
        """The metrics that `compile` takes for `"auto"`."""

    @abstractmethod
    def check(self, y, num_classes: int, class_names: list[str] | None):
        """The targets as the loss takes them; raises ValueError on impossible ones."""

    @abstractmethod
    def values(self, logits: np.ndarray) -> np.ndarray:
        """What a user reads: probabilities (b, c), or the numbers of a regression."""

    @abstractmethod
    def labels(self, values: np.ndarray, names: list[str]) -> list:
        """The answer for each row, in names."""

    def settings(self, optimizer, loss, metrics) -> dict:
        """The arguments of `compile`, `"auto"` resolved; the optimizer is then Adam at 5e-5."""
        return {
            "optimizer": keras.optimizers.Adam(5e-5) if optimizer == "auto" else optimizer,
            "loss": self.loss() if loss == "auto" else loss,
            "metrics": self.metrics() if metrics == "auto" else metrics,
        }


class SingleLabel(Problem):
    """One class of c; targets are ids (b,).

    >>> import numpy as np
    >>> from garden.tasks.problems import SingleLabel
    >>> SingleLabel().labels(np.array([[0.2, 0.8]]), ["bad", "good"])
    ['good']
    """

    name = "single_label_classification"

    def loss(self):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def metrics(self):
        return [keras.metrics.SparseCategoricalAccuracy()]

    def check(self, y, num_classes, class_names):
        return check_labels(y, num_classes)

    def values(self, logits):
        odds = np.exp(logits - logits.max(-1, keepdims=True))
        return odds / odds.sum(-1, keepdims=True)

    def labels(self, values, names):
        return [names[i] for i in values.argmax(-1)]


class MultiLabel(Problem):
    """Any number of c classes; targets are 0 or 1 (b, c), or lists of names.

    A class is among the labels when its probability is above 0.5.

    >>> import numpy as np
    >>> from garden.tasks.problems import MultiLabel
    >>> MultiLabel().check([["warm"], []], 2, ["funny", "warm"]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    >>> MultiLabel().labels(np.array([[0.7, 0.9], [0.1, 0.2]]), ["funny", "warm"])
    [['funny', 'warm'], []]
    """

    name = "multi_label_classification"

    def loss(self):
        return keras.losses.BinaryCrossentropy(from_logits=True)

    def metrics(self):
        return [keras.metrics.BinaryAccuracy(threshold=0.0)]

    def check(self, y, num_classes, class_names):
        y = _indicators(y, num_classes, class_names) if _are_names(y) else y
        return check_numbers(y, num_classes, "multi-label targets must be 0 or 1", lambda y: (y == 0) | (y == 1))

    def values(self, logits):
        return (0.5 * (1 + np.tanh(0.5 * logits))).astype("float32")  # the sigmoid that cannot overflow

    def labels(self, values, names):
        return [[name for name, value in zip(names, row, strict=True) if value > 0.5] for row in values]


class Regression(Problem):
    """A number, or c of them; targets are finite numbers (b,) or (b, c).

    >>> from garden.tasks.problems import Regression
    >>> Regression().check([3.8, 0], 1, None).tolist()
    [3.799999952316284, 0.0]
    """

    name = "regression"
    num_classes = 1

    def loss(self):
        return keras.losses.MeanSquaredError()

    def metrics(self):
        return [keras.metrics.MeanAbsoluteError()]

    def check(self, y, num_classes, class_names):
        return check_numbers(y, num_classes, "regression targets must be finite numbers", lambda y: abs(y) < np.inf)

    def values(self, logits):
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def labels(self, values, names):
        raise ValueError("A regression gives numbers and no labels: call predict_values.")


PROBLEMS = {problem.name: problem for problem in (SingleLabel(), MultiLabel(), Regression())}


def find_problem(name: str) -> Problem:
    """The problem of that name.

    Raises:
        ValueError: there is none.

    >>> from garden.tasks.problems import find_problem
    >>> find_problem("regression").num_classes
    1
    """
    if name not in PROBLEMS:
        raise ValueError(f"problem={name!r} is none of {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]


def _are_names(y):
    """Whether y is a list of lists of strings; rows without a label are empty."""
    rows = list(y) if isinstance(y, (list, tuple)) or str(getattr(y, "dtype", "")) == "object" else []
    kinds = (list, tuple, set, frozenset)
    return bool(rows) and all(isinstance(row, kinds) and all(isinstance(name, str) for name in row) for row in rows)


def _indicators(y, num_classes, class_names):
    if not class_names:
        raise ValueError("Targets are lists of names, but the classifier knows no class_names: give them to it.")
    ids = {name: i for i, name in enumerate(class_names)}
    array = np.zeros((len(y), num_classes), "float32")
    for row, names in enumerate(y):
        unknown = [name for name in names if name not in ids]
        if unknown:
            raise ValueError(f"Example {row} has the label {unknown[0]!r}, which is none of {', '.join(class_names)}.")
        array[row, [ids[name] for name in names]] = 1
    return array
