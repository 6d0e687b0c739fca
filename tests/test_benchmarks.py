"""The benchmarks' own arithmetic, and one job at toy size."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.compare import BARS, Bar, compare
from benchmarks.measure import alternate
from benchmarks.plan import JOBS, merge, requests
from benchmarks.records import Sample
from benchmarks.report import figure, table

ROOT = Path(__file__).parent.parent


def sample(peer, *values, metric="step", backend="jax", **more):
    return Sample(metric, backend, peer, "s", values, **more)


def test_ratio_is_of_medians():
    (row,) = compare([sample("garden", 1.0, 9.0, 2.0), sample("KerasHub", 4.0, 4.0, 0.1)], [])
    assert (row.ratio, row.passed) == (0.5, None)


@pytest.mark.parametrize("ours, passed", [(0.9, True), (1.0, True), (1.1, False)])
def test_bar_on_a_ratio(ours, passed):
    (row,) = compare([sample("garden", ours), sample("KerasHub", 1.0)], [Bar("step", "KerasHub", 1.0)])
    assert row.passed is passed


def test_bar_on_gardens_own_figure():
    (row,) = compare([sample("garden", 0.6)], [Bar("step", None, 0.5)])
    assert (row.theirs, row.ratio, row.passed) == (None, 0.6, False)


def test_only_the_best_backend_has_to_keep_its_bar():
    samples = [sample(peer, t, backend=b) for b, t in (("jax", 1.2), ("torch", 1.0)) for peer in ("garden",)]
    samples += [sample("transformers", 1.0, backend=b) for b in ("jax", "torch")]
    rows = compare(samples, [Bar("step", "transformers", 1.05, best_backend=True)])
    assert [(row.ours.backend, row.passed) for row in rows] == [("jax", None), ("torch", True)]


def test_a_peer_is_taken_from_the_same_process_or_else_from_its_own():
    ours = [sample("garden", 1.0, backend=b) for b in ("jax", "torch")]
    beside = [sample("transformers", 2.0, backend="jax"), sample("transformers", 4.0, backend="torch")]
    assert [row.ratio for row in compare(ours + beside, [])] == [0.5, 0.25]
    assert [row.ratio for row in compare([*ours, beside[1]], [])] == [0.25, 0.25]


def test_every_round_starts_with_another_peer():
    calls = []
    alternate({name: lambda name=name: calls.append(name) for name in "abc"}, 3)
    assert "".join(calls) == "abc" + "abc" + "bca" + "cab"


def test_shared_processes_build_the_peers_in_every_order():
    orders = [request.peers for request in requests(["inference"], ["jax"], "x") if request.job == "inference"]
    assert {order[0] for order in orders} == set(JOBS["inference"].peers)


def test_fresh_processes_alternate_and_transformers_has_its_own():
    turns = [(request.backend, *request.peers) for request in requests(["first_step"], ["jax"], "x")]
    assert turns == [("jax", "garden"), ("jax", "KerasHub")] * 2 + [("torch", "transformers")] * 2


def test_merging_keeps_every_repetition():
    merged = merge([sample("garden", 1.0), sample("KerasHub", 5.0), sample("garden", 3.0)])
    assert [found.values for found in merged] == [(1.0, 3.0), (5.0,)]


def test_table_states_bar_and_verdict():
    bars = [Bar("step", None, 0.5), Bar("step", "KerasHub", 1.0)]
    lines = table(compare([sample("garden", 0.6), sample("KerasHub", 1.2)], bars)).splitlines()
    assert [cell.strip() for cell in lines[2].split("|")][-4:-1] == ["", "<= 0.5 s", "FAIL"]
    assert [cell.strip() for cell in lines[3].split("|")][-4:-1] == ["0.5", "<= 1", "pass"]
    assert figure(sample("garden", 0.5, work=(1000, "tokens"))) == "0.5 s, 2,000 tokens/s"


def test_every_bar_names_a_figure_that_a_job_takes():
    sources = "".join((ROOT / "benchmarks" / name).read_text("utf-8") for name in ("steps.py", "text.py", "fresh.py"))
    assert all(f'"{bar.metric}"' in sources for bar in BARS)


def test_one_job_at_toy_size_writes_table_and_picture(tmp_path):
    output = tmp_path / "results.md"
    command = [sys.executable, "-m", "benchmarks", "--small", "--jobs", "import_garden", "--output", str(output)]
    done = subprocess.run([*command, "--backends", "jax"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| import garden | jax" in output.read_text("utf-8")
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_the_curve_of_recurrence_at_toy_size(tmp_path):
    output = tmp_path / "curve.png"
    command = [sys.executable, "-m", "benchmarks.recurrence", "--small", "--backend", "torch", "--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| 16 | " in done.stdout and output.read_bytes().startswith(b"\x89PNG")
