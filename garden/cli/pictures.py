"""The pictures of a run folder, drawn without a display."""

from pathlib import Path

import numpy as np

_MOST_NAMES = 40  # more class names than this would overlap on the axes


def learning_curve(epochs: list[dict], path: Path, metric: str = "accuracy", baseline: float | None = None) -> None:
    """Loss and a metric over the epochs, training beside validation.

    Args:
        epochs: one dict per epoch with `epoch`, `loss`, `val_loss` and the metric with and without `val_`.
        path: the PNG file to write.
        metric: its name.
        baseline: the metric of always answering the commonest class, if that is to be shown.
    """
    figure, (left, right) = _figure(ncols=2, figsize=(9, 3.6))
    numbers = [row["epoch"] for row in epochs]
    for axes, key in ((left, "loss"), (right, metric)):
        axes.plot(numbers, [row[key] for row in epochs], "o-", label="training")
        axes.plot(numbers, [row[f"val_{key}"] for row in epochs], "s-", label="validation")
        axes.set(
            xlabel="epoch",
            ylabel=key.removeprefix("sparse_categorical_").replace("_", " "),
            xticks=numbers[:: max(1, len(numbers) // 10)],
        )
        axes.grid(alpha=0.3)
    if baseline is not None:
        right.axhline(baseline, color="gray", linestyle="--", label="commonest class")
    left.legend()
    right.legend()
    _save(figure, path)


def confusion_picture(counts: np.ndarray | list[list[int]], class_names: list[str], path: Path) -> None:
    """The confusion matrix, shaded by the share of the true class, with counts while there is room.

    Args:
        counts: int (c, c), true class by row, predicted class by column.
        class_names: the c names.
        path: the PNG file to write.
    """
    counts, size = np.asarray(counts), len(class_names)
    figure, axes = _figure(figsize=(min(3.5 + 0.5 * size, 14),) * 2)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="share of the true class", shrink=0.8)
    axes.set(xlabel="predicted", ylabel="true")
    if size <= _MOST_NAMES:
        axes.set_xticks(range(size), class_names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(size), class_names)
    if size <= _MOST_NAMES // 2:
        for (row, column), count in np.ndenumerate(counts):
            shade = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=shade)
    _save(figure, path)


def scatter_picture(truth: list[float], predicted: list[float], path: Path) -> None:
    """Predicted over true numbers, with the line on which all would lie.

    Args:
        truth, predicted: float (n,).
        path: the PNG file to write.
    """
    figure, axes = _figure(figsize=(4.6, 4.2))
    axes.scatter(truth, predicted, s=12, alpha=0.5)
    ends = min(*truth, *predicted), max(*truth, *predicted)
    axes.plot(ends, ends, color="gray", linestyle="--")
    axes.set(xlabel="true", ylabel="predicted")
    axes.grid(alpha=0.3)
    _save(figure, path)


def entity_picture(rows: dict[str, dict], path: Path) -> None:
    """Precision, recall and F1 of every type of entity, as bars.

    Args:
        rows: name -> its `precision`, `recall`, `f1` and `support`.
        path: the PNG file to write.
    """
    figure, axes = _figure(figsize=(min(3 + 0.9 * len(rows), 16), 3.6))
    places = np.arange(len(rows))
    for i, key in enumerate(("precision", "recall", "f1")):
        axes.bar(places + 0.27 * (i - 1), [row[key] for row in rows.values()], width=0.25, label=key)
    names = [f"{name}\n({row['support']})" for name, row in rows.items()]
    axes.set_xticks(places, names, rotation=45 if len(rows) > 8 else 0)
    axes.set(ylim=(0, 1))
    axes.grid(axis="y", alpha=0.3)
    axes.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    _save(figure, path)


def _figure(**arguments):
    """A figure of its own, outside pyplot's state, with fonts for Chinese, Japanese and Korean names if installed."""
    from matplotlib import font_manager, rcParams
    from matplotlib.figure import Figure

    wanted = ("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei", "SimHei")
    installed = set(font_manager.get_font_names())
    rcParams["font.family"] = ["DejaVu Sans", *(name for name in wanted if name in installed)]
    figure = Figure(figsize=arguments.pop("figsize"), layout="constrained")
    return figure, figure.subplots(**arguments)


def _save(figure, path: Path) -> None:
    import warnings

    from .run_folder import replacing

    with replacing(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # without such a font a box is drawn
        figure.savefig(temporary, format="png", dpi=120)
