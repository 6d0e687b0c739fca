"""What ALBERT has of its own: shared layers, Google's names for them, and an activation that must reach the head."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
import transformers
from families import FAMILIES, gap, inputs, reference_outputs, write_vocabulary
from safetensors.torch import load_file

import garden
from garden import tasks
from garden.presets import CheckpointError

ALBERT = next(row for row in FAMILIES if row.backbone is garden.AlbertBackbone)
X = inputs(np.array([[1] * 9, [1] * 6 + [0] * 3]))
PLACES = {
    "attention.query": "attention_1/self/query",
    "attention.key": "attention_1/self/key",
    "attention.value": "attention_1/self/value",
    "attention.dense": "attention_1/output/dense",
    "attention.LayerNorm": "LayerNorm",
    "ffn": "ffn_1/intermediate/dense",
    "ffn_output": "ffn_1/intermediate/output/dense",
    "full_layer_layer_norm": "LayerNorm_1",
}
OUTSIDE = {
    "albert.encoder.embedding_hidden_mapping_in": "bert/encoder/embedding_hidden_mapping_in",
    "albert.pooler": "bert/pooler/dense",
    "predictions.dense": "cls/predictions/transform/dense",
    "predictions.LayerNorm": "cls/predictions/transform/LayerNorm",
    "sop_classifier.classifier": "cls/seq_relationship",
}


def original(name, array):
    """The name of a Hugging Face tensor in google-research/albert, and its array there."""
    layer, leaf = name.rsplit(".", 1)
    if "embeddings" in layer and not layer.endswith("LayerNorm"):
        return layer.replace("albert.", "bert.").replace(".", "/"), array
    if name == "predictions.bias":
        return "cls/predictions/output_bias", array
    if layer.startswith("albert.encoder.albert_layer_groups"):
        g, _, j, place = layer.removeprefix("albert.encoder.albert_layer_groups.").split(".", 3)
        layer = f"bert/encoder/transformer/group_{g}/inner_group_{j}/{PLACES[place]}"
    else:
        layer = OUTSIDE.get(layer) or layer.replace("albert.", "bert.").replace(".", "/")
    if layer.startswith("cls/seq"):
        return f"{layer}/output_{'weights' if leaf == 'weight' else 'bias'}", array
    if "LayerNorm" in layer:
        return f"{layer}/{'gamma' if leaf == 'weight' else 'beta'}", array
    return f"{layer}/{'kernel' if leaf == 'weight' else 'bias'}", array.T if leaf == "weight" else array


def write_archive(folder, variables, sizes):
    folder.mkdir()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [tf.compat.v1.get_variable(name, initializer=array) for name, array in variables.items()]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(made).save(session, str(folder / "model.ckpt-best"))
    # As in albert_base_zh.tar.gz: no model_type, keys of other experiments, the vocabulary under another name.
    extra = {"down_scale_factor": 1, "gap_size": 0, "net_structure_type": 0, "num_memory_blocks": 0}
    (folder / "albert_config.json").write_text(json.dumps({**sizes, **extra}))
    write_vocabulary(folder / "vocab_chinese.txt", 97)
    return folder


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """The same model as a Hugging Face folder and as Google's archive, and its variables under Google's names."""
    ours = tmp_path_factory.mktemp("twins") / "huggingface"
    ours.mkdir()
    model = ALBERT.save_reference(ours, transformers.AlbertForPreTraining, hidden_act="relu")
    tensors = {name: tensor.numpy() for name, tensor in load_file(ours / "model.safetensors").items()}
    variables = dict(original(name, array) for name, array in tensors.items())
    slots = {f"{name}/adam_m": 0 * array for name, array in variables.items()}
    sizes = {**ALBERT.sizes, "hidden_act": "relu"}
    google = write_archive(ours.parent / "google", {**variables, **slots, "global_step": np.int64(7)}, sizes)
    return model, ours, google, variables, sizes


def test_googles_archive_equals_its_twin(twins):
    model, ours, google, *_ = twins
    expected = reference_outputs(model, X)
    positions = np.tile(np.arange(9, dtype="int32"), (2, 1))
    for folder in (ours, google):
        masked_lm = tasks.MaskedLM.from_preset(folder)
        assert not masked_lm.load_report.fresh
        assert gap(masked_lm({**X, "mask_positions": positions}), expected.prediction_logits, X["padding_mask"]) <= 1e-5
        assert masked_lm.backbone.activation == "relu"
    assert masked_lm.preprocessor.tokenizer.vocabulary_size() == 97
    assert set(masked_lm.load_report.ignored.values()) == {"optimizer state", "a head of another task"}


def test_the_two_norms_are_not_each_other(twins, tmp_path):
    model, _, _, variables, sizes = twins
    swap = {"LayerNorm/": "LayerNorm_1/", "LayerNorm_1/": "LayerNorm/"}
    swapped = {}
    for name, array in variables.items():
        found = next((old for old in ("LayerNorm_1/", "LayerNorm/") if "inner_group" in name and old in name), None)
        swapped[name.replace(found, swap[found]) if found else name] = array
    assert swapped.keys() == variables.keys()
    backbone = garden.Backbone.from_preset(write_archive(tmp_path / "swapped", swapped, sizes))
    expected = model.albert(**_torch(X)).last_hidden_state.detach()
    assert gap(backbone(X)["sequence_output"], expected, X["padding_mask"]) > 1e-2


def _torch(x):
    import torch

    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    return {names[name]: torch.tensor(array).long() for name, array in x.items()}


@pytest.mark.parametrize("changed", ["word_embeddings_2", "layer_shared/output/dense/kernel"])
def test_brightmarts_own_graph_is_refused_by_name(twins, tmp_path, changed):
    folder = write_archive(tmp_path / "it", {f"bert/embeddings/{changed}": np.ones((3, 3), "float32")}, twins[4])
    with pytest.raises(CheckpointError, match="word_embeddings_2, layer_shared"):
        garden.Backbone.from_preset(folder)


def test_layers_run_their_groups_in_order():
    backbone = ALBERT.build(num_layers=4, num_groups=2, num_inner_repetitions=2)
    names = [block.name for block in backbone.blocks]
    first, second = ["group_0_block_0", "group_0_block_1"], ["group_1_block_0", "group_1_block_1"]
    assert names == first * 2 + second * 2
    # The integer rule, where Google's and Hugging Face's floating-point forms go wrong.
    odd = ALBERT.build(num_layers=22, num_groups=22)
    assert [block.name for block in odd.blocks] == [f"group_{i}_block_0" for i in range(22)]
    with pytest.raises(ValueError, match="num_groups=5 has to be between 1 and num_layers=2"):
        ALBERT.build(num_groups=5)


def test_shared_weights_exist_once_in_memory_and_on_disk(tmp_path):
    shallow, deep = ALBERT.build(num_layers=1), ALBERT.build(num_layers=12)
    assert deep.count_params() == shallow.count_params()
    for model, name in ((shallow, "shallow"), (deep, "deep")):
        model.save_to_preset(tmp_path / name)
    sizes = [(tmp_path / name / "model.weights.h5").stat().st_size for name in ("shallow", "deep")]
    assert abs(sizes[1] - sizes[0]) < 0.05 * sizes[0]


def test_a_published_archive_is_read_as_it_was_packed(twins, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "albert_base_zh"), "gztar", twins[2].parent, "google")
    backbone = garden.Backbone.from_preset(archive)
    assert type(backbone) is garden.AlbertBackbone and backbone.num_groups == 2
