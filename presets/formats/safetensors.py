"""safetensors files: https://huggingface.co/docs/safetensors (an 8-byte header length, a JSON header, the data)."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np
from safetensors import safe_open

from .reader import BFLOAT16, WeightReader, read_array, reading, widen

DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": BFLOAT16,
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
CODES = {"bfloat16": "BF16"} | {dtype.name: code for code, dtype in DTYPES.items() if dtype != BFLOAT16}
TRANSFORMERS = MappingProxyType({"format": "pt"})  # transformers refuses a file without it


class SafetensorsFile(WeightReader):
    """One `.safetensors` file.

    Args:
        path: the file.

    Raises:
        CheckpointError: the file is not exactly what the format prescribes: header length, JSON, known types, shapes
            that fit their sizes, data without gap, overlap or trailing bytes.

    Example:

    >>> import numpy as np, tempfile
    >>> path = f"{tempfile.mkdtemp()}/model.safetensors"
    >>> write_safetensors(path, {"scale": np.ones(3, "float32")})
    >>> SafetensorsFile(path)["scale"]
    array([1., 1., 1.], dtype=float32)
    """

    kind = "safetensors"

    def __init__(self, path: str | os.PathLike):
        path = Path(path)
        with reading(path, "safetensors file"):
            self._start, self._header = read_header(path)
            for name, entry in self._header.items():
                if entry["dtype"] not in DTYPES:
                    raise ValueError(f"tensor {name!r} has type {entry['dtype']}, garden reads {', '.join(DTYPES)}")
        super().__init__(path, {name: tuple(entry["shape"]) for name, entry in self._header.items()})

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._header[name]
        dtype, (begin, end) = DTYPES[entry["dtype"]], entry["data_offsets"]
        array = read_array(self.path, self._start + begin, dtype, (end - begin) // dtype.itemsize)
        return widen(array).reshape(entry["shape"])


def read_header(path: Path) -> tuple[int, dict[str, dict]]:
    """The byte at which the data starts, and per tensor its `dtype`, `shape` and `data_offsets` counted from there."""
    with safe_open(path, framework="numpy"):
        pass  # the library's own validation of the header against the file; it touches no data
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return 8 + length, header


def write_safetensors(
    path: str | os.PathLike, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] = TRANSFORMERS
) -> None:
    """Write `tensors` to `path`, replacing it only once all is written.

    `tensors` is walked twice, first for types and shapes and then for the data. A mapping that makes its arrays when
    indexed, such as every reader here, therefore costs the memory of its largest tensor and not of the checkpoint.

    Args:
        path: the file to write.
        tensors: mapping of names to arrays of float, integer, bool or bfloat16 (`ml_dtypes`) type.
        metadata: mapping of strings to strings, kept in the header.

    Raises:
        ValueError: an array has another type.
        OSError: the disk is full, or the path cannot be written. What was at `path` is still there.

    Example:

    >>> import numpy as np, tempfile
    >>> path = f"{tempfile.mkdtemp()}/model.safetensors"
    >>> write_safetensors(path, {"bert.pooler.dense.bias": np.zeros(768, "float32")})
    >>> SafetensorsFile(path).shape("bert.pooler.dense.bias")
    (768,)
    """
    entries = {name: describe(tensors[name]) for name in tensors}
    # Wide types first: then each tensor starts at a multiple of its own item size.
    names = sorted(entries, key=lambda name: -entries[name][0].itemsize)
    with replacing(Path(path)) as file:
        header = encode_header({name: entries[name] for name in names}, metadata)
        file.write(len(header).to_bytes(8, "little") + header)
        for name in names:
            file.write(raw_bytes(tensors[name]))


def describe(array: np.ndarray) -> tuple[np.dtype, tuple[int, ...]]:
    return array.dtype, array.shape


def raw_bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of `array` in row-major, little-endian order; a view where it is in that order already."""
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C").reshape(-1).view(np.uint8)


def encode_header(entries: Mapping[str, tuple[np.dtype, tuple[int, ...]]], metadata: Mapping[str, str]) -> bytes:
    """The JSON header of tensors stored one after the other, padded to a multiple of 8 bytes."""
    header: dict[str, dict] = {"__metadata__": dict(metadata)}
    end = 0
    for name, (dtype, shape) in entries.items():
        if dtype.name not in CODES:
            raise ValueError(f"tensor {name!r} has type {dtype.name}, safetensors stores {', '.join(CODES)}.")
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": CODES[dtype.name], "shape": list(shape), "data_offsets": [begin, end]}
    encoded = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return encoded + b" " * (-len(encoded) % 8)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its place when the block ends, and is removed when the block fails."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
