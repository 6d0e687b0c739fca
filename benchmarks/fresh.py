"""What only a fresh process can tell: imports, the first step, and peaks of memory, which never go down again."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from .measure import peak_memory
from .peers import PEERS, batch
from .records import Request, Sample

MEGABYTE = 1e6


def import_garden(request: Request) -> Iterator[Sample]:
    """Seconds of `import garden` alone."""
    start = time.perf_counter()
    import garden  # noqa: F401

    yield _sample("import garden", request, "s", time.perf_counter() - start)


def import_bert(request: Request) -> Iterator[Sample]:
    """Seconds until the class of a BERT encoder can be used."""
    start = time.perf_counter()
    if request.peers == ("garden",):
        import garden

        garden.BertBackbone  # noqa: B018  the face imports it here
    elif request.peers == ("KerasHub",):
        from keras_hub.models import BertBackbone  # noqa: F401
    else:
        from transformers import BertModel  # noqa: F401
    yield _sample("import of BERT", request, "s", time.perf_counter() - start)


def first_step(request: Request) -> Iterator[Sample]:
    """Seconds from nothing to the end of the first training step, and the peak of memory after the second."""
    start = time.perf_counter()
    train = PEERS[request.peers[0]].trainer("toy" if request.small else "base")
    train(*batch(request.small))
    yield _sample("first training step", request, "s", time.perf_counter() - start)
    train(*batch(request.small))
    yield _sample("memory of training", request, "MB", peak_memory() / MEGABYTE)


def inference_memory(request: Request) -> Iterator[Sample]:
    """The peak of memory after two forward passes."""
    encode, (inputs, _) = PEERS[request.peers[0]].encoder("toy" if request.small else "base"), batch(request.small)
    encode(inputs), encode(inputs)
    yield _sample("memory of inference", request, "MB", peak_memory() / MEGABYTE)


def loading(request: Request) -> Iterator[Sample]:
    """How far memory rises while BERT-large is built and loaded, in multiples of its weights' bytes."""
    folder, peer = Path(request.folder, "large"), PEERS[request.peers[0]]
    peer.backbone("toy")  # imports everything, starts the backend
    before = _memory()
    model = peer.backbone(folder)  # noqa: F841  kept alive
    weights = (folder / "model.safetensors").stat().st_size
    yield _sample("memory of loading BERT-large", request, "x", (peak_memory() - before) / weights)


def _sample(metric, request, unit, value):
    return Sample(metric, request.backend, request.peers[0], unit, (value,))


def _memory():
    """Bytes that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
