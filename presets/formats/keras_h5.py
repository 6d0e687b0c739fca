"""Reads the weight files of KerasHub presets by name."""

from pathlib import Path

import h5py
import numpy as np

from ..errors import CheckpointError
from .reader import WeightReader


class H5Weights(WeightReader):
    """The tensors of a KerasHub preset folder: `model.weights.h5`, and `task.weights.h5` under the scope `task/`.

    Keras addresses a variable by the class and the creation order of its layer, as in
    `layers/transformer_encoder_1/_feedforward_layer_norm/vars/0`.

    Args:
        folder: the preset's folder.

    Raises:
        CheckpointError: there is no `model.weights.h5`, or a file is not HDF5.

    Example:

    ```python
    weights = H5Weights("bert_base_en")
    weights["layers/reversible_embedding/vars/0"].shape
    ```
    """

    kind = "keras_hub"

    def __init__(self, folder: Path):
        self._places = {}
        shapes = {}
        for file, scope in ((folder / "model.weights.h5", ""), (folder / "task.weights.h5", "task/")):
            if file.exists() or not scope:
                for name, shape in _datasets(file).items():
                    self._places[scope + name] = (file, name)
                    shapes[scope + name] = shape
        super().__init__(folder, shapes)

    def __getitem__(self, name: str) -> np.ndarray:
        file, place = self._places[name]
        with h5py.File(file) as store:
            return np.asarray(store[place])


def _datasets(file):
    shapes = {}

    def note(name, item):
        if isinstance(item, h5py.Dataset):
            shapes[name] = item.shape

    try:
        with h5py.File(file) as store:
            store.visititems(note)
    except OSError as error:
        raise CheckpointError(f"{file} is not a readable HDF5 weight file: {error}.") from None
    return shapes
