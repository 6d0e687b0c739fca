"""What a classifier's answers are worth: pure functions of labels and probabilities."""

import numpy as np


def confusion_matrix(truth: np.ndarray, predicted: np.ndarray, num_classes: int) -> np.ndarray:
    """int64 (c, c): how often class i (row) was taken for class j (column)."""
    counts = np.zeros((num_classes, num_classes), "int64")
    np.add.at(counts, (truth, predicted), 1)
    return counts


def majority_baseline(truth: np.ndarray) -> float:
    """The accuracy of always answering the commonest class.

    >>> majority_baseline(np.array([0, 1, 1, 1]))
    0.75
    """
    return float(np.bincount(truth).max() / len(truth))


def report(truth: np.ndarray, probabilities: np.ndarray, class_names: list[str]) -> dict:
    """Accuracy, macro F1, mean cross-entropy, the figures of each class and the confusion matrix.

    Args:
        truth: int (b,), the right class of each row.
        probabilities: float (b, c).
        class_names: the c names.

    A class that was never predicted has precision 0, one that never occurs recall 0; macro F1 is the mean over the
    classes that occur in `truth` or were predicted.
    """
    counts = confusion_matrix(truth, probabilities.argmax(-1), len(class_names))
    right, support, answers = counts.diagonal(), counts.sum(1), counts.sum(0)
    f1 = _ratio(2 * right, support + answers)
    columns = {"precision": _ratio(right, answers), "recall": _ratio(right, support), "f1": f1, "count": support}
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    likelihood = np.maximum(probabilities[np.arange(len(truth)), truth].astype("float64"), 1e-12)
    return {
        "accuracy": float(right.sum() / len(truth)),
        "majority_baseline": majority_baseline(truth),
        "macro_f1": float(f1[support + answers > 0].mean()),
        "loss": float(-np.log(likelihood).mean()),
        "classes": {name: dict(zip(columns, row, strict=True)) for name, row in zip(class_names, rows, strict=True)},
        "confusion_matrix": counts.tolist(),
    }


def as_text(figures: dict) -> str:
    """The report as a table for the terminal."""
    width = max(len(name) for name in [*figures["classes"], "majority baseline"]) + 2
    lines = [f"{'':<{width}}precision  recall      f1   count"]
    for name, row in figures["classes"].items():
        lines.append(f"{name:<{width}}{row['precision']:9.3f}{row['recall']:8.3f}{row['f1']:8.3f}{row['count']:8d}")
    for key in ("accuracy", "majority_baseline", "macro_f1", "loss"):
        lines.append(f"{key.replace('_', ' '):<{width}}{figures[key]:9.3f}")
    return "\n".join(lines)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
