"""Recognises in which format a checkpoint is, from the names of its files."""

import os
from pathlib import Path

from ..errors import CheckpointError
from .numpy_shards import SHAPES, NumpyShards
from .paddle_file import PaddleFile
from .reader import WeightReader
from .safetensors import SafetensorsFile
from .sharded import ShardedTensors
from .tensorflow1 import TensorFlow1Checkpoint, is_v1_checkpoint, with_suffix
from .torch_file import TorchFile, is_torch_file

# In the order of preference: one safe file, its shards, then pickles.
HUGGING_FACE = {
    "model.safetensors": SafetensorsFile,
    "model.safetensors.index.json": ShardedTensors,
    "pytorch_model.bin": TorchFile,
    "pytorch_model.bin.index.json": ShardedTensors,
}
# fairseq's and Paddle's files have any name; of several, the usual one is meant.
OTHERS = {"*.pt": ("model.pt", TorchFile), "*.pdparams": ("model_state.pdparams", PaddleFile)}


def open_weights(path: str | os.PathLike) -> WeightReader:
    """The tensors of a checkpoint in any foreign format: Hugging Face, fairseq, Paddle, TensorFlow 1 or OpenAI's.

    Args:
        path: a folder, which is searched for `model.safetensors`, its shards, `pytorch_model.bin`, its shards, a
            fairseq `*.pt`, Paddle's `*.pdparams`, a TensorFlow `.index` and OpenAI's `params_shapes.json`, in that
            order; or one such file, or a TensorFlow prefix.

    Returns:
        A `WeightReader` that has read only names and shapes; its attribute `kind` tells which format it found.

    Raises:
        CheckpointError: nothing fits (the message lists what is there), or the file is damaged.

    Example:

    >>> import numpy as np, tempfile
    >>> from garden.presets.formats import write_safetensors
    >>> folder = tempfile.mkdtemp()
    >>> write_safetensors(f"{folder}/model.safetensors", {"scale": np.ones(3, "float32")})
    >>> weights = open_weights(folder)
    >>> weights.kind, weights.shape("scale")
    ('safetensors', (3,))
    """
    path = Path(path)
    return open_folder(path) if path.is_dir() else open_file(path)


def open_folder(folder: Path) -> WeightReader:
    for name, reader in HUGGING_FACE.items():
        if (folder / name).is_file():
            return reader(folder / name)
    for pattern, (usual, reader) in OTHERS.items():
        checkpoints = sorted(folder.glob(pattern))
        if len(checkpoints) > 1 and folder / usual in checkpoints:
            checkpoints = [folder / usual]
        if len(checkpoints) > 1:
            names = ", ".join(file.name for file in checkpoints)
            raise CheckpointError(f"{folder} holds several checkpoints, {names}; give the path of one.")
        if checkpoints:
            return reader(checkpoints[0])
    if any(folder.glob("*.index")):
        return TensorFlow1Checkpoint(folder)
    if (folder / SHAPES).is_file():
        return NumpyShards(folder)
    held = ", ".join(sorted(file.name for file in folder.iterdir())) or "nothing"
    wanted = ", ".join([*HUGGING_FACE, *OTHERS, "*.index", SHAPES])
    raise CheckpointError(f"{folder} holds no weights that garden reads: wanted {wanted}, found {held}.")


def open_file(path: Path) -> WeightReader:
    if path.suffix == ".index" or with_suffix(path, ".index").is_file():
        return TensorFlow1Checkpoint(path)
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist, neither as a file or folder nor as a TensorFlow prefix.")
    if path.name.endswith(".index.json"):
        return ShardedTensors(path)
    if path.suffix == ".safetensors":
        return SafetensorsFile(path)
    if path.suffix == ".pdparams":
        return PaddleFile(path)
    if path.suffix in (".bin", ".pt") or is_torch_file(path):
        return TorchFile(path)
    if is_v1_checkpoint(path):
        return TensorFlow1Checkpoint(path)  # which says what to do about it
    known = "safetensors, torch, Paddle's .pdparams or TensorFlow's .index"
    raise CheckpointError(f"{path} is no weight file that garden reads: {known}.")
