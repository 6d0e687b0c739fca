"""What ALBERT has of its own: shared layers, Google's names for them, and an activation that must reach the head."""

import json
import math
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
import transformers
from families import FAMILIES, gap, inputs, reference_outputs, write_vocabulary
from safetensors.torch import load_file

import garden
from garden import tasks
from garden.presets import CheckpointError, export_to_transformers, presets

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


def test_the_sentence_order_head_equals_its_twin(twins, tmp_path):
    model, ours, google, *_ = twins
    expected = reference_outputs(model, X).sop_logits
    for folder in (ours, google):
        task = tasks.SentenceOrder.from_preset(folder)
        assert type(task) is tasks.AlbertSentenceOrder and not task.load_report.fresh
        assert gap(task(X), expected) <= 1e-5
    task.save_to_preset(tmp_path / "it")
    assert gap(tasks.SentenceOrder.from_preset(tmp_path / "it")(X), expected) <= 1e-5
    # transformers' own class has the head beside another, which is missing then.
    export_to_transformers(task, tmp_path / "out")
    again, report = transformers.AlbertForPreTraining.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["unexpected_keys"] and all(name.startswith("predictions.") for name in report["missing_keys"])
    assert gap(task(X), reference_outputs(again.eval(), X).sop_logits) <= 1e-5


def test_sentence_order_is_learned_with_class_1_for_swapped_texts():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "first", "then"]
    cls = tasks.AlbertSentenceOrder
    keras.utils.set_random_seed(0)
    backbone = garden.AlbertBackbone(len(words), 1, 2, 16, 32, embedding_dim=8, max_sequence_length=8)
    task = cls(backbone, cls.preprocessor_cls(garden.AlbertTokenizer(words), 8))
    task.compile(keras.optimizers.Adam(1e-2), metrics=["accuracy"])
    pairs = (["first", "then"] * 16, ["then", "first"] * 16)
    task.fit(pairs, np.array([0, 1] * 16), batch_size=16, epochs=12, verbose=0)
    assert task.predict((["first", "then"], ["then", "first"]), verbose=0).argmax(-1).tolist() == [0, 1]


def test_tables_as_wide_as_the_model_with_and_without_a_projection(tmp_path):
    """transformers projects them all the same, through a matrix that is no identity; Google's code does not."""
    (tmp_path / "huggingface").mkdir()
    model = ALBERT.save_reference(tmp_path / "huggingface", transformers.AlbertModel, embedding_size=60)
    backbone = garden.AlbertBackbone.from_preset(tmp_path / "huggingface")
    assert backbone.embeddings.projection is not None
    expected = reference_outputs(model, X).last_hidden_state
    assert gap(backbone(X)["sequence_output"], expected, X["padding_mask"]) <= 1e-5
    export_to_transformers(backbone, tmp_path / "out")
    again = transformers.AlbertModel.from_pretrained(tmp_path / "out").eval()
    assert gap(backbone(X)["sequence_output"], reference_outputs(again, X).last_hidden_state, X["padding_mask"]) <= 1e-5

    tensors = load_file(tmp_path / "huggingface" / "model.safetensors")
    variables = dict(original(f"albert.{name}", tensor.numpy()) for name, tensor in tensors.items())
    variables = {name: array for name, array in variables.items() if "mapping_in" not in name}
    google = write_archive(tmp_path / "google", variables, {**ALBERT.sizes, "embedding_size": 60})
    backbone = garden.AlbertBackbone.from_preset(google, activation="gelu_tanh")
    assert backbone.embeddings.projection is None and not backbone.load_report.fresh
    model.encoder.embedding_hidden_mapping_in.weight.data = torch.eye(60)
    model.encoder.embedding_hidden_mapping_in.bias.data.zero_()
    expected = reference_outputs(model, X).last_hidden_state
    assert gap(backbone(X)["sequence_output"], expected, X["padding_mask"]) <= 1e-5
    with pytest.raises(CheckpointError, match="always has a projection"):
        export_to_transformers(backbone, tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_the_gelu_of_albert_is_tanh_and_of_electra_erf():
    """One feed-forward network with weights of 1: gelu(x) against values from the definitions, to 1e-6."""
    x = np.array([-2.0, -0.5, 0.5, 1.0, 2.0])
    tanh = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    erf = 0.5 * x * (1 + np.array([math.erf(value / math.sqrt(2)) for value in x]))
    assert np.abs(tanh - erf).max() > 1e-4
    for cls, expected in ((garden.AlbertBackbone, tanh), (garden.ElectraBackbone, erf)):
        row = next(row for row in FAMILIES if row.backbone is cls)
        network = row.build(hidden_dim=1, num_heads=1, intermediate_dim=1).blocks[0].feedforward
        for variable in network.weights:
            variable.assign(np.ones(variable.shape) if variable.path.endswith("kernel") else np.zeros(variable.shape))
        assert gap(network(x[None, :, None].astype("float32"))[0, :, 0], expected) <= 1e-6
    assert {row.activation for row in presets("electra").values()} == {"gelu_erf"}
    assert {row.activation for row in presets("albert").values() if row.language == "en"} == {"gelu_tanh"}


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
