"""The table of ratios and the machine it was taken on, in Markdown."""

import os
import platform
import sys
from collections.abc import Iterable
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

from .compare import Row
from .records import Sample

_PACKAGES = ("keras", "keras-hub", "tensorflow", "jax", "torch", "transformers", "tokenizers", "numpy")
_HEADER = ("what", "backend", "garden", "peer", "peer's", "ratio", "bar", "")


def markdown(rows: list[Row], seconds: float) -> str:
    """The whole report: how to read it, the machine, the table.

    Args:
        rows: comparisons, in the order of the table.
        seconds: what the run took.
    """
    failed = sum(row.passed is False for row in rows)
    kept = sum(row.passed is True for row in rows)
    return f"""# Benchmarks

`python -m benchmarks` wrote this on {date.today()} in {seconds / 60:.0f} minutes; {kept} bars kept, {failed} missed.
Ratio is garden's median over the peer's: below 1, garden is faster or smaller. The least value stands in brackets.
All peers read the same weights. BERT-base runs on 8 x 128 tokens with the tanh GELU, the only one of KerasHub's BERT.
MiniLM was trained with the other, which garden and transformers give it in the sentences' rows.
transformers runs on PyTorch, whatever the backend of the row. All run with large pages, as garden's command line does
(`garden/cli/allocator.py`).

{machine()}

{table(rows)}
"""


def table(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table."""
    cells = [_HEADER, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    header, *body = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    rule = " | ".join("-" * width for width in widths)
    return "\n".join(f"| {line} |" for line in (header, rule, *body))


def _cells(row: Row) -> tuple[str, ...]:
    peer, theirs = (row.theirs.peer, figure(row.theirs)) if row.theirs else ("", "")
    ratio = f"{row.ratio:.3g}" if row.theirs else ""
    bar = f"<= {row.bar.limit:g}{'' if row.theirs else f' {row.ours.unit}'}" if row.bar else ""
    verdict = {True: "pass", False: "FAIL", None: ""}[row.passed]
    return row.ours.metric, row.ours.backend, figure(row.ours), peer, theirs, ratio, bar, verdict


def figure(sample: Sample) -> str:
    """A sample for the eye: its median, its least value, and its rate where it has work.

    >>> from benchmarks.records import Sample
    >>> from benchmarks.report import figure
    >>> figure(Sample("tokenization", "jax", "garden", "s", (0.5, 0.4, 0.6), (1000, "tokens")))
    '0.5 s (0.4), 2,000 tokens/s'
    """
    middle, least = median(sample.values), min(sample.values)
    text = f"{_short(middle)} {sample.unit}"
    if len(sample.values) > 1:
        text += f" ({_short(least)})"
    return text + (f", {sample.work[0] / middle:,.0f} {sample.work[1]}/s" if sample.work else "")


def machine() -> str:
    """Processor, cores, memory and versions, without anything that names the machine."""
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    versions = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    hardware = f"{_processor()}, {os.cpu_count()} cores, {gigabytes:.0f} GB"
    return f"{hardware}; Python {platform.python_version()}; {versions}."


def _processor():
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _short(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
