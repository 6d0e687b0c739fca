"""Weight names as data: one function loads any published format, its inverse saves it.

A row pairs a layer of ours with that layer's name in a foreign format; a letter in braces, such as `{i}`, stands for a
number, that of the block. What a format calls the variables of a layer is the same for all its layers, so it is said
once, in a `Dialect`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import keras
import numpy as np
from keras import ops

from .errors import CheckpointError

Rows = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Dialect:
    """How a format spells the variables of a layer.

    Attributes:
        suffixes: our variable's name -> what the format appends to the layer's name, the spelling that is written
            first.
        transposed: whether the array behind a variable of ours, under a foreign name, is stored (out, in).
        reshaped: whether arrays may have other axes than ours, as long as the elements are in the same order.
    """

    suffixes: Mapping[str, tuple[str, ...]]
    transposed: Callable[[str, str], bool] = lambda ours, foreign: False
    reshaped: bool = False


HUGGING_FACE = Dialect(
    {
        "kernel": (".weight",),
        "bias": (".bias",),
        "gamma": (".weight", ".gamma"),
        "beta": (".bias", ".beta"),
        "scale": (".weight",),
        "embeddings": (".weight",),
    },
    transposed=lambda ours, foreign: ours.endswith(("kernel", "reverse_embeddings")),
)
TENSORFLOW_1 = Dialect(
    {"kernel": ("/kernel",), "bias": ("/bias",), "gamma": ("/gamma",), "beta": ("/beta",), "embeddings": ("",)}
    | {"scale": ("/scale",)},
    transposed=lambda ours, foreign: foreign.endswith("output_weights"),
)
PADDLE = Dialect(
    {"kernel": (".weight",), "bias": (".bias",), "gamma": (".weight",), "beta": (".bias",), "embeddings": (".weight",)},
)
KERAS_HUB = Dialect(
    {name: (f"/vars/{place}",) for name, place in (("kernel", 0), ("bias", 1), ("gamma", 0), ("beta", 1))}
    | {"embeddings": ("/vars/0",)},
    reshaped=True,
)


@dataclass
class Report:
    """What became of every tensor, ours and theirs.

    Attributes:
        loaded: our path -> the foreign name that filled it.
        ignored: foreign name -> why it was left.
        fresh: our paths that the checkpoint does not have and that keep their initial values.
    """

    loaded: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    fresh: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"loaded   {len(self.loaded)} tensors"]
        lines += [f"ignored  {name}: {reason}" for name, reason in sorted(self.ignored.items())]
        lines += [f"fresh    {path}: not in the checkpoint" for path in self.fresh]
        return "\n".join(lines)


def foreign_names(path: str, rows: Rows, dialect: Dialect) -> list[str]:
    """The names that a variable of ours may have in a format, the one to write first; none when no row covers it.

    A layer may have several rows: its variables then have one of several names.

    >>> from garden.presets.weight_names import HUGGING_FACE, foreign_names
    >>> foreign_names("block_3/norm/gamma", [("block_{i}/norm", "layer.{i}.LayerNorm")], HUGGING_FACE)
    ['layer.3.LayerNorm.weight', 'layer.3.LayerNorm.gamma']
    """
    layer, variable = path.rsplit("/", 1)
    names = []
    for ours, theirs in rows:
        if match := _pattern(ours).fullmatch(path):  # a row for one variable names the foreign tensor whole
            names.append(_numbered(theirs, match))
        elif match := _pattern(ours).fullmatch(layer):
            names += [_numbered(theirs, match) + suffix for suffix in dialect.suffixes.get(variable, ())]
    return names


def load(variables, tensors: Mapping, rows: Rows, dialect: Dialect) -> Report:
    """Fills Keras variables from a checkpoint, one tensor in memory at a time.

    Args:
        variables: the variables to fill.
        tensors: foreign name -> array, read at each access.
        rows: (layer or variable of ours, foreign name).
        dialect: how the format spells variables.

    Returns:
        The report; its `ignored` is left to the caller, who knows what may be there.

    Raises:
        CheckpointError: a shape does not fit, or a value overflows float16.
    """
    rows, report = list(rows), Report()
    for variable in variables:
        found = [name for name in foreign_names(variable.path, rows, dialect) if name in tensors]
        if found:
            variable.assign(_tensor(_to_ours(tensors[found[0]], found[0], variable, dialect), variable.dtype))
            report.loaded[variable.path] = found[0]
        else:
            report.fresh.append(variable.path)
    return report


def export(variables, rows: Rows, dialect: Dialect) -> Iterator[tuple[str, np.ndarray]]:
    """The inverse of `load`: (foreign name, array) of every variable.

    Raises:
        CheckpointError: a variable that no row covers, so that the export would be incomplete.
    """
    rows = list(rows)
    for variable in variables:
        names = foreign_names(variable.path, rows, dialect)
        if not names:
            raise CheckpointError(f"{variable.path} has no name in that format, so the model cannot be exported to it.")
        array = np.asarray(variable.numpy(), "float32")
        yield names[0], np.ascontiguousarray(array.T) if dialect.transposed(variable.path, names[0]) else array


def _to_ours(array, name, variable, dialect):
    array = array.T if dialect.transposed(variable.path, name) else array
    if dialect.reshaped and array.size == np.prod(variable.shape):
        array = array.reshape(variable.shape)
    if array.shape != tuple(variable.shape):
        raise CheckpointError(
            f"{name} has shape {array.shape}, but {variable.path} is {tuple(variable.shape)}: "
            "the configuration and the weights do not belong together."
        )
    if variable.dtype == "float16" and np.abs(array).max(initial=0) > np.finfo("float16").max:
        raise CheckpointError(
            f"{name} holds values beyond float16's 65504: load it with dtype='float32' or 'bfloat16'."
        )
    return array


def _tensor(array, dtype):
    """An array as the backend's tensor. TensorFlow copies it twice on the way, and takes it over through DLPack."""
    takeable = array.flags.c_contiguous and array.ctypes.data % 64 == 0 and array.dtype == dtype
    if keras.backend.backend() == "tensorflow" and takeable:
        import tensorflow as tf

        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    return ops.convert_to_tensor(array, dtype)


def _pattern(ours):
    return re.compile(re.sub(r"\\\{(\w)\\\}", r"(?P<\1>\\d+)", re.escape(ours)))


def _numbered(theirs, match):
    for letter, number in match.groupdict().items():
        # Keras numbers the layers of one class "", "_1", "_2", ... in its weight files.
        theirs = theirs.replace(f"{{_{letter}}}", "" if number == "0" else f"_{number}")
        theirs = theirs.replace(f"{{00{letter}}}", f"{int(number):03}")  # mesh TensorFlow
        theirs = theirs.replace(f"{{{letter}}}", number)
    return theirs
