"""Files that `torch.save` wrote, in both generations: a zip archive, or pickles followed by the raw storages."""

import io
import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .reader import WeightReader, read_array, reading, widen
from .torch_pickle import StoredTensor, TensorUnpickler, find_settings, find_state_dict

ZIP_MAGIC = b"PK\x03\x04"
LEGACY_MAGIC = b"\x80\x02\x8a\n"  # a pickle of protocol 2 that starts with the long integer below
LEGACY_NUMBER = 0x1950A86A20F9469CFC6C


class TorchFile(WeightReader):
    """The state dict in a file of `torch.save` (`pytorch_model.bin`, fairseq's `model.pt`), read without torch.

    The state dict may be the whole file or lie under the key `"model"` or `"state_dict"`. The pickle is read by a
    restricted unpickler that imports and calls nothing; see `torch_pickle`.

    Args:
        path: the file.

    Attributes:
        settings: fairseq's training arguments, where it wrote the file.

    Raises:
        CheckpointError: the file is truncated or damaged, holds no state dict, or asks to call a function.

    Example:

    ```python
    weights = TorchFile("roberta.base/model.pt")
    weights["decoder.sentence_encoder.embed_tokens.weight"].shape  # (50265, 768)
    ```
    """

    kind = "torch"

    def __init__(self, path: str | os.PathLike):
        path = Path(path)
        with reading(path, "torch file"), open(path, "rb") as file:
            load = load_zip if file.read(4) == ZIP_MAGIC else load_legacy
            file.seek(0)
            tree, self._starts = load(file)
            self._tensors, self.settings = find_state_dict(tree), find_settings(tree)
        super().__init__(path, {name: tensor.shape for name, tensor in self._tensors.items()})

    def __getitem__(self, name: str) -> np.ndarray:
        tensor: StoredTensor = self._tensors[name]
        dtype = tensor.storage.dtype
        start = self._starts[tensor.storage.key] + tensor.offset * dtype.itemsize
        numbers = widen(read_array(self.path, start, dtype, tensor.span))
        strides = [stride * numbers.itemsize for stride in tensor.strides]
        return np.asarray(np.ndarray(tensor.shape, numbers.dtype, numbers, strides=strides), order="C")


def is_torch_file(path: Path) -> bool:
    """Whether the file starts like one of the two generations."""
    with open(path, "rb") as file:
        return file.read(4) in (ZIP_MAGIC, LEGACY_MAGIC)


def load_zip(file: BinaryIO) -> tuple[Any, dict[str, int]]:
    """The pickled object, and the byte at which each storage starts, of a zip `NAME/{data.pkl,data/KEY}`."""
    archive = zipfile.ZipFile(file)
    members = {info.filename: info for info in archive.infolist()}
    pickles = [name for name in members if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise ValueError(f"a zip of torch holds one data.pkl, this one {len(pickles)}")
    if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
        raise ValueError("its members are compressed, which torch never does")
    root = pickles[0].removesuffix("data.pkl")
    check_byte_order(f"{root}byteorder" not in members or archive.read(f"{root}byteorder") == b"little")
    unpickler = TensorUnpickler(io.BytesIO(archive.read(pickles[0])))
    tree = unpickler.load()
    starts = {}
    for key, storage in unpickler.storages.items():
        info = members.get(f"{root}data/{key}")
        if info is None or info.file_size < storage.size * storage.dtype.itemsize:
            raise ValueError(f"its member data/{key} is missing or truncated")
        starts[key] = member_start(file, info)
    return tree, starts


def member_start(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """The byte at which the data of a stored zip member starts: its local header has two fields of varying length."""
    file.seek(info.header_offset)
    header = file.read(30)
    if header[:4] != ZIP_MAGIC:
        raise ValueError(f"its member {info.filename} has no header")
    return info.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")


def load_legacy(file: BinaryIO) -> tuple[Any, dict[str, int]]:
    """The same of a file of torch < 1.6: five pickles, then per storage its length and its numbers."""
    if TensorUnpickler(file).load() != LEGACY_NUMBER:
        raise ValueError("it does not start with torch's magic number")
    _protocol, system = TensorUnpickler(file).load(), TensorUnpickler(file).load()
    check_byte_order(system["little_endian"])
    unpickler = TensorUnpickler(file)
    tree = unpickler.load()
    starts = {}
    for key in TensorUnpickler(file).load():
        storage = unpickler.storages[key]
        size = int.from_bytes(file.read(8), "little")
        if size != storage.size:
            raise ValueError(f"it is truncated or damaged at storage {key}")
        starts[key] = file.tell()
        file.seek(starts[key] + size * storage.dtype.itemsize)
    if file.tell() > os.fstat(file.fileno()).st_size or len(starts) != len(unpickler.storages):
        raise ValueError("it is truncated")
    return tree, starts


def check_byte_order(little_endian: bool) -> None:
    if not little_endian:
        raise ValueError("it was written on a big-endian machine; save it again on a little-endian one")
