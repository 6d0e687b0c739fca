"""Measuring: peers in turn, so that a noisy machine disturbs all of them alike."""

import resource
import sys
import time
from collections.abc import Callable


def alternate(
    peers: dict[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, tuple[float, ...]]:
    """Seconds of each repetition of each peer, after one that is not counted (it compiles).

    Each round starts with another peer, so that none always runs in the wake of the same neighbour.

    Args:
        peers: name -> what to time; it returns only when its work is done.
        repeats: rounds that count.
        clock: seconds.

    >>> from benchmarks.measure import alternate
    >>> ticks = iter(range(100))
    >>> alternate({"one": lambda: None, "other": lambda: next(ticks)}, 2, lambda: next(ticks))
    {'one': (1, 1), 'other': (2, 2)}
    """
    for run in peers.values():
        run()
    names, seconds = list(peers), {name: [] for name in peers}
    for i in range(repeats):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            start = clock()
            peers[name]()
            seconds[name].append(clock() - start)
    return {name: tuple(values) for name, values in seconds.items()}


def peak_memory() -> int:
    """The most bytes of memory that this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
