if __name__ != "garden.presets.formats":
    raise ImportError(f"import garden.presets.formats, not {__name__}: a second copy would not be the one presets uses")

from .keras_h5 import H5Weights
from .numpy_shards import NumpyShards
from .opening import open_weights
from .paddle_file import PaddleFile
from .reader import WeightReader
from .safetensors import SafetensorsFile, write_safetensors
from .sharded import ShardedTensors
from .tensorflow1 import TensorFlow1Checkpoint
from .torch_file import TorchFile
from .word_pickle import read_words

__all__ = [
    "H5Weights",
    "NumpyShards",
    "PaddleFile",
    "SafetensorsFile",
    "ShardedTensors",
    "TensorFlow1Checkpoint",
    "TorchFile",
    "WeightReader",
    "open_weights",
    "read_words",
    "write_safetensors",
]
