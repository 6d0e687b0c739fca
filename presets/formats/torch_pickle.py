"""The pickle inside a torch file, read without torch and without running anything that it names.

A pickle can name any importable function and call it. This unpickler imports nothing: the functions that rebuild
tensors become descriptions of tensors, and every other name becomes an empty class. Data of such a class (OmegaConf,
training arguments) is dropped, but for that of argparse.Namespace; a call of such a name is an error.
"""

import pickle
import pickletools
from collections import OrderedDict
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .reader import BFLOAT16

DTYPES = {
    "torch.DoubleStorage": np.dtype("<f8"),
    "torch.FloatStorage": np.dtype("<f4"),
    "torch.HalfStorage": np.dtype("<f2"),
    "torch.BFloat16Storage": BFLOAT16,
    "torch.LongStorage": np.dtype("<i8"),
    "torch.IntStorage": np.dtype("<i4"),
    "torch.ShortStorage": np.dtype("<i2"),
    "torch.CharStorage": np.dtype("i1"),
    "torch.ByteStorage": np.dtype("u1"),
    "torch.BoolStorage": np.dtype("?"),
}

# Called by pickle to rebuild plain data: the call is answered with an empty object.
PLAIN_DATA = {
    "__builtin__.set",
    "_codecs.encode",
    "builtins.set",
    "collections.Counter",
    "collections.defaultdict",
    "numpy._core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar",
    "numpy.dtype",
    "torch.Size",
    "torch.device",
}


class Storage(NamedTuple):
    """A run of `size` numbers of type `dtype`, which the container keeps under `key`."""

    key: str
    dtype: np.dtype
    size: int


class StoredTensor(NamedTuple):
    """A view of a storage: `offset` and `strides` count numbers, not bytes."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def span(self) -> int:
        """How many numbers lie between the first and the last of the tensor, both included."""
        return 0 if 0 in self.shape else 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))


class Named(type):
    """Metaclass of the empty classes that stand for the names in a pickle. pickle builds them, but cannot call them."""

    def __call__(cls, *args, **kwargs):
        if cls.__name__ not in PLAIN_DATA:
            raise ValueError(f"it asks to call {cls.__name__}, which is not a function that rebuilds tensors")
        return object.__new__(cls)


class Dropped:
    """An object of a class that is not imported: takes any state and items, and keeps none."""

    def __new__(cls, *args, **kwargs):
        return object.__new__(cls)

    def _drop(self, *args):
        pass

    __setstate__ = __setitem__ = append = extend = add = _drop


class Namespace(Dropped):
    """What stands for argparse.Namespace, in which fairseq keeps the sizes of a model."""

    def __setstate__(self, state):
        self.__dict__["settings"] = state


def check_memo(file: BinaryIO) -> None:
    """ValueError if the pickle ahead numbers its objects wildly: pickle allocates a table up to the highest number."""
    start = file.tell()
    for opcode, argument, position in pickletools.genops(file):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and argument > position - start:
            raise ValueError("its pickle numbers more objects than it can hold")
    file.seek(start)


class TensorUnpickler(pickle.Unpickler):
    """Loads one pickle of a torch file. `storages` then holds, by key, every storage that was referred to."""

    def __init__(self, file: BinaryIO):
        check_memo(file)
        super().__init__(file, encoding="utf-8")
        self.storages: dict[str, Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        full_name = f"{module}.{name}"
        # Bound methods and builtin types, because pickle could overwrite attributes of plain functions and classes.
        match full_name:
            case "collections.OrderedDict":
                return OrderedDict
            case "torch._utils._rebuild_tensor" | "torch._utils._rebuild_tensor_v2":
                return self._rebuild_tensor
            case "torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state":
                return self._rebuild_parameter
            case "argparse.Namespace":
                return Named(full_name, (Namespace,), {})
        return Named(full_name, (Dropped,), {})

    def persistent_load(self, identity: Any) -> Storage:
        kind, storage_type, key, _location, size, *view = identity
        if kind != "storage" or any(view) or not isinstance(key, str) or not isinstance(size, int):
            raise ValueError("it refers to something other than a storage, or to a view of one")
        dtype = DTYPES.get(storage_type.__name__)
        if dtype is None:
            raise ValueError(f"it holds a {storage_type.__name__}, garden reads {', '.join(DTYPES)}")
        storage = Storage(key, dtype, size)
        if self.storages.setdefault(key, storage) != storage:
            raise ValueError(f"it describes storage {key} in two ways")
        return storage

    def _rebuild_tensor(self, storage, offset, shape, strides, requires_grad=False, hooks=None, metadata=None):
        counts = all(isinstance(number, int) and number >= 0 for number in (offset, *shape, *strides))
        if metadata or not counts or len(shape) != len(strides) or not isinstance(storage, Storage):
            raise ValueError("it holds a tensor of an unknown layout")
        tensor = StoredTensor(storage, offset, tuple(shape), tuple(strides))
        if offset + tensor.span > storage.size:
            raise ValueError(f"its tensor of shape {shape} reaches beyond its {storage.size} numbers")
        return tensor

    def _rebuild_parameter(self, data, *gradient):
        return data


def find_settings(tree: Any) -> dict[str, Any]:
    """The plain values among fairseq's training arguments, `tree["args"]` or `tree["cfg"]["model"]`; maybe none."""
    trees = [tree, tree.get("cfg")] if isinstance(tree, dict) else []
    holders = [branch.get(key) for branch in trees if isinstance(branch, dict) for key in ("args", "model")]
    found = next((vars(holder).get("settings") for holder in holders if isinstance(holder, Namespace)), None)
    settings = found if isinstance(found, dict) else {}
    return {key: value for key, value in settings.items() if isinstance(value, (str, bool, int, float))}


def is_named_tensor(name: Any, value: Any) -> bool:
    return isinstance(name, str) and isinstance(value, StoredTensor)


def find_state_dict(tree: Any) -> dict[str, StoredTensor]:
    """The tensors of a state dict: `tree["model"]` (fairseq), `tree["state_dict"]`, or `tree` itself.

    Entries that are no tensors are ignored. ValueError if there is no tensor in any of the three.
    """
    if not isinstance(tree, dict):
        raise ValueError(f"it holds a pickled {type(tree).__name__}; save its state_dict() instead")
    for candidate in (tree.get("model"), tree.get("state_dict"), tree):
        if isinstance(candidate, dict):
            tensors = {name: value for name, value in candidate.items() if is_named_tensor(name, value)}
            if tensors:
                return tensors
    keys = ", ".join(name for name in tree if isinstance(name, str)) or "(none)"
    raise ValueError(f"it holds no tensors under its keys {keys}")
