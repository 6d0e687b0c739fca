"""A step of BERT-base: inference and training on the same batch, from the same weights."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from .measure import alternate
from .peers import PEERS, batch
from .records import Request, Sample


def inference(request: Request) -> Iterator[Sample]:
    """Seconds of a forward pass; raises when two peers do not compute the same."""
    inputs, _ = batch(request.small)
    encoders = {peer: PEERS[peer].encoder(Path(request.folder, "base")) for peer in request.peers}
    _check_same({peer: encode(inputs) for peer, encode in encoders.items()}, inputs["padding_mask"])
    calls = {peer: partial(encode, inputs) for peer, encode in encoders.items()}
    yield from _timed("inference step", request, calls, 3)


def training(request: Request) -> Iterator[Sample]:
    """Seconds of a step of AdamW on a classifier, dropout 0.1 everywhere."""
    inputs, labels = batch(request.small)
    trainers = {peer: PEERS[peer].trainer(Path(request.folder, "base")) for peer in request.peers}
    steps = {peer: partial(train, inputs, labels) for peer, train in trainers.items()}
    yield from _timed("training step", request, steps, 2)


def _timed(metric, request, calls, repeats):
    for peer, seconds in alternate(calls, repeats).items():
        yield Sample(metric, request.backend, peer, "s", seconds)


def _check_same(outputs, mask):
    (first, expected), *others = outputs.items()
    for peer, found in others:
        # What a peer computes at padding is its own affair.
        worst = np.abs((np.asarray(found) - np.asarray(expected)) * mask[:, :, None]).max()
        if worst > 1e-3:
            raise ValueError(f"{peer} and {first} differ by {worst:.1g} on the same weights: nothing to compare.")
