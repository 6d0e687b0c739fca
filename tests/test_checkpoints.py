"""Every published form of one model loads to the same outputs, and what a checkpoint does not explain is refused."""

import json
import shutil

import keras_hub
import numpy as np
import pytest
import tensorflow as tf
import torch
import transformers
from families import FAMILIES, gap, inputs, reference_outputs, write_vocabulary
from keras import ops
from safetensors.torch import load_file, save_file

import garden
from garden.presets import CheckpointError

BERT = next(row for row in FAMILIES if row.backbone is garden.BertBackbone)
X = inputs(np.array([[1] * 9, [1] * 6 + [0] * 3]))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A folder with every head, as google/bert repositories have it, and the reference's hidden states."""
    folder = tmp_path_factory.mktemp("published")
    model = BERT.save_reference(folder, transformers.BertForPreTraining, architectures=["BertForPreTraining"])
    hidden = reference_outputs(model, X, output_hidden_states=True).hidden_states[-1]
    return folder, model, hidden.numpy()


def rewritten(published, folder, change, save=lambda tensors, folder: save_file(tensors, folder / "model.safetensors")):
    """The published folder again, with its tensors changed and saved in another way."""
    shutil.copytree(published[0], folder, ignore=shutil.ignore_patterns("*.safetensors"))
    tensors = change(dict(load_file(published[0] / "model.safetensors")))
    save({name: tensor.contiguous() for name, tensor in tensors.items()}, folder)
    return folder


def same(tensors):
    return tensors


def bare_backbone(tensors):
    return {name.removeprefix("bert."): tensor for name, tensor in tensors.items() if name.startswith("bert.")}


def gamma_beta(tensors):
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    return {next((n.replace(a, b) for a, b in old.items() if n.endswith(a)), n): t for n, t in tensors.items()}


def with_buffers_and_copies(tensors):
    return tensors | {
        "bert.embeddings.position_ids": torch.arange(33)[None],
        "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].clone(),
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].clone(),
    }


def with_fit_dense(tensors):
    return tensors | {"fit_dense.weight": torch.zeros(768, 60), "fit_dense.bias": torch.zeros(768)}


def save_zip(tensors, folder):
    torch.save(tensors, folder / "pytorch_model.bin")


def save_legacy(tensors, folder):
    torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)


def save_shards(tensors, folder):
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, chosen in shards.items():
        save_file({name: tensors[name] for name in chosen}, folder / file)
    weight_map = {name: file for file, chosen in shards.items() for name in chosen}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


@pytest.mark.parametrize("change", [same, bare_backbone, gamma_beta, with_buffers_and_copies, with_fit_dense])
def test_spellings_of_hugging_face_load_equal(published, tmp_path, change):
    backbone = garden.BertBackbone.from_preset(rewritten(published, tmp_path / "it", change))
    assert gap(backbone(X)["sequence_output"], published[2], X["padding_mask"]) <= 1e-5


@pytest.mark.parametrize("save", [save_zip, save_legacy, save_shards])
def test_containers_of_hugging_face_load_equal(published, tmp_path, save):
    backbone = garden.BertBackbone.from_preset(rewritten(published, tmp_path / "it", same, save))
    assert gap(backbone(X)["sequence_output"], published[2], X["padding_mask"]) <= 1e-5


def write_tensorflow1(published, folder, slots=True):
    """The same model under google-research/bert's names: kernels (in, out), heads' matrices (out, in), Adam's slots."""
    folder.mkdir()
    variables = {}
    for name, tensor in load_file(published[0] / "model.safetensors").items():
        parts = name.replace("layer.", "layer_").split(".")
        leaf, layer, array = parts[-1], parts[-2], tensor.numpy()
        if "LayerNorm" in layer:
            parts[-1] = {"weight": "gamma", "bias": "beta"}[leaf]
        elif layer.endswith("_embeddings"):
            parts.pop()
        elif name.startswith("cls.seq_relationship") or name == "cls.predictions.bias":
            parts[-1] = {"weight": "output_weights", "bias": "output_bias"}[leaf]
        elif leaf == "weight":
            parts[-1], array = "kernel", array.T
        variables["/".join(parts)] = array
    if slots:
        variables |= {f"{name}/adam_{slot}": 0 * array for name, array in list(variables.items()) for slot in "mv"}
        variables["global_step"] = np.int64(7)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [tf.compat.v1.get_variable(name, initializer=array) for name, array in variables.items()]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(made).save(session, str(folder / "bert_model.ckpt"))
    config = {key: value for key, value in BERT.sizes.items()} | {"hidden_act": "gelu", "directionality": "bidi"}
    (folder / "bert_config.json").write_text(json.dumps(config | {"pooler_fc_size": 768}))
    write_vocabulary(folder / "vocab.txt", 97)
    return folder


