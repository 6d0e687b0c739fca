"""Files as `paddle.save` writes them: pickles of numpy arrays, read without running what they name."""

import math
import os
import pickle
import tracemalloc
from collections import OrderedDict

import numpy as np
import pytest

from garden.presets import CheckpointError
from garden.presets.formats import PaddleFile, open_weights

# What numpy 1 called `numpy._core`.
RENAMED = (b"numpy._core.multiarray", b"numpy.core.multiarray")


def save(tree, path, protocol=2):
    path.write_bytes(pickle.dumps(tree, protocol))
    return path


def old_names(content):
    """The same pickle as numpy 1 wrote it; in protocol 4 a name has its length before it."""
    new, old = RENAMED
    for prefix in (b"\x8c", b"c", b"X"):
        width = {b"\x8c": 1, b"c": 0, b"X": 4}[prefix]
        counts = [len(name).to_bytes(width, "little") if width else b"" for name in RENAMED]
        content = content.replace(prefix + counts[0] + new, prefix + counts[1] + old)
    return content


def arrays():
    """Every type, small and large, in both orders, and views."""
    numbers = np.arange(3000, dtype="float32").reshape(50, 60) / 7
    types = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u4", "u8", "b1", ">f4"]
    return {f"type {code}": (numbers * 7).astype(code) for code in types} | {
        "large": numbers,
        "fortran": np.asfortranarray(numbers),
        "view": numbers[3:40:2, 5:9],
        "column": numbers[:, 3],
        "scalar": np.array(2.5, "float32"),
        "empty": numbers[:0],
        "again": numbers,
    }


def cut(tree, largest):
    """Paddle's way with arrays of more than `largest` elements, which it takes at 1 GiB under protocol 2 and 3."""
    made, info = {}, {}
    for name, array in tree.items():
        if array.size <= largest:
            made[name] = array
            continue
        pieces = math.ceil(array.size / largest)
        info[name] = {"OriginShape": array.shape, "slices": [f"{name}@@.{i}" for i in range(pieces)]}
        for i, piece in enumerate(info[name]["slices"]):
            made[piece] = array.flatten()[i * largest : (i + 1) * largest]
    return made | {"UnpackBigParamInfor@@": info}


def assert_equal(reader, expected):
    assert list(reader) == list(expected)
    for name, array in expected.items():
        assert reader.shape(name) == reader[name].shape == array.shape and reader[name].dtype == array.dtype
        np.testing.assert_array_equal(reader[name], array, err_msg=name)
        assert reader[name].flags.c_contiguous and reader[name].flags.owndata | (reader[name].base is not None)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_reads_what_paddle_wrote(tmp_path, protocol):
    names = {name: f"linear_{i}.w_0" for i, name in enumerate(arrays())}
    path = save(arrays() | {"StructuredToParameterName@@": names}, tmp_path / "model_state.pdparams", protocol)
    assert_equal(PaddleFile(path), arrays())
    assert open_weights(tmp_path).kind == open_weights(path).kind == "paddle"
    path.write_bytes(old_names(path.read_bytes()))
    assert b"numpy.core" in path.read_bytes() and b"numpy._core" not in path.read_bytes()
    assert_equal(PaddleFile(path), arrays())


@pytest.mark.parametrize("protocol", [2, 4])
def test_parameters_with_their_names_in_the_graph_and_other_content(tmp_path, protocol):
    tree = OrderedDict((name, (f"linear_{i}.w_0", array)) for i, (name, array) in enumerate(arrays().items()))
    extra = {"step": 3, "rate": np.float64(0.1), "list": [np.ones(2)], 7: np.ones(2), "nested": {"a": np.ones(2)}}
    assert_equal(PaddleFile(save(tree | extra, tmp_path / "a.pdparams", protocol)), arrays())


def test_large_arrays_come_back_in_one_piece(tmp_path):
    tree = {"before": np.ones(2, "float32"), "table": np.arange(700, dtype="float32").reshape(7, 100)}
    made = cut(tree, largest=300)
    assert {"table@@.0", "table@@.1", "table@@.2"} <= made.keys() and "table" not in made
    assert_equal(PaddleFile(save(made, tmp_path / "a.pdparams")), tree)
    made["table@@.2"] = made["table@@.2"][:-1]
    with pytest.raises(CheckpointError, match=r"the pieces of table do not make up its shape \(7, 100\)"):
        PaddleFile(save(made, tmp_path / "a.pdparams"))
    del made["table@@.2"]
    with pytest.raises(CheckpointError, match="a.pdparams is not a readable Paddle file: 'table@@.2'"):
        PaddleFile(save(made, tmp_path / "a.pdparams"))


