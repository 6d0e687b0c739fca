"""What a layer more costs to compile, with shared weights: `python -m benchmarks.depth [--backend jax]`.

ALBERT's layers share their weights but each still runs, so a compiled step grows with them. The first training step is
timed, building and compiling included, less a second one, for garden and KerasHub in turn, and a line laid through the
medians.
"""

import argparse
import os
import time

import numpy as np

SIZES = dict(vocabulary_size=2000, num_heads=4, embedding_dim=32, hidden_dim=64, intermediate_dim=256)
DEPTHS = (2, 6, 12)


def seconds_to_compile(backbone_cls: type, num_layers: int) -> float:
    """Seconds from the class to a compiled training step of `num_layers` layers, without the step itself."""
    import keras

    rng = np.random.default_rng(0)
    x = {"token_ids": rng.integers(5, 2000, (8, 64)).astype("int32")}
    x |= {"segment_ids": np.zeros((8, 64), "int32"), "padding_mask": np.ones((8, 64), "int32")}
    keras.backend.clear_session()
    began = time.perf_counter()
    backbone = backbone_cls(num_layers=num_layers, **SIZES)
    logits = keras.layers.Dense(2)(backbone.output["pooled_output"])
    model = keras.Model(backbone.input, logits)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    times = []
    for _ in range(2):
        model.train_on_batch(x, np.zeros(8, "int32"))
        times.append(time.perf_counter())
    return (times[0] - began) - (times[1] - times[0])


def main(arguments: list[str] | None = None) -> None:
    """Measures both and prints a table, the seconds a layer and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.depth", description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=("jax", "tensorflow"), default="jax", help="PyTorch compiles nothing here")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    os.environ["KERAS_BACKEND"] = options.backend
    import keras_hub

    import garden

    peers = {"garden": garden.AlbertBackbone, "KerasHub": keras_hub.models.AlbertBackbone}
    for cls in peers.values():  # what only the first model of a process pays
        seconds_to_compile(cls, 1)
    found = {name: {depth: [] for depth in DEPTHS} for name in peers}
    for _ in range(options.rounds):
        for depth in DEPTHS:
            for name, cls in peers.items():
                found[name][depth].append(seconds_to_compile(cls, depth))
    slopes = {}
    print(
        f"| {options.backend} | {' | '.join(f'{depth} layers' for depth in DEPTHS)} | a layer |\n|---|---|---|---|---|"
    )
    for name, times in found.items():
        medians = [float(np.median(times[depth])) for depth in DEPTHS]
        slopes[name] = np.polyfit(DEPTHS, medians, 1)[0]
        print(f"| {name} | {' | '.join(f'{seconds:.1f} s' for seconds in medians)} | {slopes[name]:.2f} s |")
    print(f"garden / KerasHub, seconds a layer: {slopes['garden'] / slopes['KerasHub']:.2f}")


if __name__ == "__main__":
    main()
