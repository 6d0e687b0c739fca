"""What ELECTRA has of its own: TensorFlow 1 archives without a configuration, and a projection only where it is due."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
import torch
import transformers
from families import FAMILIES, gap, inputs, reference_outputs, write_vocabulary
from safetensors.torch import load_file

import garden
from garden import tasks
from garden.presets import CheckpointError

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


def original_variables(folder):
    variables = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        array = tensor.numpy()
        variables[original_name(name)] = array.T if original_name(name).endswith("kernel") else array
    return variables


def generator_names(variables):
    """A lone generator's variables under the names that they have beside a discriminator."""
    renamed = {"electra/encoder": "generator/encoder", "electra/embeddings_project": "generator/embeddings_project"}
    renamed |= {"generator_lm_head/bias": "generator_predictions/output_bias"}
    return {
        next((name.replace(old, new) for old, new in renamed.items() if name.startswith(old)), name): array
        for name, array in variables.items()
    }


def write_archive(folder, variables, name="electra_small"):
    folder.mkdir(exist_ok=True)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [tf.compat.v1.get_variable(name, initializer=array) for name, array in variables.items()]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(made).save(session, str(folder / name))
    write_vocabulary(folder / "vocab.txt", 97)
    return folder


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """The same discriminator as a Hugging Face folder and as an archive with the generator beside it."""
    ours, original = tmp_path_factory.mktemp("huggingface"), tmp_path_factory.mktemp("original")
    model = ELECTRA.save_reference(ours, transformers.ElectraForPreTraining, **SIZES)
    variables = original_variables(ours)
    variables |= {f"{name}/adam_m": 0 * array for name, array in list(variables.items())}
    variables |= {"generator/encoder/layer_0/output/dense/bias": np.ones(8, "float32"), "global_step": np.int64(7)}
    variables |= {"generator_predictions/output_bias": np.ones(97, "float32")}
    return model, ours, write_archive(original, variables)


# As wide as the discriminator, as in electra_small.zip, where every shape of one fits the other; narrower, as in HFL's
# archives, here as wide as its tables, so that there is no projection.
FULL, NARROW = SIZES, {**SIZES, "hidden_size": 64, "num_attention_heads": 1, "embedding_size": 64}


@pytest.fixture(scope="module", params=[FULL, NARROW], ids=["full", "narrow"])
def both(request, tmp_path_factory):
    """A generator and a discriminator over the same tables: two models of transformers and one archive."""
    folder = tmp_path_factory.mktemp("both")
    for name in ("discriminator", "generator"):
        (folder / name).mkdir()
    width = {"embedding_size": request.param["embedding_size"]}
    discriminator = ELECTRA.build_reference(transformers.ElectraForPreTraining, **{**SIZES, **width})
    generator = ELECTRA.build_reference(transformers.ElectraForMaskedLM, **request.param)
    with torch.no_grad():
        for parameter in generator.electra.encoder.parameters():
            parameter.mul_(0.7)
    generator.electra.embeddings.load_state_dict(discriminator.electra.embeddings.state_dict())
    discriminator.save_pretrained(folder / "discriminator")
    generator.save_pretrained(folder / "generator")
    variables = generator_names(original_variables(folder / "generator"))
    tables = [name for name in variables if name.startswith("electra/embeddings/")]
    discriminators = original_variables(folder / "discriminator")
    assert len(tables) == 5 and all((variables[name] == discriminators[name]).all() for name in tables)
    return discriminator, generator, write_archive(folder / "original", variables | discriminators), request.param


def test_an_archive_with_both_networks_gives_either(both):
    discriminator, generator, folder, sizes = both
    detector = tasks.ReplacedTokenDetector.from_preset(folder)
    expected = reference_outputs(discriminator, X).logits
    assert gap(detector(X), expected, X["padding_mask"]) <= 1e-5 * float(expected.abs().max())
    masked_lm = tasks.MaskedLM.from_preset(f"{folder}#generator")
    assert not masked_lm.load_report.fresh
    widths = masked_lm.backbone.hidden_dim, masked_lm.backbone.num_heads
    assert widths == (sizes["hidden_size"], sizes["num_attention_heads"])
    names = [variable.path for variable in masked_lm.weights]
    assert ("embeddings/projection/kernel" in names) is (sizes["embedding_size"] != sizes["hidden_size"])
    x = {**X, "mask_positions": np.tile(np.arange(9, dtype="int32"), (2, 1))}
    expected = reference_outputs(generator, X).logits
    assert gap(masked_lm(x), expected, X["padding_mask"]) <= 1e-5 * float(expected.abs().max())
    # Between them no variable is left out.
    loaded = {*detector.load_report.loaded.values(), *masked_lm.load_report.loaded.values()}
    assert loaded == {*detector.load_report.loaded.values(), *detector.load_report.ignored}
    reasons = {*masked_lm.load_report.ignored.values()}
    assert reasons == {"the discriminator, a network of its own", "a head of another task"}


