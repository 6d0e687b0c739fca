"""Files of torch.save in both generations, compared with torch.load."""

import argparse
import tracemalloc
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
import torch

from garden.presets import CheckpointError
from garden.presets.formats import TorchFile, open_weights

both_generations = pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "legacy"])


def save(tree, path, is_zip):
    torch.save(tree, path, _use_new_zipfile_serialization=is_zip)
    return path


def views():
    """Every type, and views that share storages, start late, are transposed, strided, repeated or empty."""
    matrix = torch.arange(24, dtype=torch.float32).reshape(4, 6) / 7
    types = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
             torch.uint8, torch.bool]  # fmt: skip
    return {str(dtype): (matrix * 7).to(dtype) for dtype in types} | {
        "matrix": matrix,
        "tied": matrix,
        "row": matrix[2],
        "column": matrix[:, 3],
        "transposed": matrix.T,
        "every second": matrix[1::2, ::2],
        "repeated": matrix[:1].expand(3, 6),
        "bfloat16 view": matrix.bfloat16()[1:, 2:4].T,
        "scalar": matrix[3, 4],
        "empty": matrix[:0],
        "parameter": torch.nn.Parameter(matrix[:2, :2]),
        "frozen": torch.nn.Parameter(matrix[:2, :2].clone(), requires_grad=False),
    }


def assert_like_torch(reader, expected):
    assert list(reader) == list(expected)
    for name, tensor in expected.items():
        array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach().numpy()
        assert reader[name].dtype == array.dtype and reader[name].shape == array.shape == reader.shape(name), name
        np.testing.assert_array_equal(reader[name], array, err_msg=name)
        assert reader[name].flags.c_contiguous


@both_generations
def test_reads_what_torch_wrote(tmp_path, is_zip):
    path = save(OrderedDict(views()), tmp_path / "pytorch_model.bin", is_zip)
    assert path.read_bytes()[:2] == (b"PK" if is_zip else b"\x80\x02")
    assert_like_torch(TorchFile(path), torch.load(path, weights_only=True))
    assert open_weights(tmp_path).kind == "torch"


@both_generations
def test_module_with_tied_weights(tmp_path, is_zip):
    module = torch.nn.Sequential(torch.nn.Embedding(7, 3), torch.nn.Linear(3, 7), torch.nn.BatchNorm1d(7))
    module[1].weight = module[0].weight
    path = save(module.state_dict(), tmp_path / "model.bin", is_zip)
    assert_like_torch(TorchFile(path), torch.load(path, weights_only=True))
    with pytest.raises(CheckpointError):  # a whole module is code, not weights
        TorchFile(save(module, tmp_path / "module.bin", is_zip))


class Settings(dict):
    """Like a Lightning AttributeDict."""


class Steps(list):
    pass


@both_generations
@pytest.mark.parametrize("key", ["model", "state_dict"])
def test_training_checkpoint(tmp_path, is_zip, key):
    extra = {
        "args": argparse.Namespace(arch="roberta_base", lr=[1e-4], device=torch.device("cpu")),
        "cfg": Settings(width=3),
        "steps": Steps([1, 2]),
        "counts": defaultdict(list, a=[1]),
        "best": np.float64(1.5),
        "rng": np.arange(3),
        "flags": {"a", "b"},
        "type": torch.bfloat16,
        "optimizer": {"momentum": torch.ones(3)},
        key: {"weight": torch.ones(2, 3), "version": 3, "name": "x"},
    }
    reader = TorchFile(save(extra, tmp_path / "model.pt", is_zip))
    assert_like_torch(reader, {"weight": torch.ones(2, 3)})


@both_generations
def test_no_tensors(tmp_path, is_zip):
    for tree, message in [
        ({"a": 1, "b": {"c": 2}}, "holds no tensors under its keys a, b"),
        ([torch.ones(2)], "holds a pickled list; save its state_dict"),
        ({"a": torch.ones(2).to_sparse()}, "asks to call torch.serialization._get_layout"),
        ({"a": torch.ones(2, dtype=torch.complex64)}, "holds a torch.ComplexFloatStorage, garden reads torch.Double"),
    ]:
        with pytest.raises(CheckpointError, match=f"x.pt is not a readable torch file: it {message}"):
            TorchFile(save(tree, tmp_path / "x.pt", is_zip))


@both_generations
def test_opening_reads_no_tensor(tmp_path, is_zip):
    path = save({f"layer.{i}": torch.full((2**18,), i) for i in range(8)}, tmp_path / "model.bin", is_zip)  # 2 MiB each
    tracemalloc.start()
    reader = TorchFile(path)
    opened = tracemalloc.get_traced_memory()[1]
    assert reader["layer.5"][-1] == 5
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert opened < 2**18 and peak < 2.5 * 2**20
