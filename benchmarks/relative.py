"""What relative attention costs at each length: `python -m benchmarks.relative [--backend jax] [--lengths 128 512]`.

An encoder of two layers at the widths of a base model, the same number of tokens at every length. Each number is a
median, garden's and its peers' taken in turn, and the ratio is garden's to the best peer's. A further family is a
further row of `FAMILIES`: names of peers, and for each a function that makes its encoder.
"""

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from .measure import alternate

SIZES = dict(vocabulary_size=1000, num_layers=2, num_heads=12, hidden_dim=768, intermediate_dim=3072)
TOKENS, LENGTHS = 1024, (128, 256, 512, 1024, 2048)
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def garden_deberta():
    """garden's DeBERTa 3."""
    import garden

    return garden.DebertaV2Backbone(**SIZES)


def keras_hub_deberta():
    """KerasHub's, which has the buckets for 512 tokens that the published models have."""
    from keras_hub.models import DebertaV3Backbone

    return DebertaV3Backbone(**SIZES)


def transformers_deberta():
    """transformers', as its configuration makes it from the names of the sizes that garden has."""
    import transformers

    config = transformers.DebertaV2Config(
        vocab_size=SIZES["vocabulary_size"],
        num_hidden_layers=SIZES["num_layers"],
        num_attention_heads=SIZES["num_heads"],
        hidden_size=SIZES["hidden_dim"],
        intermediate_size=SIZES["intermediate_dim"],
        relative_attention=True,
        position_biased_input=False,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
    )
    # It makes a table of ids of positions that it never reads, which would end the rows at 512.
    model = transformers.DebertaV2Model(config)
    model.embeddings.position_ids = model.embeddings.position_ids[:, :1].expand(1, max(LENGTHS))
    return model


def garden_xlnet():
    """garden's XLNet, its content stream."""
    import garden

    return garden.XlnetBackbone(**SIZES)


def keras_hub_xlnet():
    """KerasHub's, which always runs on the content stream alone too."""
    from keras_hub.models import XLNetBackbone

    return XLNetBackbone(**SIZES)


def transformers_xlnet():
    """transformers'."""
    import transformers

    config = transformers.XLNetConfig(
        vocab_size=SIZES["vocabulary_size"],
        n_layer=SIZES["num_layers"],
        n_head=SIZES["num_heads"],
        d_model=SIZES["hidden_dim"],
        d_inner=SIZES["intermediate_dim"],
    )
    return transformers.XLNetModel(config)


def garden_t5():
    """The encoder of garden's T5."""
    import garden

    return garden.T5EncoderBackbone(**SIZES, key_value_dim=64)


def transformers_t5():
    """That of transformers."""
    import transformers

    config = transformers.T5Config(
        vocab_size=SIZES["vocabulary_size"],
        num_layers=SIZES["num_layers"],
        num_heads=SIZES["num_heads"],
        d_model=SIZES["hidden_dim"],
        d_ff=SIZES["intermediate_dim"],
        d_kv=64,
    )
    return transformers.T5EncoderModel(config)


def garden_transformer_xl():
    """garden's Transformer-XL, which no other library has."""
    import garden

    return garden.TransformerXlBackbone(**SIZES)


FAMILIES = {
    "deberta_v3": {"garden": garden_deberta, "KerasHub": keras_hub_deberta, "transformers": transformers_deberta},
    "xlnet": {"garden": garden_xlnet, "KerasHub": keras_hub_xlnet, "transformers": transformers_xlnet},
    "t5": {"garden": garden_t5, "transformers": transformers_t5},
    "transformer_xl": {"garden": garden_transformer_xl},
}


def one_output(model):
    """An encoder of garden or KerasHub that only gives the states of its last layer."""
    import keras

    output = model.output["sequence_output"] if isinstance(model.output, dict) else model.output
    return keras.Model(model.input, output)


def gradient_bytes(make: Callable, inputs: dict[str, np.ndarray]) -> int:
    """What a gradient takes in memory beside weights and results, as XLA plans it; on JAX."""
    import jax
    from keras import ops

    model = one_output(make())
    inputs = {name: inputs[name] for name in model.input}

    def loss(trainable, others):
        return ops.mean(ops.square(model.stateless_call(trainable, others, inputs, training=True)[0]))

    variables = ([v.value for v in group] for group in (model.trainable_variables, model.non_trainable_variables))
    return jax.jit(jax.grad(loss)).lower(*variables).compile().memory_analysis().temp_size_in_bytes


