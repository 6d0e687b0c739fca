"""Sharded checkpoints, and the recognition of formats."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import tensorflow as tf
import torch

import garden.presets.formats
from garden.presets import CheckpointError
from garden.presets.formats import ShardedTensors, open_weights

TENSORS = {name: torch.full((2, 3), i / 7) for i, name in enumerate("abcde")}


def write_shards(folder, name, save):
    """Half of TENSORS in each of two shards, as save_pretrained cuts them."""
    stem, suffix = name.split(".")
    weight_map = {key: f"{stem}-0000{1 + i % 2}-of-00002.{suffix}" for i, key in enumerate(TENSORS)}
    for shard in set(weight_map.values()):
        save({key: TENSORS[key] for key in TENSORS if weight_map[key] == shard}, folder / shard)
    index = folder / f"{name}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return index, weight_map


@pytest.mark.parametrize(
    ("name", "save", "kind"),
    [("model.safetensors", safetensors.torch.save_file, "safetensors"), ("pytorch_model.bin", torch.save, "torch")],
)
def test_shards(tmp_path, name, save, kind):
    index, weight_map = write_shards(tmp_path, name, save)
    reader = ShardedTensors(index)
    assert list(reader) == list(TENSORS) and reader.kind == kind and reader.shape("a") == (2, 3)
    for key, tensor in TENSORS.items():
        np.testing.assert_array_equal(reader[key], tensor.numpy())
    assert open_weights(tmp_path).kind == kind
    index.write_text(json.dumps({"weight_map": weight_map | {"extra": weight_map["e"], "more": weight_map["e"]}}))
    with pytest.raises(CheckpointError, match=f"extra \\(in {weight_map['e']}\\), more \\(in"):
        ShardedTensors(index)
    (tmp_path / weight_map["e"]).unlink()
    with pytest.raises(CheckpointError, match=f"index.json names shards that are not beside it: {weight_map['e']}"):
        ShardedTensors(index)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": {}}', '{"weight_map": {"a": 1}}',
                                  '{"weight_map": {"a": "../x.bin"}}', '{"weight_map": {"a": "/x.bin"}}'])  # fmt: skip
def test_malformed_index_of_shards(tmp_path, text):
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(CheckpointError, match="index.json is not a readable index of shards: "):
        open_weights(tmp_path)


def test_formats_are_preferred_in_order(tmp_path):
    tensors = {"a": torch.ones(2)}
    tf.raw_ops.SaveV2(prefix=f"{tmp_path}/m.ckpt", tensor_names=["a"], shape_and_slices=[""], tensors=[tf.ones(2)])
    assert open_weights(tmp_path).kind == open_weights(tmp_path / "m.ckpt").kind == "tensorflow1"
    assert open_weights(tmp_path / "m.ckpt.index").path == tmp_path / "m.ckpt"
    torch.save({"model": tensors}, tmp_path / "best.pt")
    torch.save({"model": tensors}, tmp_path / "last.pt")
    with pytest.raises(CheckpointError, match="holds several checkpoints, best.pt, last.pt"):
        open_weights(tmp_path)
    for name, save in [
        ("model.pt", torch.save),
        ("pytorch_model.bin", torch.save),
        ("model.safetensors", safetensors.torch.save_file),
    ]:
        save(tensors, tmp_path / name)
        assert open_weights(tmp_path).path == open_weights(tmp_path / name).path == tmp_path / name
    (tmp_path / "model.pt").rename(tmp_path / "lightning.ckpt")
    assert open_weights(tmp_path / "lightning.ckpt").kind == "torch"


def test_nothing_to_open(tmp_path):
    with pytest.raises(CheckpointError, match=r"holds no weights that garden reads: wanted .*, found nothing\."):
        open_weights(tmp_path)
    (tmp_path / "tf_model.h5").write_bytes(b"HDF")
    with pytest.raises(CheckpointError, match=r"found tf_model.h5\."):
        open_weights(tmp_path)
    with pytest.raises(CheckpointError, match="tf_model.h5 is no weight file"):
        open_weights(tmp_path / "tf_model.h5")
    with pytest.raises(CheckpointError, match="bert_model.ckpt does not exist"):
        open_weights(tmp_path / "bert_model.ckpt")


def test_readers_import_no_framework():
    frameworks = {"keras", "keras_hub", "tensorflow", "torch", "jax", "transformers"}
    for source in Path(garden.presets.formats.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not {name.split(".")[0] for name in names} & frameworks, source.name