def test_tensorflow_1_equals_its_hugging_face_twin(published, tmp_path):
    folder = write_tensorflow1(published, tmp_path / "chinese_L-3_H-60_A-5")
    backbone = garden.BertBackbone.from_preset(folder, activation="gelu_erf")
    assert gap(backbone(X)["sequence_output"], published[2], X["padding_mask"]) <= 1e-5
    reasons = set(backbone.load_report.ignored.values())
    assert reasons == {"optimizer state", "a head of another task"} and not backbone.load_report.fresh
    # The tasks take Google's tanh, 4e-4 away from the twin at worst; their heads must still be the twin's.
    theirs = reference_outputs(published[1], X)
    masked_lm, next_sentence = (task.from_preset(folder) for task in (garden.tasks.MaskedLM, garden.tasks.NextSentence))
    assert not masked_lm.load_report.fresh and not next_sentence.load_report.fresh
    positions = np.tile(np.arange(9, dtype="int32"), (2, 1))
    assert gap(masked_lm({**X, "mask_positions": positions}), theirs.prediction_logits, X["padding_mask"]) <= 2e-2
    assert gap(next_sentence(X), theirs.seq_relationship_logits) <= 2e-2


def test_tensorflow_1_says_gelu_and_means_tanh(published, tmp_path):
    assert garden.BertBackbone.from_preset(write_tensorflow1(published, tmp_path / "it")).activation == "gelu_tanh"


def test_archives_of_tensorflow_1_load_as_published(published, tmp_path):
    folder = write_tensorflow1(published, tmp_path / "uncased_L-3_H-60_A-5", slots=False)
    for kind in ("zip", "gztar"):
        archive = shutil.make_archive(str(tmp_path / kind), kind, tmp_path, folder.name)
        backbone = garden.BertBackbone.from_preset(archive, activation="gelu_erf")
        assert gap(backbone(X)["sequence_output"], published[2], X["padding_mask"]) <= 1e-5


def test_a_tensorflow_1_prefix_is_enough(published, tmp_path):
    folder = write_tensorflow1(published, tmp_path / "it", slots=False)
    for name in ("bert_model.ckpt", "bert_model.ckpt.index"):
        backbone = garden.BertBackbone.from_preset(folder / name, activation="gelu_erf")
        assert gap(backbone(X)["sequence_output"], published[2], X["padding_mask"]) <= 1e-5


def test_keras_hub_presets_equal_keras_hub(tmp_path):
    theirs = keras_hub.models.BertBackbone(97, 3, 5, 60, 70, max_sequence_length=33, num_segments=3)
    vocabulary = write_vocabulary(tmp_path / "words.txt", 97)
    tokenizer = keras_hub.models.BertTokenizer(vocabulary, lowercase=True)
    heads = {
        "masked_lm": keras_hub.models.BertMaskedLM(theirs, keras_hub.models.BertMaskedLMPreprocessor(tokenizer, 16)),
        "classifier": keras_hub.models.BertTextClassifier(
            theirs, 4, keras_hub.models.BertTextClassifierPreprocessor(tokenizer, 16)
        ),
    }
    for name, task in heads.items():
        for variable in task.weights:
            variable.assign(np.random.default_rng(1).normal(0.3, 0.2, variable.shape))
        task.save_to_preset(tmp_path / name)
    backbone = garden.BertBackbone.from_preset(tmp_path / "classifier")
    expected = ops.convert_to_numpy(theirs(X)["sequence_output"])
    assert gap(backbone(X)["sequence_output"], expected, X["padding_mask"]) <= 1e-5
    classifier = garden.tasks.TextClassifier.from_preset(tmp_path / "classifier", sequence_length=16)
    texts = ["w1 w2", "w3 [MASK] w4 w5"]
    expected = heads["classifier"].predict(["w1 w2", "w3 w1 w4 w5"], verbose=0)
    assert gap(classifier.predict(["w1 w2", "w3 w1 w4 w5"], verbose=0), expected) <= 1e-5
    masked_lm = garden.tasks.MaskedLM.from_preset(tmp_path / "masked_lm")
    assert not masked_lm.load_report.fresh and len(masked_lm.fill_mask(texts[1])[0]) == 5


# What does not fit


def drop(name):
    return lambda tensors: {key: tensor for key, tensor in tensors.items() if key != name}


