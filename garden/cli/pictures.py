"""The two pictures of a run folder, drawn without a display."""

from pathlib import Path

import numpy as np

_MOST_NAMES = 40  # more class names than this would overlap on the axes


def learning_curve(epochs: list[dict], baseline: float, path: Path) -> None:
    """Loss and accuracy over the epochs, training beside validation, with the majority baseline.

    Args:
        epochs: one dict per epoch with `epoch`, `loss`, `accuracy`, `val_loss`, `val_accuracy`.
        baseline: accuracy of always answering the commonest class.
        path: the PNG file to write.
    """
    figure, (left, right) = _figure(ncols=2, figsize=(9, 3.6))
    numbers = [row["epoch"] for row in epochs]
    for axes, key in ((left, "loss"), (right, "accuracy")):
        axes.plot(numbers, [row[key] for row in epochs], "o-", label="training")
        axes.plot(numbers, [row[f"val_{key}"] for row in epochs], "s-", label="validation")
        axes.set(xlabel="epoch", ylabel=key, xticks=numbers[:: max(1, len(numbers) // 10)])
        axes.grid(alpha=0.3)
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
