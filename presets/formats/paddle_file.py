"""Files that `paddle.save` wrote (`model_state.pdparams`): one pickle of a dictionary from names to numpy arrays.

Paddle keeps the numbers inside the pickle. They are stepped over while its structure is read, and fetched from the file
one array at a time; nothing that the pickle names is imported or called (see `torch_pickle`).
"""

import math
import os
import pickle
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .reader import BFLOAT16, WeightReader, read_array, reading, widen
from .torch_pickle import Dropped, Named

# Paddle has no unsigned 16-bit tensors: under that type it saves the bits of bfloat16.
DTYPES = {"u2": BFLOAT16} | {code: np.dtype(code) for code in "f2 f4 f8 i1 i2 i4 i8 u1 u4 u8 b1".split()}
# Pickles of protocol 2 could not hold more than 4 GiB, so Paddle cut large arrays and noted the pieces under this key.
CUT = "UnpackBigParamInfor@@"
SMALL = 2**10  # bytes: what is shorter is read with the structure


class Span(NamedTuple):
    """Bytes of the file that were stepped over; `is_text` where Latin-1 characters stand there as UTF-8."""

    start: int
    size: int
    is_text: bool


class StoredType:
    """A numpy type, of which pickle first tells the code and then the byte order."""

    def __init__(self, code: str):
        if code not in DTYPES:
            kind = "Python objects" if code.startswith("O") else f"type {code}"
            raise ValueError(f"it holds an array of {kind}, garden reads {', '.join(DTYPES)}")
        self.dtype = DTYPES[code]

    def __setstate__(self, state):
        if self.dtype != BFLOAT16:
            self.dtype = self.dtype.newbyteorder(state[1])


class StoredArray:
    """A numpy array: its shape, its type, and where its numbers are."""

    def __setstate__(self, state):
        _version, self.shape, stored_type, self.is_fortran, data = state
        self.data = data.encode("latin1") if isinstance(data, str) else data
        if not isinstance(stored_type, StoredType) or not isinstance(self.data, (bytes, Span)):
            raise ValueError("it holds an array of an unknown layout")
        if not isinstance(self.shape, tuple) or any(not isinstance(n, int) or n < 0 for n in self.shape):
            raise ValueError(f"it holds an array of shape {self.shape}")
        self.dtype = stored_type.dtype
        size = self.data.size if isinstance(self.data, Span) else len(self.data)
        # A character of Latin-1 is one byte or two in UTF-8.
        longest = 2 if isinstance(self.data, Span) and self.data.is_text else 1
        if not self.nbytes <= size <= self.nbytes * longest:
            raise ValueError(f"it holds {size} bytes for an array of shape {self.shape} {self.dtype}")

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def read(self, path: Path) -> np.ndarray:
        """The numbers, which own their memory."""
        if isinstance(self.data, Span) and not self.data.is_text:
            numbers = read_array(path, self.data.start, self.dtype, math.prod(self.shape))
        else:
            numbers = np.frombuffer(self._bytes(path), self.dtype).copy()
        return np.asarray(widen(numbers).reshape(self.shape, order="F" if self.is_fortran else "C"), order="C")

    def _bytes(self, path):
        if isinstance(self.data, bytes):
            return self.data
        with reading(path, "Paddle file"):
            text = read_array(path, self.data.start, np.dtype("u1"), self.data.size).tobytes()
            data = text.decode("utf-8").encode("latin1")
            if len(data) != self.nbytes:
                raise ValueError(f"it holds {len(data)} bytes for an array of shape {self.shape} {self.dtype}")
            return data


