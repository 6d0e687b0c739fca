"""Checkpoints cut into several files by Hugging Face's `*.index.json`, of safetensors or torch shards."""

import json
import os
from pathlib import Path

import numpy as np

from ..errors import CheckpointError
from .reader import WeightReader, reading
from .safetensors import SafetensorsFile
from .torch_file import TorchFile


class ShardedTensors(WeightReader):
    """The tensors that `model.safetensors.index.json` or `pytorch_model.bin.index.json` assigns to shards beside it.

    Args:
        path: the index file.

    Raises:
        CheckpointError: a shard is missing or damaged, or lacks a tensor that the index promises.

    Example:

    ```python
    weights = ShardedTensors("t5-11b/pytorch_model.bin.index.json")
    weights["shared.weight"].shape
    ```
    """

    def __init__(self, path: str | os.PathLike):
        path = Path(path)
        with reading(path, "index of shards"):
            shard_of = read_weight_map(path)
        missing = sorted(name for name in set(shard_of.values()) if not (path.parent / name).is_file())
        if missing:
            raise CheckpointError(f"{path} names shards that are not beside it: {', '.join(missing)}.")
        shards = {name: open_shard(path.parent / name) for name in sorted(set(shard_of.values()))}
        absent = [f"{key} (in {name})" for key, name in shard_of.items() if key not in shards[name]]
        if absent:
            raise CheckpointError(f"{path} names tensors that their shards do not hold: {', '.join(absent)}.")
        self._shards = {key: shards[name] for key, name in shard_of.items()}
        self.kind = next(iter(shards.values())).kind
        super().__init__(path, {key: shard.shape(key) for key, shard in self._shards.items()})

    def __getitem__(self, name: str) -> np.ndarray:
        return self._shards[name][name]


def read_weight_map(path: Path) -> dict[str, str]:
    """Tensor name -> name of its shard. ValueError if there is none, or if a shard lies outside the folder."""
    weight_map = json.loads(path.read_text("utf-8"))["weight_map"]
    if not weight_map or not isinstance(weight_map, dict):
        raise ValueError("its weight_map is empty or not an object")
    for shard in weight_map.values():
        if not isinstance(shard, str) or Path(shard).name != shard or "\\" in shard:
            raise ValueError(f"shard {shard!r} is not the plain name of a file beside it")
    return weight_map


def open_shard(path: Path) -> WeightReader:
    return SafetensorsFile(path) if path.suffix == ".safetensors" else TorchFile(path)
