"""What the parent and its worker processes tell each other, one JSON object each."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Request:
    """What one worker process is asked to measure.

    Attributes:
        job: name in `benchmarks.plan.JOBS`.
        backend: Keras backend; transformers runs on torch beside any of them.
        peers: names in `benchmarks.peers.PEERS`, measured in turn.
        folder: holds the checkpoints that `benchmarks.prepare` wrote.
        small: toy sizes, which show that everything runs and nothing else.
    """

    job: str
    backend: str
    peers: tuple[str, ...]
    folder: str
    small: bool = False


@dataclass(frozen=True)
class Sample:
    """One figure of one peer, repeated; smaller is better.

    Attributes:
        metric: what was measured, as the table calls it.
        backend, peer: of whom.
        unit: `"s"`, `"MB"` or `"x"` (a multiple of the weights' bytes).
        values: one a repetition.
        work: what a repetition worked off, and its name, such as `(27431, "tokens")`; none for a single step.
    """

    metric: str
    backend: str
    peer: str
    unit: str
    values: tuple[float, ...]
    work: tuple[int, str] | None = None

    def merged(self, other: "Sample") -> "Sample":
        """The same figure with the repetitions of another process added."""
        return Sample(**{**asdict(self), "values": (*self.values, *other.values)})
