"""TensorFlow checkpoints without TensorFlow, compared with TensorFlow's own writers and reader."""

import os
import tracemalloc

import google_crc32c
import numpy as np
import pytest
import tensorflow as tf

from garden.presets import CheckpointError
from garden.presets.formats import TensorFlow1Checkpoint

ARRAYS = {
    "bert/pooler/dense/kernel": np.arange(12, dtype="float32").reshape(3, 4) / 7,
    "bert/pooler/dense/bias": np.arange(4, dtype="float64") / 7,
    "global_step": np.array(2**40, "int64"),
    "scalar": np.array(0.5, "float32"),
    "half": np.array([65504, -0.1], "float16"),
    "int32": np.array([[1], [-2]], "int32"),
    "bool": np.array([True, False]),
    "empty": np.zeros((0, 3), "float32"),
    "brain": tf.constant([[3.14159, -1e38], [float("inf"), 1e-40]], tf.bfloat16),
}


def write(prefix, arrays, slices=""):
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(arrays),
        shape_and_slices=[slices] * len(arrays),
        tensors=[tf.constant(array) for array in arrays.values()],
    )
    return prefix


def assert_like_tensorflow(reader, prefix):
    reference = tf.train.load_checkpoint(str(prefix))
    shapes = reference.get_variable_to_shape_map()
    assert sorted(reader) == sorted(shapes)
    for name, shape in shapes.items():
        expected = reference.get_tensor(name)
        expected = expected.astype("float32") if expected.dtype == tf.bfloat16.as_numpy_dtype else expected
        array = reader[name]
        assert array.dtype == np.asarray(expected).dtype and array.shape == reader.shape(name) == tuple(shape), name
        np.testing.assert_array_equal(array, expected, err_msg=name)


def test_reads_what_tensorflow_wrote(tmp_path):
    prefix = write(tmp_path / "bert_model.ckpt", ARRAYS)
    for path in (prefix, tmp_path / "bert_model.ckpt.index", tmp_path):
        assert_like_tensorflow(TensorFlow1Checkpoint(path), prefix)
    assert TensorFlow1Checkpoint(prefix).kind == "tensorflow1"


def test_reads_what_a_version_1_saver_wrote(tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, value in [("model/wte", [[1.5, 2], [3, 4]]), ("model/h0/ln_1/g", [1.0, 2.0])]:
            tf.compat.v1.get_variable(name, initializer=tf.constant(value))
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, str(tmp_path / "model.ckpt"), global_step=7)
    assert_like_tensorflow(TensorFlow1Checkpoint(tmp_path), tmp_path / "model.ckpt-7")


def test_two_data_files(tmp_path):
    names = sorted(ARRAYS)
    first = write(tmp_path / "part0", {name: ARRAYS[name] for name in names[::2]})
    second = write(tmp_path / "part1", {name: ARRAYS[name] for name in names[1::2]})
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(first), str(second)], destination_prefix=str(tmp_path / "merged")
    )
    assert (tmp_path / "merged.data-00001-of-00002").exists()
    assert_like_tensorflow(TensorFlow1Checkpoint(tmp_path / "merged"), tmp_path / "merged")
    (tmp_path / "merged.data-00001-of-00002").unlink()
    with pytest.raises(CheckpointError, match=f"merged.data-00001-of-00002 is missing, it holds variable '{names[1]}'"):
        TensorFlow1Checkpoint(tmp_path / "merged")


def test_index_of_several_blocks(tmp_path):
    arrays = {f"layer_{i}/{'x' * 150}/kernel": np.float32(i) for i in range(3000)}
    prefix = write(tmp_path / "long", arrays)
    assert os.path.getsize(f"{prefix}.index") > 2 * 2**17
    reader = TensorFlow1Checkpoint(prefix)
    assert len(reader) == 3000 and all(reader.shape(name) == () for name in arrays)
    assert all(reader[name] == arrays[name] for name in list(arrays)[::100])


def test_folder_of_several_checkpoints(tmp_path):
    for step in (1, 20):
        write(tmp_path / f"model.ckpt-{step}", {"step": np.int32(step)})
    with pytest.raises(CheckpointError, match="found model.ckpt-1.index, model.ckpt-20.index"):
        TensorFlow1Checkpoint(tmp_path)
    for written in ("/gone/runs/model.ckpt-20", "C:\\\\runs\\\\model.ckpt-20", "model.ckpt-20"):
        (tmp_path / "checkpoint").write_text(
            f'model_checkpoint_path: "{written}"\nall_model_checkpoint_paths: "model.ckpt-1"\n'
        )
        assert TensorFlow1Checkpoint(tmp_path)["step"] == 20
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-3"\n')
    with pytest.raises(CheckpointError, match="found model.ckpt-1.index, model.ckpt-20.index"):
        TensorFlow1Checkpoint(tmp_path)


