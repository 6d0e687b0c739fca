"""OpenAI's files of the first GPT: all numbers in a row, cut into `params_0.npy` and on, and their shapes."""

import json
import re
from pathlib import Path

import numpy as np

from ..errors import CheckpointError
from .reader import WeightReader, reading

SHAPES = "params_shapes.json"


class NumpyShards(WeightReader):
    """The arrays in the order of `params_shapes.json`; they have no names, so the first is `"0"`.

    Args:
        folder: holds the shapes and the shards.

    Raises:
        CheckpointError: a file is damaged, a shard is missing, or the shards hold another number of values.

    >>> import json, numpy as np, tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "params_shapes.json").write_text("[[2], [1, 3]]")
    >>> np.save(folder / "params_0.npy", np.arange(4.0)); np.save(folder / "params_1.npy", np.arange(4.0, 5))
    >>> NumpyShards(folder)["1"].tolist()
    [[2.0, 3.0, 4.0]]
    """

    kind = "numpy"

    def __init__(self, folder: Path):
        with reading(folder / SHAPES, "list of shapes"):
            listed = [tuple(map(int, shape)) for shape in json.loads((folder / SHAPES).read_text("utf-8"))]
        super().__init__(folder / SHAPES, {str(i): shape for i, shape in enumerate(listed)})
        files = sorted(folder.glob("params_*.npy"), key=lambda file: int(re.sub(r"\D", "", file.stem) or 0))
        self._shards = [self._open(file) for file in files]
        self._ends = np.cumsum([shard.size for shard in self._shards])
        self._starts = dict(zip(self._shapes, np.cumsum([0, *(np.prod(shape) for shape in listed)]), strict=False))
        wanted, held = sum(int(np.prod(shape)) for shape in listed), sum(shard.size for shard in self._shards)
        if wanted != held:
            raise CheckpointError(
                f"{folder} is no whole checkpoint: its {len(files)} shards hold {held} numbers, its shapes {wanted}."
            )

    @staticmethod
    def _open(file):
        with reading(file, "numpy file"):
            return np.load(file, mmap_mode="r", allow_pickle=False).reshape(-1)

    def __getitem__(self, name):
        start, shape = int(self._starts[name]), self._shapes[name]
        stop, parts = start + int(np.prod(shape)), []
        for shard, end in zip(self._shards, self._ends, strict=True):
            begin = int(end) - shard.size
            parts.append(shard[max(start - begin, 0) : max(stop - begin, 0)])
        return np.concatenate(parts).reshape(shape)
