"""ERNIE as Baidu publishes it: Paddle's weights and configurations, equal to their Hugging Face twin."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
import transformers
from families import FAMILIES, gap, reference_outputs, write_vocabulary
from safetensors.torch import load_file
from web import send, serve

import garden
from garden import tasks
from garden.presets import CheckpointError, convert, find, presets

ERNIE = next(row for row in FAMILIES if row.backbone is garden.ErnieBackbone)
X = ERNIE.inputs(np.array([[1] * 9, [1] * 6 + [0] * 3]))
# transformers' places -> those of paddle.nn.TransformerEncoderLayer and of PaddleNLP's heads.
PLACES = {
    "encoder.layer.": "encoder.layers.",
    "attention.self.query": "self_attn.q_proj",
    "attention.self.key": "self_attn.k_proj",
    "attention.self.value": "self_attn.v_proj",
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    ".output.dense": ".linear2",
    ".output.LayerNorm": ".norm2",
    "embeddings.LayerNorm": "embeddings.layer_norm",
    "predictions.transform.dense": "predictions.transform",
    "predictions.transform.LayerNorm": "predictions.layer_norm",
    "predictions.bias": "predictions.decoder_bias",
}


def paddle_arrays(folder):
    """The model in a Hugging Face folder under PaddleNLP's names, with kernels (in, out)."""
    arrays = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        array = tensor.numpy()
        is_kernel = array.ndim == 2 and "_embeddings" not in name
        for theirs, paddles in PLACES.items():
            name = name.replace(theirs, paddles)
        arrays[name] = np.ascontiguousarray(array.T) if is_kernel else array
    return arrays


def write_paddle(folder, arrays, config, protocol=2):
    folder.mkdir()
    graph = {name: f"linear_{i}.w_0" for i, name in enumerate(arrays)}
    content = pickle.dumps(arrays | {"StructuredToParameterName@@": graph}, protocol)
    (folder / "model_state.pdparams").write_bytes(content)
    (folder / "model_config.json").write_text(json.dumps(config))
    write_vocabulary(folder / "vocab.txt", 97)
    return folder


# What PaddleNLP keeps of the constructor call: no epsilon, and here a feed-forward width of its own.
SIZES = {name: value for name, value in ERNIE.sizes.items() if name != "layer_norm_eps"}
MODEL = {**SIZES, "hidden_act": "relu", "init_class": "ErnieModel"}


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """A model with its pretraining heads in both forms."""
    ours, paddle = tmp_path_factory.mktemp("huggingface"), tmp_path_factory.mktemp("paddle") / "it"
    model = ERNIE.save_reference(ours, transformers.ErnieForPreTraining, hidden_act="relu")
    arrays = paddle_arrays(ours)
    arrays["cls.predictions.decoder_weight"] = arrays["ernie.embeddings.word_embeddings.weight"]
    config = {"init_args": [MODEL], "init_class": "ErnieForPretraining"}
    return model, ours, write_paddle(paddle, arrays, config), arrays


def test_paddles_files_equal_their_twin(twins):
    model, ours, paddle, _ = twins
    expected = reference_outputs(model, X)
    positions = np.tile(np.arange(9, dtype="int32"), (2, 1))
    for folder in (ours, paddle):
        masked_lm = tasks.MaskedLM.from_preset(folder)
        assert not masked_lm.load_report.fresh and masked_lm.backbone.layer_norm_epsilon == 1e-5
        assert gap(masked_lm({**X, "mask_positions": positions}), expected.prediction_logits, X["padding_mask"]) <= 1e-5
        next_sentence = tasks.NextSentence.from_preset(folder)
        assert gap(next_sentence(X), expected.seq_relationship_logits) <= 1e-5
        assert masked_lm.backbone.num_task_types == 3 and masked_lm.backbone.activation == "relu"
    reasons = masked_lm.load_report.ignored
    assert reasons["cls.predictions.decoder_weight"] == "a copy of ernie.embeddings.word_embeddings.weight"
    assert reasons["cls.seq_relationship.weight"] == "a head of another task"


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("model_config.json", MODEL),  # a bare model
        ("model_config.json", {"ernie": MODEL, "init_class": "ErnieForMaskedLM"}),  # given by keyword
        # Newer releases write an epsilon into config.json that their code does not use.
        ("config.json", {**SIZES, "hidden_act": "relu", "model_type": "ernie", "layer_norm_eps": 1e-12}),
    ],
)
def test_every_kind_of_configuration(twins, tmp_path, name, config):
    folder = write_paddle(tmp_path / "it", twins[3], {}, protocol=4)
    (folder / "model_config.json").rename(folder / name)
    (folder / name).write_text(json.dumps(config))
    expected = twins[0].ernie(**torch_inputs()).last_hidden_state.detach()
    for place in (folder, folder / "model_state.pdparams"):
        backbone = garden.ErnieBackbone.from_preset(place)
        assert gap(backbone(X)["sequence_output"], expected, X["padding_mask"]) <= 1e-5


def torch_inputs():
    import torch

    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    return {names[name]: torch.tensor(array).long() for name, array in X.items()}