def test_unsigned_16_bits_are_bfloat16(tmp_path):
    bits = np.array([0x3F80, 0xC000, 0x4049], "uint16")
    reader = PaddleFile(save({"a": bits}, tmp_path / "a.pdparams"))
    np.testing.assert_array_equal(reader["a"], np.array([1, -2, 3.140625], "float32"))


def test_opening_reads_no_array(tmp_path):
    for protocol, most in ((2, 8), (4, 2.5)):  # MiB; as text, an array passes through a string
        tree = {f"layer.{i}": np.full(2**18, i, "float32") for i in range(8)}  # 1 MiB each
        path = save(tree, tmp_path / "a.pdparams", protocol)
        tracemalloc.start()
        reader = PaddleFile(path)
        opened = tracemalloc.get_traced_memory()[1]
        assert reader["layer.5"][-1] == 5
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert opened < 2**18 and peak < most * 2**20


class Hostile:
    """Unpickled, this runs a shell command that creates a file."""

    def __init__(self, marker):
        self.command = f"touch {marker}"

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_hostile_pickle_does_not_run(tmp_path, protocol):
    path = save({"a": np.ones(2), "b": Hostile(tmp_path / "marker")}, tmp_path / "a.pdparams", protocol)
    with pytest.raises(CheckpointError, match=f"is not a readable Paddle file: it asks to call {os.name}.system"):
        PaddleFile(path)
    assert not (tmp_path / "marker").exists()
    pickle.loads(path.read_bytes())
    assert (tmp_path / "marker").exists()  # the file is dangerous in earnest


@pytest.mark.parametrize(
    "program",
    [
        b"(S'touch marker'\nios\nsystem\n.",  # INST
        b"cos\nsystem\n(S'touch marker'\ntR.",  # REDUCE
        b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93\x8c\x02os\x8c\x06system\x86R.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x0d1/0 or marker\x85R.",
        b"\x80\x02cnumpy\ndtype\n(N}S'__defaults__'\nNsu\x86b.",  # attributes of what stands for a function
        b"\x80\x04\x96\xff\xff\xff\xff\xff\x00\x00\x00.",  # BYTEARRAY8, which would allocate 1 TiB
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\x00\x00\x00.",  # BINBYTES8
        b"\x80\x04\x95\xff\xff\xff\xff\xff\x00\x00\x00.",  # FRAME
        b"cnumpy.core.multiarray\n_reconstruct\n)Rcnumpy\ndtype\n(S'f4'\ntR\x86.",
        b"(dS'a'\ncnumpy.core.multiarray\n_reconstruct\n)Rs.",  # an array that is never filled
    ],
)
def test_hostile_opcodes(tmp_path, program, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pdparams").write_bytes(program)
    with pytest.raises(CheckpointError, match="a.pdparams is not a readable Paddle file: "):
        PaddleFile("a.pdparams")
    assert os.listdir(tmp_path) == ["a.pdparams"]


def test_what_holds_no_usable_arrays(tmp_path):
    for tree, message in [
        ({"a": 1, "b": {"c": 2}}, "it holds no arrays under its keys a, b"),
        ([np.ones(2)], "it holds a pickled list; save the state_dict"),
        ({}, r"it holds no arrays under its keys \(none\)"),
        ({"a": np.array([{}, None])}, "it holds an array of Python objects, garden reads u2, f2"),
        ({"a": np.ones(2, "complex64")}, "it holds an array of type c8, garden reads"),
        ({"a": np.array(["text"])}, "it holds an array of type U4"),
    ]:
        with pytest.raises(CheckpointError, match=f"a.pdparams is not a readable Paddle file: {message}"):
            PaddleFile(save(tree, tmp_path / "a.pdparams"))


@pytest.mark.parametrize("protocol", [2, 4])
def test_truncated_and_damaged_at_every_byte(tmp_path, protocol):
    """Whatever a flipped byte means, it is read as other numbers or reported: never another error, never a crash."""
    tree = {"a": np.arange(300, dtype="float32"), "b": np.ones((2, 3), "float32")}
    content = save(tree, tmp_path / "a.pdparams", protocol).read_bytes()
    for length in [*range(200), *range(200, len(content), 7), len(content) - 1]:
        (tmp_path / "cut.pdparams").write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="cut.pdparams is not a readable Paddle file: "):
            PaddleFile(tmp_path / "cut.pdparams")
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        (tmp_path / "damaged.pdparams").write_bytes(damaged)
        try:
            assert sum(array.size for array in PaddleFile(tmp_path / "damaged.pdparams").values()) <= 306
        except CheckpointError as error:
            assert "damaged.pdparams" in str(error)
