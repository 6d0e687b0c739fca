"""The jobs, and the worker processes that they take."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from .records import Request, Sample

BACKENDS = ("jax", "tensorflow", "torch")
_PEERS = ("garden", "KerasHub", "transformers")


@dataclass(frozen=True)
class Job:
    """One thing to measure.

    Attributes:
        function: `module:function` of this package, from a `Request` to `Sample`s.
        peers: who is compared, garden first.
        apart: whether each peer gets processes to itself; else all alternate in one.
        processes: how many, for each backend. Those that peers share build them in a different order each: one and the
            same model was seen 10 % slower when built first, from where its weights came to lie in memory.
        every_backend: False where the backend has no part in it.
        needs: name of the preparation that writes its checkpoint.
    """

    function: str
    peers: tuple[str, ...] = _PEERS
    apart: bool = False
    processes: int = 1
    every_backend: bool = True
    needs: str | None = None


JOBS = {
    "inference": Job("steps:inference", processes=3, needs="random checkpoints"),
    "training": Job("steps:training", processes=2, needs="random checkpoints"),
    "sentences": Job("text:sentences", needs="sentence classifier"),
    "tokenization": Job("text:tokenization", (*_PEERS, "tokenizers"), every_backend=False, needs="sentence classifier"),
    "import_garden": Job("fresh:import_garden", ("garden",), apart=True, processes=5, every_backend=False),
    "import_bert": Job("fresh:import_bert", apart=True, processes=2, every_backend=False),
    "first_step": Job("fresh:first_step", apart=True, processes=2),
    "memory": Job("fresh:inference_memory", apart=True),
    "loading": Job("fresh:loading", apart=True, needs="random checkpoints"),
}
PREPARATIONS = {
    "random checkpoints": Job("prepare:random_checkpoints"),
    "sentence classifier": Job("prepare:sentence_classifier"),
}


def requests(
    jobs: Iterable[str], backends: Iterable[str], folder: str | Path, small: bool = False
) -> Iterator[Request]:
    """The worker processes of a run, in order.

    Args:
        jobs: keys of `JOBS`.
        backends: Keras backends; transformers always runs on torch, so its own processes are not repeated for each.
        folder: where the preparations put their checkpoints.
        small: toy sizes.

    >>> from benchmarks.plan import requests
    >>> [(r.backend, *r.peers) for r in requests(["memory"], ["jax"], "/tmp")]
    [('jax', 'garden'), ('jax', 'KerasHub'), ('torch', 'transformers')]
    """
    jobs, backends = list(jobs), list(backends)
    for name in dict.fromkeys(JOBS[job].needs for job in jobs if JOBS[job].needs):
        yield Request(name, "torch", (), str(folder), small)
    for name in jobs:
        job = JOBS[name]
        own = backends if job.every_backend else backends[:1]
        turns = _apart(job, own) if job.apart else _together(job, own)
        yield from (Request(name, *turn, str(folder), small) for turn in turns)


def _together(job, backends):
    for backend in backends:
        yield from ((backend, job.peers[i:] + job.peers[:i]) for i in range(job.processes))


def _apart(job, backends):
    keras_peers = [peer for peer in job.peers if peer != "transformers"]
    for backend in backends:
        yield from ((backend, (peer,)) for _ in range(job.processes) for peer in keras_peers)
    if "transformers" in job.peers:
        yield from (("torch", ("transformers",)) for _ in range(job.processes))


def run(request: Request) -> list[Sample]:
    """Runs one worker process.

    Raises:
        RuntimeError: it failed; the message ends with what it wrote last.
    """
    command = [sys.executable, "-m", "benchmarks.worker", json.dumps(asdict(request))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise RuntimeError(f"{request.job} on {request.backend} failed with exit code {done.returncode}:\n{last}")
    return [Sample(**json.loads(line)) for line in done.stdout.splitlines()]


def merge(samples: Iterable[Sample]) -> list[Sample]:
    """One sample for each figure, with the repetitions of all processes.

    >>> from benchmarks.plan import merge
    >>> from benchmarks.records import Sample
    >>> merge([Sample("first step", "jax", "garden", "s", (t,)) for t in (2.0, 3.0)])[0].values
    (2.0, 3.0)
    """
    found = {}
    for sample in samples:
        key = (sample.metric, sample.backend, sample.peer)
        found[key] = found[key].merged(sample) if key in found else sample
    return list(found.values())
