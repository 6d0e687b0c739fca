"""What every reader of a weight file shares: a lazy mapping from tensor names to numpy arrays."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import CheckpointError

_ALIGNMENT = 64
# numpy has no bfloat16. One named field of 16 bits has the right size and cannot be mistaken for uint16.
BFLOAT16 = np.dtype([("bfloat16", "<u2")])


class WeightReader(Mapping[str, np.ndarray]):
    """The tensors of a checkpoint by name. Indexing reads that one tensor from disk and keeps nothing.

    Attributes:
        path: the file, folder or TensorFlow prefix that is read.
        kind: `"safetensors"`, `"torch"`, `"tensorflow1"`, `"paddle"`, `"numpy"` or `"keras_hub"`.

    Arrays own their memory. bfloat16 tensors arrive as float32 (exactly), everything else in the type it was stored in.

    Example:

    ```python
    weights = open_weights("bert-base-uncased")
    for name in weights:
        print(name, weights.shape(name), weights[name].dtype)
    ```
    """

    kind: str

    def __init__(self, path: Path, shapes: dict[str, tuple[int, ...]]):
        self.path = path
        self._shapes = shapes

    @abstractmethod
    def __getitem__(self, name: str) -> np.ndarray:
        """The tensor `name`, read from disk. Raises KeyError, or CheckpointError when the data is damaged."""

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of tensor `name`, known without reading it. Raises KeyError when there is no such tensor."""
        return self._shapes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def __contains__(self, name: object) -> bool:
        return name in self._shapes  # Mapping's own test would read the tensor

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, {len(self)} tensors)"


def read_array(path: Path, start: int, dtype: np.dtype, count: int) -> np.ndarray:
    """`count` numbers of type `dtype` from byte `start` of the file, as a flat array. CheckpointError if it is shorter.

    Reads instead of mapping the file into memory, so that the pages of a whole checkpoint never become resident. The
    array starts at a multiple of 64 bytes, as TensorFlow wants of memory that it takes over without a copy.
    """
    size = count * dtype.itemsize
    buffer = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -buffer.ctypes.data % _ALIGNMENT
    array = buffer[begin : begin + size]
    with open(path, "rb") as file:
        file.seek(start)
        if file.readinto(array) != size:
            raise CheckpointError(f"{path} is truncated: it ends before byte {start + size}.")
    return array.view(dtype)


def widen(array: np.ndarray) -> np.ndarray:
    """bfloat16 as float32: the same number, since its 16 bits are the upper half of a float32. Others unchanged."""
    if array.dtype != BFLOAT16:
        return array
    bits = array["bfloat16"].astype("<u4")
    bits <<= 16
    return bits.view("<f4")


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turns whatever goes wrong while the structure of a file is parsed into one CheckpointError that names the file.

    The parsers inside raise ValueError with the reason only. Anything else they raise (a short buffer, a wrong pickle
    opcode, a name that is not UTF-8) also means that the file is not what it claims to be.
    """
    try:
        yield
    except Exception as error:
        raise CheckpointError(f"{path} is not a readable {kind}: {str(error) or type(error).__name__}.") from error