class ArrayUnpickler(pickle._Unpickler):
    """Loads one pickle of Paddle's. Python's own unpickler, since the one in C reads whatever it meets."""

    def __init__(self, file: BinaryIO):
        super().__init__(file, encoding="latin1")
        self._file = file
        self._end = os.fstat(file.fileno()).st_size

    def find_class(self, module: str, name: str) -> Any:
        # Bound methods and builtin types, because pickle could overwrite attributes of plain functions and classes.
        full_name = f"{module}.{name}"
        match re.sub(r"^numpy\._core\.", "numpy.core.", full_name):
            case "collections.OrderedDict":
                return OrderedDict
            case "builtins.tuple" | "__builtin__.tuple":
                return tuple
            case "numpy.core.multiarray._reconstruct":
                return self._reconstruct
            case "numpy.dtype":
                return self._dtype
            case "_codecs.encode":
                return self._encode
            case "__builtin__.bytes":  # so protocol 2 writes an array without elements
                return self._no_bytes
        return Named(full_name, (Dropped,), {})

    def _reconstruct(self, *_):
        return StoredArray()

    def _dtype(self, code, *_):
        return StoredType(code)

    def _encode(self, text, encoding):
        return text if isinstance(text, Span) else text.encode("latin1")

    def _no_bytes(self):
        return b""

    def _payload(self, width: int, is_text: bool) -> None:
        size = int.from_bytes(self.read(width), "little")
        if size < SMALL or self._unframer.current_frame:
            data = self.read(size)
            return self.append(data.decode("utf-8") if is_text else data)
        start = self._file.tell()
        if start + size > self._end:
            raise ValueError("it is truncated")
        self._file.seek(start + size)
        self.append(Span(start, size, is_text))

    dispatch = pickle._Unpickler.dispatch | {
        pickle.BINBYTES[0]: lambda self: self._payload(4, is_text=False),
        pickle.BINBYTES8[0]: lambda self: self._payload(8, is_text=False),
        pickle.BINSTRING[0]: lambda self: self._payload(4, is_text=False),  # as Python 2 wrote it
        pickle.BINUNICODE[0]: lambda self: self._payload(4, is_text=True),
        pickle.BINUNICODE8[0]: lambda self: self._payload(8, is_text=True),
    }
    del dispatch[pickle.BYTEARRAY8[0]]  # would allocate what it announces


class PaddleFile(WeightReader):
    """The arrays in a `.pdparams` file, read without Paddle.

    Args:
        path: the file.

    Raises:
        CheckpointError: the file is truncated or damaged, holds no arrays or arrays of Python objects, or asks to call
            a function.

    Example:

    ```python
    weights = PaddleFile("ernie-tiny/model_state.pdparams")
    weights["ernie.embeddings.word_embeddings.weight"].shape  # (50006, 1024)
    ```
    """

    kind = "paddle"

    def __init__(self, path: str | os.PathLike):
        path = Path(path)
        with reading(path, "Paddle file"), open(path, "rb") as file:
            self._arrays = find_arrays(ArrayUnpickler(file).load())
        super().__init__(path, {name: shape for name, (shape, _) in self._arrays.items()})

    def __getitem__(self, name: str) -> np.ndarray:
        shape, pieces = self._arrays[name]
        if len(pieces) == 1:
            return pieces[0].read(self.path).reshape(shape)
        return np.concatenate([piece.read(self.path) for piece in pieces]).reshape(shape)


def find_arrays(tree: Any) -> dict[str, tuple[tuple[int, ...], list[StoredArray]]]:
    """Shape and pieces of every array. A parameter may stand as (its name in the graph, array)."""
    if not isinstance(tree, dict):
        raise ValueError(f"it holds a pickled {type(tree).__name__}; save the state_dict() instead")
    found = {name: value[1] if isinstance(value, tuple) and len(value) == 2 else value for name, value in tree.items()}
    # An array that was announced and never filled has no shape.
    pieces = {name: value for name, value in found.items() if isinstance(value, StoredArray) and vars(value)}
    whole = {name: (array.shape, [array]) for name, array in pieces.items() if isinstance(name, str)}
    for name, cut in tree.get(CUT, {}).items():
        whole[name] = (tuple(cut["OriginShape"]), [whole.pop(piece)[1][0] for piece in cut["slices"]])
        if math.prod(whole[name][0]) != sum(math.prod(piece.shape) for piece in whole[name][1]):
            raise ValueError(f"the pieces of {name} do not make up its shape {whole[name][0]}")
    if not whole:
        keys = ", ".join(name for name in tree if isinstance(name, str)) or "(none)"
        raise ValueError(f"it holds no arrays under its keys {keys}")
    return whole
