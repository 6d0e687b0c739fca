"""The ratios as bars."""

from pathlib import Path

from .compare import Row

_COLOURS = {True: "tab:green", False: "tab:red", None: "tab:gray"}


def draw(rows: list[Row], path: Path) -> None:
    """Writes a picture with one bar for each row that has a peer: green keeps its promise, red does not, gray has none.

    Args:
        rows: comparisons.
        path: the PNG file.
    """
    from matplotlib.figure import Figure

    rows = [row for row in rows if row.theirs][::-1]
    canvas = Figure(figsize=(9, 1.2 + 0.24 * len(rows)), layout="constrained")
    axes = canvas.subplots()
    axes.barh(range(len(rows)), [row.ratio for row in rows], color=[_COLOURS[row.passed] for row in rows])
    axes.set_yticks(range(len(rows)), [f"{row.ours.metric}, {row.ours.backend}, {row.theirs.peer}" for row in rows])
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(y=0.01)
    axes.set_xlabel("garden's time or memory over the peer's:\nbelow 1, garden is better")
    for i, row in enumerate(rows):
        axes.text(row.ratio, i, f" {row.ratio:.2g}", va="center", fontsize=7)
        if row.bar:
            axes.plot([row.bar.limit] * 2, [i - 0.4, i + 0.4], color="black", linewidth=2)
    canvas.savefig(path, dpi=120)
