"""`python -m benchmarks [--backends jax] [--jobs inference training] [--output benchmarks/results.md] [--small]`."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from garden.cli import allocator

from .compare import compare
from .picture import draw
from .plan import BACKENDS, JOBS, merge, requests, run
from .report import markdown, table


def main(arguments: list[str] | None = None) -> int:
    """Runs the jobs, prints and writes the table, draws it; 1 when a job failed or, at full size, a bar was missed."""
    options = _options(arguments)
    start, samples, failures = time.perf_counter(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        plan = list(requests(options.jobs, options.backends, folder, options.small))
        for i, request in enumerate(plan):
            began = time.perf_counter()
            who = ", ".join((request.job, request.backend, *request.peers))
            print(f"[{i + 1}/{len(plan)}] {who}", end="", flush=True)
            try:
                samples += run(request)
                print(f": {time.perf_counter() - began:.0f} s", flush=True)
            except RuntimeError as error:
                failures += 1
                print(f": failed\n{error}", flush=True)
    rows = compare(merge(samples))
    print(f"\n{table(rows)}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(markdown(rows, time.perf_counter() - start), "utf-8")
    draw(rows, options.output.with_suffix(".png"))
    print(f"\nWritten to {options.output} and {options.output.with_suffix('.png')}.")
    missed = not options.small and any(row.passed is False for row in rows)
    return int(failures > 0 or missed)


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="garden beside its peers")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=BACKENDS)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results.md"))
    parser.add_argument("--small", action="store_true", help="toy sizes: shows that everything runs, measures nothing")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    allocator.use_large_pages()  # for every worker and peer: much of the noise is the kernel zeroing pages
    sys.exit(main())
