"""TensorFlow checkpoints (`bert_model.ckpt.index`, `bert_model.ckpt.data-00000-of-00001`), read without TensorFlow."""

import math
import os
import re
from pathlib import Path

import numpy as np

from ..errors import CheckpointError
from .reader import BFLOAT16, WeightReader, read_array, reading, widen
from .tensorflow_index import MAGIC, BundleEntry, masked_crc, parse_index

# tensorflow/core/framework/types.proto
DTYPES = {
    1: np.dtype("<f4"),
    2: np.dtype("<f8"),
    3: np.dtype("<i4"),
    4: np.dtype("u1"),
    5: np.dtype("<i2"),
    6: np.dtype("i1"),
    9: np.dtype("<i8"),
    10: np.dtype("?"),
    14: BFLOAT16,
    17: np.dtype("<u2"),
    19: np.dtype("<f2"),
    22: np.dtype("<u4"),
    23: np.dtype("<u8"),
}


class TensorFlow1Checkpoint(WeightReader):
    """The variables of a checkpoint that TensorFlow's Saver wrote.

    Every variable is compared with its checksum when it is read.

    Args:
        path: the checkpoint's prefix, its `.index` file, or its folder. Of several checkpoints in a folder, the one
            that the file `checkpoint` names is read.

    Raises:
        CheckpointError: a data file is missing or truncated (the message names a variable in it), the folder does not
            tell which checkpoint is meant, or the format is the one before `.index` files. On reading: the variable
            does not fit its checksum, is text, or was cut into slices.

    Example:

    ```python
    weights = TensorFlow1Checkpoint("uncased_L-2_H-128_A-2/bert_model.ckpt")
    weights["bert/embeddings/word_embeddings"].shape  # (30522, 128)
    ```
    """

    kind = "tensorflow1"

    def __init__(self, path: str | os.PathLike):
        prefix = find_prefix(Path(path))
        index = with_suffix(prefix, ".index")
        with reading(index, "TensorFlow index"):
            self._number_of_shards, self._entries = parse_index(index.read_bytes())
        super().__init__(prefix, {name: entry.shape for name, entry in self._entries.items()})
        self._check_shards()

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._entries[name]
        dtype = self._checked_dtype(name, entry)
        array = read_array(self._shard(entry), entry.offset, dtype, entry.size // dtype.itemsize)
        if masked_crc(array.view(np.uint8)) != entry.crc:
            raise CheckpointError(f"{self._shard(entry)} is damaged: variable {name!r} does not fit its checksum.")
        return widen(array).reshape(entry.shape)

    def _checked_dtype(self, name: str, entry: BundleEntry) -> np.dtype:
        if entry.partitioned:
            raise CheckpointError(f"{self.path} holds {name!r} cut into slices; save it again without a partitioner.")
        if entry.dtype not in DTYPES:
            raise CheckpointError(f"{self.path} holds {name!r} as type {entry.dtype}, which is no type of numbers.")
        dtype = DTYPES[entry.dtype]
        if math.prod(entry.shape) * dtype.itemsize != entry.size:
            raise CheckpointError(f"{self.path} holds {entry.size} bytes for {name!r} of shape {entry.shape} {dtype}.")
        return dtype

    def _check_shards(self) -> None:
        sizes: dict[Path, int] = {}
        for name, entry in self._entries.items():
            shard = self._shard(entry)
            if shard not in sizes:
                if not shard.is_file():
                    raise CheckpointError(f"{shard} is missing, it holds variable {name!r}.")
                sizes[shard] = shard.stat().st_size
            if entry.offset + entry.size > sizes[shard]:
                raise CheckpointError(f"{shard} is truncated: it ends before variable {name!r} does.")

    def _shard(self, entry: BundleEntry) -> Path:
        return with_suffix(self.path, f".data-{entry.shard:05d}-of-{self._number_of_shards:05d}")


def with_suffix(prefix: Path, suffix: str) -> Path:
    return prefix.with_name(prefix.name + suffix)  # Path.with_suffix would cut off ".ckpt"


def find_prefix(path: Path) -> Path:
    """The prefix of the checkpoint that `path` means: an `.index` file, a prefix, or a folder of one."""
    if path.is_dir():
        return choose_prefix(path)
    if path.suffix == ".index":
        return path.with_suffix("")
    if with_suffix(path, ".index").is_file():
        return path
    if path.is_file() and is_v1_checkpoint(path):
        raise CheckpointError(f"{path} is in TensorFlow's V1 format; save it again with a tf.compat.v1.train.Saver.")
    raise CheckpointError(f"{path} is no TensorFlow checkpoint: there is no {path.name}.index.")


def is_v1_checkpoint(path: Path) -> bool:
    """Whether a file is a whole checkpoint of the format before `.index` files: one table that ends like an index."""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - len(MAGIC)))
        return file.read() == MAGIC


def choose_prefix(folder: Path) -> Path:
    """The only checkpoint in a folder, or the one that its `checkpoint` file names."""
    names = sorted(file.name.removesuffix(".index") for file in folder.glob("*.index"))
    if len(names) > 1 and (folder / "checkpoint").is_file():
        text = (folder / "checkpoint").read_text("utf-8", errors="replace")
        latest = re.search(r'^model_checkpoint_path: "(?:.*[/\\])?(.+)"', text, re.MULTILINE)
        names = [name for name in names if latest and name == latest[1]] or names
    if len(names) != 1:
        found = ", ".join(f"{name}.index" for name in names) or "none"
        raise CheckpointError(f"{folder} must hold one TensorFlow checkpoint, found {found}; give the path of one.")
    return folder / names[0]
