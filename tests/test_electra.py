"""What ELECTRA has of its own: TensorFlow 1 archives without a configuration, and a projection only where it is due."""

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

ELECTRA = next(row for row in FAMILIES if row.backbone is garden.ElectraBackbone)
X = inputs(np.array([[1] * 9, [1] * 6 + [0] * 3]), num_segments=2)
# 64 features a head, the only width from which google-research/electra's rule tells the number of heads.
SIZES = {"hidden_size": 128, "num_attention_heads": 2, "embedding_size": 24, "type_vocab_size": 2}


def original_name(name):
    """The name of a Hugging Face tensor in google-research/electra."""
    name = name.replace("encoder.layer.", "encoder.layer_").replace("dense_prediction", "dense_1").replace(".", "/")
    if name.endswith("_embeddings/weight"):
        return name.removesuffix("/weight")
    kind, leaf = name.split("/")[-2:]
    norm = {"weight": "gamma", "bias": "beta"}
    return name.removesuffix(leaf) + (norm if kind == "LayerNorm" else {"weight": "kernel", "bias": "bias"})[leaf]


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """The same discriminator as a Hugging Face folder and as an archive with the generator beside it."""
    ours, original = tmp_path_factory.mktemp("huggingface"), tmp_path_factory.mktemp("original")
    model = ELECTRA.save_reference(ours, transformers.ElectraForPreTraining, **SIZES)
    variables = {}
    for name, tensor in load_file(ours / "model.safetensors").items():
        array = tensor.numpy()
        variables[original_name(name)] = array.T if original_name(name).endswith("kernel") else array
    variables |= {f"{name}/adam_m": 0 * array for name, array in list(variables.items())}
    variables |= {"generator/encoder/layer_0/output/dense/bias": np.ones(8, "float32"), "global_step": np.int64(7)}
    variables |= {"generator_predictions/output_bias": np.ones(97, "float32")}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [tf.compat.v1.get_variable(name, initializer=array) for name, array in variables.items()]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(made).save(session, str(original / "electra_small"))
    write_vocabulary(original / "vocab.txt", 97)
    return model, ours, original


def test_an_archive_without_configuration_equals_its_twin(twins):
    model, ours, original = twins
    expected = reference_outputs(model, X).logits
    for folder in (ours, original):
        detector = tasks.ReplacedTokenDetector.from_preset(folder)
        assert gap(detector(X), expected, X["padding_mask"]) <= 1e-5 * float(expected.abs().max())
        assert not detector.load_report.fresh
    assert detector.backbone.num_heads == 2 and detector.backbone.activation == "gelu_erf"
    reasons = detector.load_report.ignored
    assert reasons["generator/encoder/layer_0/output/dense/bias"] == "the generator, a network of its own"
    assert reasons["global_step"] == "optimizer state"


def test_a_configuration_beside_the_archive_may_leave_its_kind_open(twins, tmp_path):
    folder = shutil.copytree(twins[2], tmp_path / "it")
    (folder / "config.json").write_text(json.dumps({"hidden_act": "gelu", "num_attention_heads": 4}))
    backbone = garden.Backbone.from_preset(folder)
    assert type(backbone) is garden.ElectraBackbone and backbone.num_heads == 4
    assert backbone.activation == "gelu_erf"


@pytest.mark.parametrize(("width", "projected"), [(24, True), (60, False), (None, False)])
def test_there_is_a_projection_only_between_different_widths(width, projected):
    names = [variable.path for variable in ELECTRA.build(embedding_dim=width).weights]
    assert ("embeddings/projection/bias" in names) is projected


def test_tables_as_wide_as_the_model_equal_the_reference(tmp_path):
    model = ELECTRA.save_reference(tmp_path, transformers.ElectraModel, embedding_size=60)
    backbone = garden.ElectraBackbone.from_preset(tmp_path)
    expected = reference_outputs(model, X).last_hidden_state
    assert gap(backbone(X)["sequence_output"], expected, X["padding_mask"]) <= 1e-5


def test_a_small_generator_is_narrow_in_chinese_and_full_in_english():
    widths = {name: garden.presets.find(f"electra_small_generator_{name}").hidden_dim for name in ("uncased_en", "zh")}
    assert widths == {"uncased_en": 256, "zh": 64}


def test_the_detector_learns_and_comes_back(tmp_path):
    detector = tasks.ReplacedTokenDetector.for_backbone(garden.ElectraBackbone)(ELECTRA.build(dropout=0.0))
    x = inputs(np.ones((16, 9), "int32"), num_segments=2)
    replaced = (x["token_ids"] > 50).astype("int32")
    detector.compile("adam")
    losses = detector.fit(x, replaced, batch_size=8, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    detector.save_to_preset(tmp_path / "it")
    again = tasks.ReplacedTokenDetector.from_preset(tmp_path / "it")
    assert gap(again(x), detector.predict(x, verbose=0)) <= 1e-5