def test_a_classifier_of_paddle(tmp_path):
    model = ERNIE.save_reference(tmp_path, transformers.ErnieForSequenceClassification, num_labels=4)
    config = {"init_args": [{**MODEL, "hidden_act": "gelu"}], "init_class": "ErnieForSequenceClassification"}
    folder = write_paddle(tmp_path / "paddle", paddle_arrays(tmp_path), {**config, "num_classes": 4})
    classifier = tasks.TextClassifier.from_preset(folder)
    assert classifier.num_classes == 4 and not classifier.load_report.fresh
    assert gap(classifier(X), reference_outputs(model, X).logits) <= 1e-5


def test_a_bare_model_without_the_scope(twins, tmp_path):
    bare = {name.removeprefix("ernie."): array for name, array in twins[3].items() if name.startswith("ernie.")}
    backbone = garden.Backbone.from_preset(write_paddle(tmp_path / "it", bare, MODEL))
    expected = twins[0].ernie(**torch_inputs()).last_hidden_state.detach()
    assert gap(backbone(X)["sequence_output"], expected, X["padding_mask"]) <= 1e-5


def test_paddles_folder_becomes_one_of_hugging_face(twins, tmp_path):
    convert(twins[2], tmp_path / "out", format="huggingface", task="MaskedLM")
    again = transformers.ErnieForMaskedLM.from_pretrained(tmp_path / "out").eval()
    assert gap(reference_outputs(again, X).logits, reference_outputs(twins[0], X).prediction_logits) <= 1e-4


def test_what_paddles_folder_must_have(twins, tmp_path):
    def refused(name, arrays, config, message):
        folder = write_paddle(tmp_path / name, arrays, config)
        if not config:
            (folder / "model_config.json").unlink()
        with pytest.raises(CheckpointError, match=message):
            garden.Backbone.from_preset(folder)

    lacking = {name: array for name, array in twins[3].items() if "norm2" not in name}
    refused("lacking", lacking, MODEL, "no whole ErnieBackbone: it has no tensor for block_0/feedforward_norm/gamma")
    more = twins[3] | {"ernie.encoder.layers.0.extra.weight": np.ones(2)}
    refused("more", more, MODEL, "does not explain: ernie.encoder.layers.0.extra.weight")
    refused("other", twins[3], {"init_class": "SkepModel"}, "holds a skep model; garden reads")
    refused(
        "bert", twins[3], {"init_class": "BertModel"}, "a paddle checkpoint, which garden does not read for BertBack"
    )
    refused("none", twins[3], {}, "has no config.json")


@pytest.fixture
def storage(twins, tmp_path, monkeypatch):
    """PaddleNLP's storage on this machine, and a built-in preset whose files lie there."""
    monkeypatch.setenv("GARDEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    vocabulary = "".join(f"{line}\t{i}\n" for i, line in enumerate((twins[2] / "vocab.txt").read_text().split()[:90]))
    files = {"/ernie/small.pdparams": (twins[2] / "model_state.pdparams").read_bytes()}
    files |= {"/ernie/small_vocab.txt": vocabulary.encode()}
    asked = []

    def answer(request):
        asked.append(request.path)
        send(request, files.get(request.path, b""), 200 if request.path in files else 404)

    sizes = dict(vocabulary_size=97, num_layers=3, num_heads=5, hidden_dim=60, intermediate_dim=70, num_segments=3)
    row = dataclasses.replace(find("ernie_1.0_base_zh_cw"), **sizes, max_sequence_length=33, activation="relu")
    row = dataclasses.replace(row, sources=("paddle://ernie/small.pdparams,ernie/small_vocab.txt",))
    monkeypatch.setattr("garden.presets.location.find", lambda name: row)
    monkeypatch.setattr("garden.presets.load.rows", lambda: {"small": row})
    with serve(answer) as site:
        monkeypatch.setattr("garden.presets.hubs.PADDLE_NLP", site)
        yield files, asked


def test_a_preset_of_paddles_storage(storage, twins, tmp_path):
    files, asked = storage
    positions = np.tile(np.arange(9, dtype="int32"), (2, 1))
    expected = reference_outputs(twins[0], X).prediction_logits
    for _ in range(2):
        masked_lm = tasks.MaskedLM.from_preset("small")
        assert gap(masked_lm({**X, "mask_positions": positions}), expected, X["padding_mask"]) <= 1e-5
    # The table has 97 rows, the vocabulary 90 tokens with their ids beside them.
    assert masked_lm.preprocessor.tokenizer.vocabulary_size() == 90
    assert masked_lm.preprocessor.tokenizer("w1 w84") == [6, 89]
    assert asked == list(files)
    convert("small", tmp_path / "out", format="huggingface")
    again = transformers.ErnieModel.from_pretrained(tmp_path / "out").eval()
    assert gap(masked_lm.backbone(X)["pooled_output"], reference_outputs(again, X).pooler_output) <= 1e-5


def test_a_preset_that_paddles_storage_has_lost(storage):
    storage[0].clear()
    with pytest.raises(FileNotFoundError, match="No source of .*small.pdparams cannot be downloaded: it answers 404"):
        garden.ErnieBackbone.from_preset("small")


def test_parameter_counts_of_all_presets():
    for name, row in presets("ernie").items():
        v, d, f = row.vocabulary_size, row.hidden_dim, row.intermediate_dim
        tables = (v + row.max_sequence_length + row.num_segments + row.num_task_types) * d
        block = 4 * (d * d + d) + (d * f + f) + (f * d + d) + 2 * 2 * d
        assert row.parameters == tables + 2 * d + row.num_layers * block + d * d + d, name
