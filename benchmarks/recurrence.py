"""What a memory saves, as a curve: `python -m benchmarks.recurrence [--backend jax] [--output curve.png] [--small]`.

A language model without a memory that is to see c tokens before each prediction reads them all anew for every token
(Al-Rfou et al. 2019). Transformer-XL reads a segment once, behind the states of the c tokens before it (Dai et al.
2019, section 4.6, which found up to 1,800 times the speed on a GPU). Both ways give the same numbers while the memory
is as long as what was read, which is checked first. The time is that of one prediction, the softmax left out.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

FULL = {"sizes": dict(num_layers=4, num_heads=4, hidden_dim=256, intermediate_dim=1024), "segment": 64}
FULL |= {"contexts": (64, 128, 256, 512, 1024), "rounds": 5}
SMALL = {"sizes": dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8), "segment": 4}
SMALL |= {"contexts": (8, 16), "rounds": 1}


def measure(sizes: dict, segment: int, contexts: tuple, rounds: int) -> list[tuple[int, float, float]]:
    """For every context the seconds a token, recomputed and with a memory, each the median of `rounds`."""
    import garden

    found = []
    for context in contexts:
        model = garden.TransformerXlBackbone(1000, **sizes, memory_length=context)
        recurrent = model.recurrent()
        ids = np.random.default_rng(0).integers(0, 1000, (1, context + segment)).astype("int32")
        _check(model, recurrent, ids)
        row = {"token_ids": ids[:, :context], "padding_mask": np.ones((1, context), "int32")}
        step = {"token_ids": ids[:, :segment], "padding_mask": np.ones((1, segment), "int32"), **model.empty_memory(1)}
        anew, carried = [], []
        for _ in range(rounds):  # in turn, so that a slow moment of the machine meets both
            anew.append(_seconds(model, row))
            carried.append(_seconds(recurrent, step) / segment)
        found.append((context, float(np.median(anew)), float(np.median(carried))))
        print(_line(*found[-1]), flush=True)
    return found


def _check(model, recurrent, ids):
    """Compiles both, and raises if the last token's state is not the same with a memory as without."""
    import keras

    def run(model, x):
        return keras.Model.predict_on_batch(model, x)

    half, ones = ids.shape[1] // 2, np.ones_like(ids)
    whole = run(model, {"token_ids": ids[:, : 2 * half], "padding_mask": ones[:, : 2 * half]})["sequence_output"]
    memory = model.empty_memory(1)
    for segment in (ids[:, :half], ids[:, half : 2 * half]):
        found = run(recurrent, {"token_ids": segment, "padding_mask": np.ones_like(segment), **memory})
        memory = {name: found[name] for name in memory}
    if np.abs(found["sequence_output"][:, -1] - whole[:, -1]).max() > 1e-4:
        raise AssertionError("a memory and a whole row give different states")


def _seconds(model, x):
    model.predict_on_batch(x)
    began = time.perf_counter()
    model.predict_on_batch(x)
    return time.perf_counter() - began


def _line(context, anew, carried):
    return f"| {context} | {anew * 1e3:.2f} ms | {carried * 1e3:.3f} ms | {anew / carried:.0f} |"


def draw(found: list[tuple[int, float, float]], path: Path) -> None:
    """Writes the picture: milliseconds a token over the context, both axes logarithmic.

    Args:
        found: what `measure` returns.
        path: the PNG file.
    """
    from matplotlib.figure import Figure

    contexts, anew, carried = zip(*found, strict=True)
    canvas = Figure(figsize=(7, 4.5), layout="constrained")
    axes = canvas.subplots()
    axes.plot(contexts, [1e3 * seconds for seconds in anew], "o-", color="tab:red", label="context read anew")
    axes.plot(contexts, [1e3 * seconds for seconds in carried], "o-", color="tab:green", label="memory carried")
    for context, slow, fast in found:
        axes.text(context, (slow * fast) ** 0.5 * 1e3, f"{slow / fast:.0f} x", ha="center", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="tokens before each prediction", ylabel="milliseconds a prediction")
    axes.set_xticks(contexts, [str(context) for context in contexts], minor=False)
    axes.legend()
    canvas.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Measures, prints the table and draws the curve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recurrence", description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=("jax", "tensorflow", "torch"), default="jax")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/recurrence.png"))
    parser.add_argument("--small", action="store_true", help="toy sizes: shows that everything runs, measures nothing")
    options = parser.parse_args(arguments)
    os.environ["KERAS_BACKEND"] = options.backend
    print(f"| context, {options.backend} | read anew | memory | times |\n|---|---|---|---|")
    found = measure(**(SMALL if options.small else FULL))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    draw(found, options.output)
    print(f"\nDrawn to {options.output}.")


if __name__ == "__main__":
    main()