def add(name, shape=(3,)):
    return lambda tensors: tensors | {name: torch.ones(shape)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("bert.encoder.layer.1.output.dense.bias"), "no tensor for block_1/feedforward/output_dense/bias"),
        (add("bert.encoder.layer.3.output.dense.bias"), "does not explain: bert.encoder.layer.3.output.dense.bias"),
        (add("bert.embeddings.word_embeddings.weight", (96, 60)), r"shape \(96, 60\), but .* is \(97, 60\)"),
        (add("cls.predictions.decoder.weight", (97, 60)), "does not explain: cls.predictions.decoder.weight"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(published, tmp_path, change, message):
    folder = rewritten(published, tmp_path / "it", change)
    with pytest.raises(CheckpointError, match=message):
        garden.BertBackbone.from_preset(folder)


def test_unknown_tensors_without_a_scope_are_refused(published, tmp_path):
    folder = rewritten(published, tmp_path / "it", lambda t: bare_backbone(t) | {"extra.weight": torch.ones(2)})
    with pytest.raises(CheckpointError, match="does not explain: extra.weight"):
        garden.BertBackbone.from_preset(folder)


def test_a_missing_pooler_is_fresh_and_said_so(published, tmp_path):
    masked_lm = transformers.BertForMaskedLM(published[1].config)
    masked_lm.save_pretrained(tmp_path)
    write_vocabulary(tmp_path / "vocab.txt", 97)
    with pytest.warns(UserWarning, match="fresh and in need of training: pooler/dense/kernel, pooler/dense/bias"):
        backbone = garden.BertBackbone.from_preset(tmp_path)
    kernel = ops.convert_to_numpy(backbone.pooler.dense.kernel)
    assert 0.01 < kernel.std() < 0.03  # drawn anew, not the zeros that a load starts from


def test_a_missing_head_is_fresh_and_said_so(published):
    with pytest.warns(UserWarning, match="fresh and in need of training: classifier/logits/kernel"):
        classifier = garden.tasks.TextClassifier.from_preset(published[0], num_classes=3)
    assert classifier.load_report.fresh == ["classifier/logits/kernel", "classifier/logits/bias"]


def test_a_head_for_another_number_of_classes_is_fresh_and_said_so(tmp_path):
    BERT.save_reference(tmp_path, transformers.BertForSequenceClassification, num_labels=4)
    assert garden.tasks.TextClassifier.from_preset(tmp_path).num_classes == 4
    assert not garden.tasks.TextClassifier.from_preset(tmp_path, num_classes=4).load_report.fresh
    with pytest.warns(UserWarning, match="classifier/logits/kernel"):
        classifier = garden.tasks.TextClassifier.from_preset(tmp_path, num_classes=3)
    assert classifier.load_report.ignored["classifier.weight"] == "a head of another task"


def test_published_class_names_are_kept(tmp_path):
    names = {0: "sad", 1: "glad", 2: "mad"}
    BERT.save_reference(tmp_path, transformers.BertForSequenceClassification, id2label=names)
    classifier = garden.tasks.TextClassifier.from_preset(tmp_path)
    assert classifier.class_names == ["sad", "glad", "mad"]
    assert classifier.predict_labels(["w1"])[0][0] in names.values()


def test_a_head_that_was_published_untrained_stays_fresh(published, monkeypatch):
    monkeypatch.setattr("garden.presets.load.locate", lambda preset: published[0])
    build = "garden.presets.load._Source.build"
    monkeypatch.setattr(build, lambda self, **_: self.backbone_cls(**self.checkpoint.arguments))
    with pytest.warns(UserWarning, match="fresh and in need of training: masked_lm/"):
        masked_lm = garden.tasks.MaskedLM.from_preset("rbt3_zh")
    assert len(masked_lm.load_report.fresh) == 5


def test_float16_overflow_is_refused(published, tmp_path):
    def huge(tensors):
        return tensors | {"bert.pooler.dense.bias": torch.full((60,), 1e6)}

    folder = rewritten(published, tmp_path / "it", huge)
    with pytest.raises(CheckpointError, match="beyond float16's 65504"):
        garden.BertBackbone.from_preset(folder, dtype="float16")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no config.json or bert_config.json"),
        ({"config.json": "{"}, "is not valid JSON"),
        ({"config.json": "[]"}, "holds a list, not a configuration"),
        ({"config.json": '{"model_type": "llama"}'}, "holds a llama model; garden reads albert, bert"),
    ],
)
def test_a_folder_without_a_usable_configuration_is_refused(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(CheckpointError, match=message):
        garden.BertBackbone.from_preset(tmp_path)
