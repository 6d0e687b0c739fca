"""safetensors files, compared with the safetensors library."""

import json
import os
import resource
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
import safetensors.torch
import torch
from safetensors import safe_open

from garden.presets import CheckpointError
from garden.presets.formats import SafetensorsFile, write_safetensors

TENSORS = {
    "float32": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 7,
    "float64": torch.arange(3, dtype=torch.float64) / 7,
    "float16": torch.tensor([65504, 1e-7, -0.1], dtype=torch.float16),
    "bfloat16": torch.tensor([[3.14159, -1e38], [float("inf"), 1e-40]], dtype=torch.bfloat16),
    "int64": torch.tensor([2**62, -1]),
    "uint8": torch.arange(5, dtype=torch.uint8),
    "bool": torch.tensor([True, False, True]),
    "scalar": torch.tensor(0.5),
    "empty": torch.zeros(0, 4),
}


def as_read(tensor):
    """What a reader should return: bfloat16 as float32, the rest as it is."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def assert_same(reader, tensors):
    assert set(reader) == set(tensors) and len(reader) == len(tensors)
    for name, tensor in tensors.items():
        expected, array = as_read(tensor), reader[name]
        assert array.dtype == expected.dtype and array.shape == expected.shape == reader.shape(name), name
        np.testing.assert_array_equal(array, expected, err_msg=name)


def test_reads_what_safetensors_wrote(tmp_path):
    path = tmp_path / "model.safetensors"
    safetensors.torch.save_file(TENSORS, path, metadata={"format": "pt"})
    reader = SafetensorsFile(path)
    assert_same(reader, TENSORS)
    assert "float32" in reader and "__metadata__" not in reader
    with pytest.raises(KeyError):
        reader["other"]


def test_safetensors_reads_what_we_wrote(tmp_path):
    path = tmp_path / "model.safetensors"
    matrix = np.arange(12, dtype="float32").reshape(3, 4)
    arrays = {name: tensor.numpy() for name, tensor in TENSORS.items() if name != "bfloat16"}
    arrays |= {"bfloat16": as_read(TENSORS["bfloat16"]).astype(ml_dtypes.bfloat16)}
    write_safetensors(path, arrays | {"transposed": matrix.T, "big-endian": matrix.astype(">f4"), "名": matrix})
    loaded = safetensors.torch.load_file(path)
    assert set(loaded) == {*arrays, "transposed", "big-endian", "名"}
    for name, tensor in TENSORS.items():
        assert loaded[name].dtype == tensor.dtype and torch.equal(loaded[name], tensor), name
    np.testing.assert_array_equal(loaded["transposed"].numpy(), matrix.T)
    np.testing.assert_array_equal(loaded["big-endian"].numpy(), matrix)
    with safe_open(path, "np") as file:
        assert file.metadata() == {"format": "pt"}
    assert int.from_bytes(path.read_bytes()[:8], "little") % 8 == 0


def test_written_from_a_reader_one_tensor_at_a_time(tmp_path):
    source = {f"layer.{i}": np.full(2**18, i, "float32") for i in range(8)}  # 1 MiB each
    write_safetensors(tmp_path / "a.safetensors", source)
    tracemalloc.start()
    write_safetensors(tmp_path / "b.safetensors", SafetensorsFile(tmp_path / "a.safetensors"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert peak < 1.5 * 2**20


def test_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"old": np.zeros(3, "float32")})
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, limits[1]))  # like a full disk: the write fails with OSError
    try:
        with pytest.raises(OSError):
            write_safetensors(path, {"new": np.zeros(2**16, "float32")})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(ValueError, match="'text' has type str"):
        write_safetensors(path, {"text": np.array(["a"])})
    assert os.listdir(tmp_path) == ["model.safetensors"] and path.read_bytes() == before


def tensor_entry(begin=0, end=8, dtype="F32", shape=(2,)):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors_bytes(header, data=bytes(8), length=None):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(header) if length is None else length).to_bytes(8, "little") + header + data


MALFORMED = {
    "empty file": b"",
    "shorter than a length": b"1234567",
    "header longer than file": safetensors_bytes({"a": tensor_entry()}, length=1000),
    "header over 100 MB": safetensors_bytes({"a": tensor_entry()}, length=100_000_001),
    "header of 2**64 - 1": safetensors_bytes({"a": tensor_entry()}, length=2**64 - 1),
    "bad JSON": safetensors_bytes(b'{"a": '),
    "JSON list": safetensors_bytes(b"[1]", b""),
    "no UTF-8": safetensors_bytes(b"\xff\xfe"),
    "unknown type": safetensors_bytes({"a": tensor_entry(dtype="F33")}),
    "type without a numpy one": safetensors_bytes({"a": tensor_entry(dtype="F8_E4M3", shape=[8])}),
    "shape does not fit size": safetensors_bytes({"a": tensor_entry(shape=[3])}),
    "negative shape": safetensors_bytes({"a": tensor_entry(shape=[-2])}),
    "shape overflows": safetensors_bytes({"a": tensor_entry(shape=[2**62, 4])}),
    "offsets reversed": safetensors_bytes({"a": tensor_entry(8, 0)}),
    "gap": safetensors_bytes({"a": tensor_entry(), "b": tensor_entry(12, 20)}, bytes(20)),
    "overlap": safetensors_bytes({"a": tensor_entry(), "b": tensor_entry(4, 12)}, bytes(12)),
    "trailing bytes": safetensors_bytes({"a": tensor_entry()}, bytes(9)),
    "truncated data": safetensors_bytes({"a": tensor_entry()}, bytes(7)),
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_safetensors(tmp_path, content):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="bad.safetensors is not a readable safetensors file: "):
        SafetensorsFile(path)


def test_file_that_shrinks_after_opening(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"a": np.ones(4, "float32")})
    reader = SafetensorsFile(path)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(CheckpointError, match="model.safetensors is truncated"):
        reader["a"]
