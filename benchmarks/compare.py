"""From samples to ratios, and from ratios to pass or fail."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import median

from .records import Sample


@dataclass(frozen=True)
class Bar:
    """What garden promises.

    Attributes:
        metric: which figure.
        peer: the ratio of garden's to this peer's is limited; None limits garden's own figure.
        limit: the most it may be.
        best_backend: only the backend with the smallest ratio has to keep it.
    """

    metric: str
    peer: str | None
    limit: float
    best_backend: bool = False


BARS = (
    Bar("inference step", "KerasHub", 1.0),
    Bar("inference step", "transformers", 1.05, best_backend=True),
    Bar("training step", "KerasHub", 1.0),
    Bar("training step", "transformers", 1.05, best_backend=True),
    Bar("first training step", "KerasHub", 1.0),
    Bar("tokenization, eager", "KerasHub", 1 / 8),
    Bar("import garden", None, 0.5),
    Bar("memory of loading BERT-large", None, 1.3),
)


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        ours: garden's sample.
        theirs: a peer's, or None when garden's own figure is limited.
        bar: the promise, if there is one.
    """

    ours: Sample
    theirs: Sample | None = None
    bar: Bar | None = None

    @property
    def ratio(self) -> float:
        """Garden's median over the peer's; garden's own where there is no peer. Smaller is better."""
        return median(self.ours.values) / (median(self.theirs.values) if self.theirs else 1.0)

    @property
    def passed(self) -> bool | None:
        """Whether the bar is kept; None without one."""
        return self.ratio <= self.bar.limit if self.bar else None


def compare(samples: Iterable[Sample], bars: Iterable[Bar] = BARS) -> list[Row]:
    """A row for each of garden's samples and each peer that was measured beside it, and for each of its own limits.

    >>> from benchmarks.compare import Bar, compare
    >>> from benchmarks.records import Sample
    >>> samples = [Sample("step", "jax", peer, "s", (t, t)) for peer, t in (("garden", 1.0), ("KerasHub", 2.0))]
    >>> [(row.theirs.peer, row.ratio, row.passed) for row in compare(samples, [Bar("step", "KerasHub", 1.0)])]
    [('KerasHub', 0.5, True)]
    """
    samples, bars = list(samples), list(bars)
    rows = [row for ours in samples if ours.peer == "garden" for row in _rows(ours, samples, bars)]
    return [_relieved(row, rows) for row in rows]


def _rows(ours, samples, bars) -> Iterator[Row]:
    limits = {bar.peer: bar for bar in bars if bar.metric == ours.metric}
    if None in limits:
        yield Row(ours, None, limits[None])
    for theirs in _beside(ours, samples):
        yield Row(ours, theirs, limits.get(theirs.peer))


def _beside(ours, samples):
    """The peers' samples from the same backend; a peer that was measured once and for all stands beside each."""
    others = [sample for sample in samples if sample.metric == ours.metric and sample.peer != ours.peer]
    for peer in dict.fromkeys(sample.peer for sample in others):
        own = [sample for sample in others if sample.peer == peer]
        same = [sample for sample in own if sample.backend == ours.backend]
        if same or peer == "transformers":
            yield (same or own)[0]


def _relieved(row, rows):
    """The row without its bar when that binds the best backend only and another one is better."""
    if not (row.bar and row.bar.best_backend):
        return row
    best = min((other for other in rows if other.bar == row.bar), key=lambda other: other.ratio)
    return row if best is row else replace(row, bar=None)