def keras_steps(make: Callable, inputs: dict[str, np.ndarray]) -> dict[str, Callable[[], object]]:
    """A compiled forward pass and a compiled training step of a Keras encoder."""
    import keras

    model = one_output(make())
    model.compile(keras.optimizers.SGD(1e-4), loss="mse")
    target = np.zeros((*inputs["token_ids"].shape, model.output.shape[-1]), "float32")
    inputs = {name: inputs[name] for name in model.input}
    return {
        "inference": partial(model.predict_on_batch, inputs),
        "training": partial(model.train_on_batch, inputs, target),
    }


def torch_steps(make: Callable, inputs: dict[str, np.ndarray]) -> dict[str, Callable[[], object]]:
    """The same of an encoder of transformers, eager."""
    import torch

    model = make()
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    arguments = {"input_ids": "token_ids", "attention_mask": "padding_mask"}
    arguments = {theirs: torch.from_numpy(inputs[ours]).long() for theirs, ours in arguments.items()}

    def inference():
        with torch.no_grad():
            return model.eval()(**arguments).last_hidden_state.numpy()

    def training():
        model.train()(**arguments).last_hidden_state.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return {"inference": inference, "training": training}


def rows(length: int) -> dict[str, np.ndarray]:
    """Random rows of a length."""
    ids = np.random.default_rng(0).integers(5, SIZES["vocabulary_size"], (max(TOKENS // length, 1), length))
    return {"token_ids": ids.astype("int32"), "padding_mask": 0 * ids + 1, "segment_ids": 0 * ids}


def measure(family: str, backend: str, length: int, repeats: int, clock: Callable[[], float]) -> dict[str, dict]:
    """Median seconds of each peer by the kind of step."""
    inputs = rows(length)
    steps = {}
    for peer, make in FAMILIES[family].items():
        if peer != "transformers":
            steps[peer] = keras_steps(make, inputs)
        elif backend == "torch" and importlib.util.find_spec("transformers"):
            steps[peer] = torch_steps(make, inputs)
    found = {}
    for kind in ("inference", "training"):
        times = alternate({peer: calls[kind] for peer, calls in steps.items()}, repeats, clock)
        found[kind] = {peer: float(np.median(seconds)) for peer, seconds in times.items()}
    return found


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relative", description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=("torch", "jax", "tensorflow"), default="torch")
    parser.add_argument("--family", choices=tuple(FAMILIES), default="deberta_v3")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall", help="cpu on a machine that others use")
    parser.add_argument("--memory", action="store_true", help="print the memory of a gradient instead, on JAX")
    options = parser.parse_args(arguments)
    if options.memory:
        return print_memory(options)
    os.environ["KERAS_BACKEND"] = options.backend
    print(f"{options.family} on {options.backend}, {TOKENS} tokens, milliseconds ({options.clock})")
    for length in options.lengths:
        for kind, medians in measure(
            options.family, options.backend, length, options.repeats, CLOCKS[options.clock]
        ).items():
            best = min((seconds for peer, seconds in medians.items() if peer != "garden"), default=np.nan)
            cells = ", ".join(f"{peer} {seconds * 1e3:.0f}" for peer, seconds in medians.items())
            print(f"{length:5} {kind:9} {cells}; garden / best peer {medians['garden'] / best:.2f}", flush=True)


def print_memory(options: argparse.Namespace) -> None:
    """The memory of a gradient at each length."""
    os.environ["KERAS_BACKEND"] = "jax"
    print(f"{options.family}, {TOKENS} tokens, MiB of a gradient beside weights and results")
    for length in options.lengths:
        peers = {peer: make for peer, make in FAMILIES[options.family].items() if peer != "transformers"}
        found = {peer: gradient_bytes(make, rows(length)) / 2**20 for peer, make in peers.items()}
        print(f"{length:5} " + ", ".join(f"{peer} {size:.0f}" for peer, size in found.items()), flush=True)


if __name__ == "__main__":
    main()
