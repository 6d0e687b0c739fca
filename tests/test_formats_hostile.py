"""Hostile, damaged and foreign files in the place of a torch file."""

import os
import pickle
import zipfile
from collections import OrderedDict

import pytest
import torch

from garden.presets import CheckpointError
from garden.presets.formats import TorchFile

both_generations = pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "legacy"])


def save(tree, path, is_zip):
    torch.save(tree, path, _use_new_zipfile_serialization=is_zip)
    return path


class Hostile:
    """Unpickled, this runs a shell command that creates a file."""

    def __init__(self, marker):
        self.command = f"touch {marker}"

    def __reduce__(self):
        return os.system, (self.command,)


@both_generations
def test_hostile_pickle_does_not_run(tmp_path, is_zip):
    marker = tmp_path / "marker"
    path = save({"model": {"a": torch.ones(2)}, "extra": Hostile(marker)}, tmp_path / "model.pt", is_zip)
    with pytest.raises(CheckpointError, match=f"model.pt is not a readable torch file: it asks to call {os.name}.sys"):
        TorchFile(path)
    assert not marker.exists()
    torch.load(path, weights_only=False)
    assert marker.exists()  # the file is dangerous in earnest


@pytest.mark.parametrize(
    "program",
    [
        b"(S'touch marker'\nios\nsystem\n.",  # INST
        b"(cos\nsystem\nS'touch marker'\no.",  # OBJ
        b"cos\nsystem\n(S'touch marker'\ntR.",  # REDUCE
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0ctouch marker\x85R.",  # STACK_GLOBAL
        b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93\x8c\x02os\x8c\x06system\x86R.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x0d1/0 or marker\x85R.",
        b"\x80\x02}r\xff\xff\xff\x7f.",  # LONG_BINPUT, which would allocate 32 GiB
        b"ctorch._utils\n_rebuild_tensor_v2\n(S'storage'\nI0\n(I2\nt(I1\nttR.",  # a storage that is none
    ],
)
def test_hostile_opcodes(tmp_path, program, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("model.pt", "w") as archive:
        archive.writestr("archive/data.pkl", program)
    with pytest.raises(CheckpointError, match="model.pt is not a readable torch file: its? "):
        TorchFile("model.pt")
    assert os.listdir() == ["model.pt"]


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (0, (3, 2), (2, 1)),
        (3, (2,), (1,)),
        (0, (2,), (4,)),
        (0, (2,), (-1,)),
        (-1, (2,), (1,)),
        (0, (-2,), (1,)),
        (0, (2,), ()),
    ],
)
def test_tensor_outside_its_storage_of_four(tmp_path, offset, shape, strides):
    with open(tmp_path / "data.pkl", "wb") as file:
        TensorPickler(file, (offset, shape, strides)).dump({"a": TensorPickler})
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.write(tmp_path / "data.pkl", "archive/data.pkl")
        archive.writestr("archive/data/0", bytes(16))
    with pytest.raises(CheckpointError, match="model.pt is not a readable torch file: it"):
        TorchFile(tmp_path / "model.pt")


class TensorPickler(pickle.Pickler):
    """Pickles itself as a tensor of any layout over a storage of four float32 numbers."""

    def __init__(self, file, layout):
        super().__init__(file, protocol=2)
        self.layout = layout

    def reducer_override(self, value):
        if value is TensorPickler:
            return torch._utils._rebuild_tensor_v2, (Ellipsis, *self.layout, False, OrderedDict())
        return NotImplemented

    def persistent_id(self, value):
        return ("storage", torch.FloatStorage, "0", "cpu", 4) if value is Ellipsis else None


def small_file(folder, is_zip):
    return save({"a": torch.arange(4.0), "b": torch.ones(2, 3).T}, folder / "small.bin", is_zip)


@both_generations
def test_truncated_at_every_byte(tmp_path, is_zip):
    content = small_file(tmp_path, is_zip).read_bytes()
    for length in range(len(content)):
        (tmp_path / "cut.bin").write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="cut.bin is not a readable torch file: "):
            TorchFile(tmp_path / "cut.bin")


@both_generations
def test_damaged_at_every_byte(tmp_path, is_zip):
    """Whatever a flipped byte means, it is read as other numbers or reported: never another error, never a crash."""
    content = small_file(tmp_path, is_zip).read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        (tmp_path / "damaged.bin").write_bytes(damaged)
        try:
            assert sum(array.size for array in TorchFile(tmp_path / "damaged.bin").values()) <= 10
        except CheckpointError as error:
            assert "damaged.bin" in str(error)


def test_compressed_or_foreign_zip(tmp_path):
    source = small_file(tmp_path, is_zip=True)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(tmp_path / "new.bin", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(CheckpointError, match="new.bin is not a readable torch file: its members are compressed"):
        TorchFile(tmp_path / "new.bin")
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
        archive.writestr("readme", "text")
    with pytest.raises(CheckpointError, match="holds one data.pkl, this one 0"):
        TorchFile(tmp_path / "text.zip")
