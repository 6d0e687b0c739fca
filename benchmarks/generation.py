"""Tokens a second of greedy generation: `python -m benchmarks.generation [--backend jax]`.

garden's and KerasHub's GPT-2 and the one in transformers continue the same prompts with as many tokens, in turn, after
one round that compiles. The weights are random: what is written does not matter for its time.
"""

import argparse
import os
import time
from collections.abc import Callable

import numpy as np

SIZES = dict(num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072)
SMALL = dict(num_layers=2, num_heads=2, hidden_dim=32, intermediate_dim=64)
VOCABULARY = 50257


def prompts(rows: int, prompt: int, length: int) -> dict[str, np.ndarray]:
    """Rows of random ids, `prompt` of them, and room up to `length`."""
    ids = np.random.default_rng(0).integers(5, 1000, (rows, length)).astype("int32")
    mask = np.broadcast_to(np.arange(length) < prompt, ids.shape).astype("int32")
    return {"token_ids": ids * mask, "padding_mask": mask}


def garden_model(sizes: dict, length: int) -> Callable:
    """garden's GPT-2, as a function of prompts."""
    import garden

    backbone = garden.Gpt2Backbone(VOCABULARY, **sizes, max_sequence_length=length)
    return _keras(garden.tasks.CausalLM.for_backbone(garden.Gpt2Backbone)(backbone))


def keras_hub_model(sizes: dict, length: int) -> Callable:
    """KerasHub's."""
    from keras_hub.models import GPT2Backbone, GPT2CausalLM

    return _keras(GPT2CausalLM(GPT2Backbone(VOCABULARY, **sizes, max_sequence_length=length), preprocessor=None))


def _keras(model):
    model.compile(sampler="greedy")
    return lambda x: model.generate(dict(x), stop_token_ids=None)


def transformers_model(sizes: dict, length: int) -> Callable:
    """The one in transformers, which runs on PyTorch."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    names = {"num_layers": "n_layer", "num_heads": "n_head", "hidden_dim": "n_embd", "intermediate_dim": "n_inner"}
    config = GPT2Config(n_positions=length, **{names[name]: size for name, size in sizes.items()})
    model = GPT2LMHeadModel(config).eval()

    def generate(x):
        ids = torch.tensor(x["token_ids"][:, : x["padding_mask"][0].sum()]).long()
        settings = {"max_length": length, "min_length": length, "do_sample": False, "pad_token_id": 0}
        with torch.no_grad():
            return model.generate(ids, attention_mask=torch.ones_like(ids), **settings)

    return generate


PEERS = {"garden": garden_model, "KerasHub": keras_hub_model, "transformers": transformers_model}


def main(arguments: list[str] | None = None) -> None:
    """Measures all of them and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generation", description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=("jax", "tensorflow", "torch"), default="jax")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=4, help="prompts side by side")
    parser.add_argument("--prompt", type=int, default=16, help="tokens of a prompt")
    parser.add_argument("--length", type=int, default=80, help="tokens of prompt and continuation")
    parser.add_argument("--small", action="store_true", help="a tiny model, to see what this does")
    options = parser.parse_args(arguments)
    os.environ["KERAS_BACKEND"] = options.backend
    x = prompts(options.rows, options.prompt, options.length)
    models = {name: make(SMALL if options.small else SIZES, options.length) for name, make in PEERS.items()}
    seconds = {name: [] for name in models}
    for round in range(options.rounds + 1):
        for name, generate in models.items():
            began = time.perf_counter()
            generate(x)
            if round:  # the first compiles
                seconds[name].append(time.perf_counter() - began)
    written = options.rows * (options.length - options.prompt)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    print(
        f"| {options.backend}, {options.rows} x {options.prompt} + {options.length - options.prompt} tokens | "
        "tokens/s | garden's time / its |\n|---|---|---|"
    )
    for name, median in medians.items():
        print(f"| {name} | {written / median:,.0f} | {medians['garden'] / median:.2f} |")


if __name__ == "__main__":
    main()