def test_a_head_does_not_stand_on_the_other_network(both):
    """In the small archive their shapes are equal, so only the names keep them apart."""
    folder = both[2]
    with pytest.warns(UserWarning, match="fresh and in need of training: masked_lm/"):
        masked_lm = tasks.MaskedLM.from_preset(folder)
    reason = masked_lm.load_report.ignored["generator/encoder/layer_0/output/dense/bias"]
    assert reason == "the generator, a network of its own, which #generator behind the name loads"
    with pytest.warns(UserWarning, match="fresh and in need of training: replaced_token/logits/kernel"):
        tasks.ReplacedTokenDetector.from_preset(f"{folder}#generator")


def test_hfls_archives_bring_a_configuration_for_each_network(both, tmp_path):
    folder = shutil.copytree(both[2], tmp_path / "it")
    heads = {"discriminator": 4, "generator": 8}
    for name, number in heads.items():
        (folder / f"{name}.json").write_text(json.dumps({"num_attention_heads": number, "hidden_act": "gelu"}))
    assert garden.Backbone.from_preset(folder).num_heads == 4
    assert garden.Backbone.from_preset(f"{folder}#generator").num_heads == 8


def test_a_built_in_generator_comes_from_the_archive_of_its_discriminator(both, monkeypatch):
    row = garden.presets.find("electra_small_generator_uncased_en")
    assert row.sources[1] == "https://storage.googleapis.com/electra-data/electra_small.zip#generator"
    assert garden.presets.find("electra_small_discriminator_uncased_en").sources[1] + "#generator" == row.sources[1]
    fetched = []

    def fetch(url):
        fetched.append(url)
        return both[2]

    def offline(handle):
        raise FileNotFoundError(f"hf://{handle} cannot be fetched")

    monkeypatch.setattr("garden.presets.location.hugging_face", offline)
    monkeypatch.setattr("garden.presets.location._archive_url", fetch)
    generator = garden.Backbone.from_preset("electra_small_generator_uncased_en")
    expected = reference_outputs(both[1].electra, X).last_hidden_state
    assert gap(generator(X)["sequence_output"], expected, X["padding_mask"]) <= 1e-5
    assert fetched == ["https://storage.googleapis.com/electra-data/electra_small.zip"]


def test_a_network_that_is_not_there(both, twins, tmp_path):
    with pytest.raises(CheckpointError, match="holds one network only: leave #generator out"):
        garden.Backbone.from_preset(f"{twins[1]}#generator")
    # The tables of a generator that does not share them would be taken from the discriminator.
    extra = {"generator/embeddings/word_embeddings": np.ones((97, 24), "float32")}
    variables = generator_names(original_variables(both[2].parent / "generator")) | extra
    with pytest.raises(CheckpointError, match="does not explain: generator/embeddings/word_embeddings"):
        garden.Backbone.from_preset(f"{write_archive(tmp_path / 'untied', variables)}#generator")


def test_an_archive_without_configuration_equals_its_twin(twins):
    model, ours, original = twins
    expected = reference_outputs(model, X).logits
    for folder in (ours, original):
        detector = tasks.ReplacedTokenDetector.from_preset(folder)
        assert gap(detector(X), expected, X["padding_mask"]) <= 1e-5 * float(expected.abs().max())
        assert not detector.load_report.fresh
    assert detector.backbone.num_heads == 2 and detector.backbone.activation == "gelu_erf"
    reasons = detector.load_report.ignored
    assert reasons["generator/encoder/layer_0/output/dense/bias"].startswith("the generator, a network of its own")
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