def test_slices_and_text_are_refused_when_read(tmp_path):
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "sliced"),
        tensor_names=["kernel", "kernel", "text", "bias"],
        shape_and_slices=["4 3 0,2:-", "4 3 2,2:-", "", ""],
        tensors=[tf.ones((2, 3)), tf.zeros((2, 3)), tf.constant("a"), tf.ones(2)],
    )
    reader = TensorFlow1Checkpoint(tmp_path / "sliced")
    assert sorted(reader) == ["bias", "kernel", "text"] and reader.shape("kernel") == (4, 3)
    np.testing.assert_array_equal(reader["bias"], [1, 1])
    with pytest.raises(CheckpointError, match="sliced holds 'kernel' cut into slices"):
        reader["kernel"]
    with pytest.raises(CheckpointError, match="sliced holds 'text' as type 7"):
        reader["text"]


def test_format_before_index_files(tmp_path):
    path = tmp_path / "old.ckpt"
    tf.raw_ops.Save(filename=str(path), tensor_names=["a"], data=[tf.ones(2)])
    with pytest.raises(CheckpointError, match="old.ckpt is in TensorFlow's V1 format"):
        TensorFlow1Checkpoint(path)
    with pytest.raises(CheckpointError, match="none.ckpt is no TensorFlow checkpoint: there is no none.ckpt.index"):
        TensorFlow1Checkpoint(tmp_path / "none.ckpt")


def test_compressed_index(tmp_path):
    index = tmp_path / "m.index"
    write(tmp_path / "m", {"a": np.ones(2, "float32")})
    content = bytearray(index.read_bytes())
    # Each block ends with its type (0 raw, 1 Snappy) and a checksum, which tells where the first one ends.
    end = next(end for end in range(1, len(content)) if masked_crc(content[:end]) == content[end : end + 4])
    content[end - 1] = 1
    content[end : end + 4] = masked_crc(content[:end])
    index.write_bytes(content)
    with pytest.raises(CheckpointError, match="m.index is not a readable TensorFlow index: it is compressed"):
        TensorFlow1Checkpoint(tmp_path / "m")


def masked_crc(data):
    crc = google_crc32c.value(bytes(data))
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")


def test_truncated_at_every_byte(tmp_path):
    prefix = write(tmp_path / "m", {"kernel": np.ones(3, "float32"), "zero": np.ones(2, "float32")})
    for file in (tmp_path / "m.index", tmp_path / "m.data-00000-of-00001"):
        content = file.read_bytes()
        for length in range(len(content)):
            file.write_bytes(content[:length])
            with pytest.raises(CheckpointError, match=file.name):
                TensorFlow1Checkpoint(prefix)
        file.write_bytes(content)
    os.truncate(tmp_path / "m.data-00000-of-00001", 13)
    with pytest.raises(CheckpointError, match="data-00000-of-00001 is truncated: it ends before variable 'zero' does"):
        TensorFlow1Checkpoint(prefix)


def test_damaged_at_every_byte(tmp_path):
    prefix = write(tmp_path / "m", {"kernel": np.arange(3, dtype="float32"), "zero": np.ones(2, "float32")})
    reference = dict(TensorFlow1Checkpoint(prefix))
    for file in (tmp_path / "m.index", tmp_path / "m.data-00000-of-00001"):
        content = file.read_bytes()
        for position in range(len(content)):
            damaged = bytearray(content)
            damaged[position] ^= 0xFF
            file.write_bytes(damaged)
            try:  # the checksums cover all but the padding of the footer
                arrays = dict(TensorFlow1Checkpoint(prefix))
                assert all(np.array_equal(arrays[name], reference[name]) for name in reference)
            except CheckpointError as error:
                assert "/m.index" in str(error) or "variable 'kernel'" in str(error) or "variable 'zero'" in str(error)
        file.write_bytes(content)


def test_opening_reads_no_variable(tmp_path):
    prefix = write(tmp_path / "m", {f"layer_{i}": np.full(2**18, i, "float32") for i in range(8)})  # 1 MiB each
    tracemalloc.start()
    reader = TensorFlow1Checkpoint(prefix)
    opened = tracemalloc.get_traced_memory()[1]
    assert reader["layer_5"][-1] == 5
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert opened < 2**18 and peak < 1.5 * 2**20
