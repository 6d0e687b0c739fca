"""What MobileBERT has of its own: neighbours, bottlenecks, a teacher that transformers cannot run, Google's files."""

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
import transformers
from families import FAMILIES, gap, reference_outputs, write_vocabulary
from keras import ops
from safetensors.torch import load_file, save_file

import garden
from garden import layers, tasks
from garden.presets import CheckpointError, export_to_transformers

MOBILE = next(row for row in FAMILIES if row.backbone is garden.MobileBertBackbone)
PADDING = np.array([[1] * 9, [1] * 6 + [0] * 3])
X = MOBILE.inputs(PADDING)
POSITIONS = np.tile(np.arange(9, dtype="int32"), (2, 1))
TEACHER = dict(
    num_heads=3, bottleneck_dim=60, num_feedforwards=1, attention_input="input", normalization="layer_norm"
) | dict(activation="gelu_tanh", classifier_activation=True)


def neighbours(mask, vocabulary_size=4):
    """Which ids each position of the row 1, 2, 3, ... sees: [next, own, previous], 0 for none."""
    mask = np.array([mask])
    table = np.eye(1 + mask.shape[1], dtype="float32")[:, 1:]  # id 0 is the zero vector
    ids = 1 + np.arange(mask.shape[1])[None]
    seen = ops.convert_to_numpy(layers.trigram(ops.convert_to_tensor(table[ids]), ops.convert_to_tensor(mask)))
    blocks = seen[0].reshape(mask.shape[1], 3, -1)
    return [[int(block.argmax()) + 1 if block.any() else 0 for block in position] for position in blocks]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([1, 1, 1], [[2, 1, 0], [3, 2, 1], [0, 3, 2]]),
        ([1], [[0, 1, 0]]),
        ([1, 1, 0, 0], [[2, 1, 0], [3, 2, 1], [4, 3, 0], [0, 4, 3]]),  # right padding is seen, as in transformers
        ([0, 1, 1], [[0, 1, 0], [3, 2, 0], [0, 3, 2]]),  # left padding is not
        (
            [1, 2, 2, 0],
            [[0, 1, 0], [3, 2, 0], [0, 3, 2], [0, 4, 0]],
        ),  # nor is another packed sequence, or what is behind
    ],
)
def test_neighbours_by_hand(mask, expected):
    assert neighbours(mask) == expected


def randomized(model, spread=0.1):
    """The model with random weights everywhere, norms and biases included."""
    rng = np.random.default_rng(0)
    for variable in model.weights:
        offset = 1.0 if variable.path.endswith("gamma") else 0.0
        variable.assign(rng.normal(offset, spread, variable.shape))
    return model


SWITCHES = {
    "shared": {"hidden_size": 44},
    "bottleneck": {"use_bottleneck_attention": True, "key_query_shared_bottleneck": False},
    "bottleneck, with one that nothing reads": {"use_bottleneck_attention": True},
    "input": {"key_query_shared_bottleneck": False, "hidden_size": 60},  # the only width at which transformers runs it
    "no bottleneck": {"use_bottleneck": False, "hidden_size": 60},
    "one network": {"num_feedforward_networks": 1},
    "four networks": {"num_feedforward_networks": 4},
    "no trigram": {"trigram_input": False},
    "no trigram, no projection": {"trigram_input": False, "embedding_size": 44},
    "trigram as wide as the model": {"embedding_size": 44},
    "first token": {"classifier_activation": False},
    "layer norm": {"normalization_type": "layer_norm"},
}


@pytest.mark.parametrize("case", SWITCHES)
def test_every_switch_equals_the_reference(case, tmp_path):
    switches = SWITCHES[case]
    model = MOBILE.save_reference(tmp_path / "in", transformers.MobileBertModel, **switches)
    for module in model.modules():  # transformers forgets the configuration's epsilon in two of its places
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = model.config.layer_norm_eps
    backbone = garden.MobileBertBackbone.from_preset(tmp_path / "in")
    ours, theirs = backbone(X), reference_outputs(model, X)
    assert gap(ours["sequence_output"], theirs.last_hidden_state, PADDING) <= 1e-5
    assert gap(ours["pooled_output"], theirs.pooler_output) <= 1e-5
    export_to_transformers(backbone, tmp_path / "out")
    reloaded, report = transformers.MobileBertModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert all("embedding_transformation" in name for name in report["missing_keys"])
    assert bool(report["missing_keys"]) == ("no projection" in case)  # it makes that layer and does not read it
    assert not report["unexpected_keys"] and not report["mismatched_keys"]
    if "normalization_type" not in switches:
        assert gap(ours["sequence_output"], reference_outputs(reloaded, X).last_hidden_state, PADDING) <= 1e-5


def test_without_an_activation_the_pooled_output_is_the_first_token():
    outputs = MOBILE.build()(MOBILE.inputs(np.array([[0, 0, 1, 1], [1, 1, 1, 0]])))
    sequence = ops.convert_to_numpy(outputs["sequence_output"])
    assert gap(outputs["pooled_output"], np.stack([sequence[0, 2], sequence[1, 0]])) == 0
    assert not [v.path for v in MOBILE.build().weights if "pooler" in v.path]
    assert [v.path for v in MOBILE.build(classifier_activation=True).weights if "pooler" in v.path]


def numpy_teacher(w, x, heads):
    """google-research/mobilebert's arithmetic at the teacher's configuration, written again; w is path -> array."""

    def dense(name, h):
        return h @ w[f"{name}/kernel"] + w[f"{name}/bias"]

    def norm(name, h):
        centred = h - h.mean(-1, keepdims=True)
        return centred / np.sqrt(h.var(-1, keepdims=True) + 1e-12) * w[f"{name}/gamma"] + w[f"{name}/beta"]

    def gelu(h):
        return h * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))

    def split(h):
        return h.reshape(*h.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    e = w["embeddings/token_embedding/embeddings"][x["token_ids"]]
    zero = np.zeros_like(e[:, :1])
    h = np.concatenate([np.concatenate([e[:, 1:], zero], 1), e, np.concatenate([zero, e[:, :-1]], 1)], -1)
    h = dense("embeddings/projection", h) + w["embeddings/segment_embedding/embeddings"][x["segment_ids"]]
    h = norm("embeddings/norm", h + w["embeddings/position_embedding/embeddings"][: h.shape[1]])
    for i in range(2):
        block = f"block_{i}"
        narrow = norm(f"{block}/bottleneck/norm", dense(f"{block}/bottleneck/dense", h))
        q, k, v = (split(dense(f"{block}/attention/{name}", h)) for name in ("query", "key", "value"))
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
        probs = np.exp(scores - scores.max(-1, keepdims=True))
        context = (probs / probs.sum(-1, keepdims=True)) @ v
        context = context.transpose(0, 2, 1, 3).reshape(narrow.shape)
        a = norm(f"{block}/attention_norm", dense(f"{block}/attention/output_dense", context) + narrow)
        f = gelu(dense(f"{block}/feedforward/intermediate_dense", a))
        a = norm(f"{block}/feedforward_norm", dense(f"{block}/feedforward/output_dense", f) + a)
        h = norm(f"{block}/output_norm", dense(f"{block}/output_dense", a) + h)
    return h, np.tanh(dense("pooler/dense", h[:, 0]))


def test_the_teacher_equals_googles_arithmetic(tmp_path):
    teacher = randomized(MOBILE.build(**TEACHER), 0.2)
    weights = {v.path: ops.convert_to_numpy(v).astype("float64") for v in teacher.weights}
    assert weights["block_0/attention/query/kernel"].shape == (44, 60)
    x = MOBILE.inputs(np.ones((2, 9), "int32"))
    sequence, pooled = numpy_teacher(weights, x, heads=3)
    ours = teacher(x)
    assert gap(ours["sequence_output"], sequence) <= 1e-5 and gap(ours["pooled_output"], pooled) <= 1e-5
    with pytest.raises(CheckpointError, match="cannot run .*bottleneck_dim=60 beside hidden_dim=44.* save_to_preset"):
        export_to_transformers(teacher, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    teacher.save_to_preset(tmp_path / "preset")
    assert gap(garden.Backbone.from_preset(tmp_path / "preset")(x)["sequence_output"], sequence) <= 1e-5


def test_the_teacher_has_its_parameters():
    """The teacher, which is no preset, with one of its layers; the two others are in tests/test_table.py."""
    shape = dict(vocabulary_size=30522, num_layers=1, num_heads=4, hidden_dim=512, intermediate_dim=4096)
    one = garden.MobileBertBackbone(**{**TEACHER, **shape, "bottleneck_dim": 1024})
    tables = 30522 * 128 + (512 + 2 + 2) * 512 + 3 * 128 * 512 + 512
    down, up = 512 * 1024 + 1024 + 2 * 1024, 1024 * 512 + 512 + 2 * 512
    attention = 3 * (512 * 1024 + 1024) + 1024 * 1024 + 1024 + 2 * 1024
    feedforward = 1024 * 4096 + 4096 + 4096 * 1024 + 1024 + 2 * 1024
    assert one.count_params() == tables + down + attention + feedforward + up + 512 * 512 + 512
    assert tables + 24 * (down + attention + feedforward + up) == 294_205_184  # 293 million in the paper


def test_only_the_presence_of_padding_is_seen_and_not_its_amount():
    backbone = randomized(MOBILE.build())
    rows = {length: np.array([[1] * 5 + [0] * length]) for length in (0, 1, 6)}
    ids = np.concatenate([MOBILE.inputs(rows[0])["token_ids"], np.zeros((1, 6), "int32")], 1)
    run = {}
    for length, mask in rows.items():
        x = {"token_ids": ids[:, : 5 + length], "segment_ids": 0 * mask, "padding_mask": mask}
        run[length] = ops.convert_to_numpy(backbone(x)["sequence_output"])[:, :5]
    assert gap(run[1], run[6]) <= 1e-5
    assert gap(run[0], run[1]) > 1e-3
    table = ops.convert_to_numpy(backbone.token_embedding.embeddings).copy()
    table[0] = 0
    backbone.token_embedding.embeddings.assign(table)
    x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": rows[6]}
    assert gap(ops.convert_to_numpy(backbone(x)["sequence_output"])[:, :5], run[0]) <= 1e-5


def original(name, array, norm):
    """The name of a Hugging Face tensor in Google's code, and its array there."""
    layer, leaf = name.replace("mobilebert.", "bert.").rsplit(".", 1)
    if name == "cls.predictions.bias":
        return "cls/predictions/output_bias", array
    if name == "cls.predictions.dense.weight":
        return "cls/predictions/extra_output_weights", array.T
    layer = layer.replace("encoder.layer.", "encoder.layer_").replace(".ffn.", ".ffn_layer_").replace(".", "/")
    if layer == "cls/seq_relationship":
        return f"{layer}/output_{'weights' if leaf == 'weight' else 'bias'}", array
    if layer.endswith("_embeddings"):
        return layer, array
    if layer.endswith("LayerNorm"):
        scope = layer if layer.startswith("cls/") else layer.removesuffix("LayerNorm") + norm
        return f"{scope}/{'gamma' if leaf == 'weight' else 'beta'}", array
    return f"{layer}/{'kernel' if leaf == 'weight' else 'bias'}", array.T if leaf == "weight" else array


def write_archive(folder, tensors, norm="FakeLayerNorm", config=None):
    """Google's files for a Hugging Face model's tensors, with an optimizer's variables among them."""
    folder.mkdir()
    variables = dict(original(name, tensor.numpy(), norm) for name, tensor in tensors.items())
    variables |= {f"{name}/adam_v": 0 * array for name, array in variables.items()} | {"global_step": np.int64(7)}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [tf.compat.v1.get_variable(name, initializer=array) for name, array in variables.items()]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(made).save(session, str(folder / "mobilebert_variables.ckpt"))
    write_vocabulary(folder / "vocab.txt", 97)
    if config:
        (folder / "bert_config.json").write_text(json.dumps(config))
    return folder


PUBLISHED = {
    "mobilebert": {"num_feedforward_networks": 4, "classifier_activation": False},
    # As Google's file has it: what is false, one or layer_norm in its code is left out.
    "tiny": {"use_bottleneck_attention": True, "key_query_shared_bottleneck": False, "classifier_activation": False},
    "with a pooler": {"normalization_type": "layer_norm", "hidden_act": "gelu_new"},
}


@pytest.mark.parametrize(
    ("kind", "with_config"), [("mobilebert", False), ("tiny", False), ("tiny", True), ("with a pooler", False)]
)
def test_googles_archive_equals_its_twin(kind, with_config, tmp_path):
    changes = {"num_attention_heads": 4, **PUBLISHED[kind]}  # the number of heads that all published models have
    ours = tmp_path / "huggingface"
    ours.mkdir()
    model = MOBILE.save_reference(ours, transformers.MobileBertForPreTraining, **changes)
    norm = "LayerNorm" if "normalization_type" in changes else "FakeLayerNorm"
    config = {**MOBILE.sizes, "num_attention_heads": 4, "hidden_act": "gelu" if norm == "LayerNorm" else "relu"}
    config |= {key: value for key, value in changes.items() if value not in (False, "layer_norm", "gelu_new")}
    tensors = load_file(ours / "model.safetensors")
    google = write_archive(tmp_path / "google", tensors, norm, config if with_config else None)
    expected = reference_outputs(model, X)
    x = {**X, "mask_positions": POSITIONS}
    twin = tasks.MaskedLM.from_preset(ours)
    masked_lm = tasks.MaskedLM.from_preset(google)
    assert not masked_lm.load_report.fresh
    assert masked_lm.backbone.hyperparameters == {
        **twin.backbone.hyperparameters,
        "dropout": masked_lm.backbone.dropout,
        "attention_dropout": 0.1,
    }
    assert gap(masked_lm(x), ops.convert_to_numpy(twin(x)), PADDING) <= 1e-6
    if norm == "FakeLayerNorm":  # two of transformers' layer norms have an epsilon that Google's do not
        assert gap(masked_lm(x), expected.prediction_logits, PADDING) <= 2e-5
        assert gap(tasks.NextSentence.from_preset(google)(X), expected.seq_relationship_logits) <= 1e-5
    assert set(masked_lm.load_report.ignored.values()) == {"optimizer state", "a head of another task"}


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    return folder, MOBILE.save_reference(folder, transformers.MobileBertForPreTraining)


def test_the_head_is_the_files_and_not_zeros(pretrained):
    folder, model = pretrained
    masked_lm = tasks.MaskedLM.from_preset(folder)
    assert not masked_lm.load_report.fresh
    tensors = load_file(folder / "model.safetensors")
    assert tensors["cls.predictions.dense.weight"].abs().max() > 0.1
    assert gap(masked_lm.head.extra_embeddings, tensors["cls.predictions.dense.weight"]) == 0
    assert gap(masked_lm.head.bias, tensors["cls.predictions.bias"]) == 0
    x = {**X, "mask_positions": POSITIONS}
    assert gap(masked_lm(x), reference_outputs(model, X).prediction_logits, PADDING) <= 2e-5


@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16"])
def test_the_head_runs_in_half_precision(pretrained, dtype):
    x = {**X, "mask_positions": POSITIONS}
    logits = ops.cast(tasks.MaskedLM.from_preset(pretrained[0], dtype=dtype)(x), "float32")
    assert 0 < gap(logits, reference_outputs(pretrained[1], X).prediction_logits, PADDING) < 0.5


def test_a_head_that_is_not_in_the_file_is_random_and_announced(pretrained, tmp_path):
    tensors = load_file(pretrained[0] / "model.safetensors")
    headless = {name: tensor for name, tensor in tensors.items() if not name.startswith("cls.")}
    save_file(headless, tmp_path / "model.safetensors", {"format": "pt"})
    (tmp_path / "config.json").write_text((pretrained[0] / "config.json").read_text())
    write_vocabulary(tmp_path / "vocab.txt", 97)
    with pytest.warns(UserWarning, match="fresh and in need of training: .*masked_lm/extra_embeddings"):
        masked_lm = tasks.MaskedLM.from_preset(tmp_path)
    for variable in (masked_lm.head.extra_embeddings, masked_lm.head.dense.kernel):
        assert 0.01 < float(ops.convert_to_numpy(variable).std()) < 0.03


def test_copies_of_what_the_head_shares_are_explained_and_others_are_not(pretrained, tmp_path):
    folder, _ = pretrained
    tensors = load_file(folder / "model.safetensors")
    copies = {
        "cls.predictions.decoder.weight": tensors["mobilebert.embeddings.word_embeddings.weight"].clone(),
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].clone(),
    }
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    write_vocabulary(tmp_path / "vocab.txt", 97)
    save_file(tensors | copies, tmp_path / "model.safetensors", {"format": "pt"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = tasks.MaskedLM.from_preset(tmp_path).load_report
    assert report.ignored["cls.predictions.decoder.bias"] == "a copy of cls.predictions.bias"
    strange = {"mobilebert.encoder.layer.0.ffn.7.intermediate.dense.bias": tensors["cls.predictions.bias"].clone()}
    save_file(tensors | strange, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"ffn\.7\.intermediate\.dense\.bias"):
        garden.Backbone.from_preset(tmp_path)


def test_taps_reach_into_every_kind_of_block():
    for changes in ({}, {"attention_input": "bottleneck"}, {"attention_input": "input"}, {"bottleneck_dim": None}):
        backbone = MOBILE.build(**{"num_heads": 4, "hidden_dim": 60, **changes})
        seen = backbone.features("hidden_states", "attention_probs", "queries", "values")(X)
        assert [len(seen[name]) for name in ("hidden_states", "attention_probs", "queries")] == [3, 2, 2]
        assert tuple(seen["queries"][0].shape) == tuple(seen["values"][1].shape) == (2, 9, 4, 15)
        plain = ops.convert_to_numpy(backbone(X)["sequence_output"])
        assert gap(seen["hidden_states"][-1], plain, PADDING) <= 1e-5


def test_the_blocks_survive_saving_in_a_model_of_the_users_own(tmp_path):
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    stack = [layers.FeedForward(16, "relu", name="feedforward_0")]
    attention = layers.BottleneckAttention(layers.Bottleneck(4, "no_norm"), num_heads=2, hidden_dim=4)
    parts = dict(feedforward=layers.FeedForward(12), stack=stack, normalization="no_norm", dropout=0.1)
    inputs = keras.Input((None, 8))
    h = layers.BottleneckBlock(layers.Bottleneck(4), attention, **parts)(inputs)
    outputs = layers.NarrowBlock(layers.Bottleneck(6), layers.Attention(3), layers.FeedForward(7))(h)
    model = randomized(keras.Model(inputs, outputs))
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    assert gap(restored(x), ops.convert_to_numpy(model(x))) == 0


def test_a_bottleneck_drops_from_what_it_adds_and_nothing_inside():
    x = np.random.default_rng(0).normal(size=(1, 7, 44)).astype("float32")
    block = randomized(MOBILE.build(dropout=0.5, attention_dropout=0.0)).blocks[0]
    gamma, beta = (ops.convert_to_numpy(variable) for variable in block.output_norm.weights)
    silent, dropping = (
        (ops.convert_to_numpy(block(x, training=training)) - beta) / gamma - x for training in (False, True)
    )
    kept = np.abs(dropping) > 1e-5
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_allclose(dropping[kept], 2 * silent[kept], atol=1e-5)


def test_what_cannot_be_built_says_why():
    with pytest.raises(ValueError, match="num_heads=7 does not divide bottleneck_dim=60"):
        MOBILE.build(num_heads=7)
    with pytest.raises(ValueError, match="num_heads=5 does not divide hidden_dim=44"):
        MOBILE.build(bottleneck_dim=None)
    with pytest.raises(ValueError, match="no attention_input='none'; there are shared_bottleneck, bottleneck, input"):
        MOBILE.build(attention_input="none")
    with pytest.raises(ValueError, match="no normalization 'batch_norm'; there are layer_norm, rms_norm"):
        MOBILE.build(normalization="batch_norm")
    with pytest.raises(ValueError, match="num_feedforwards=0 has to be at least 1"):
        MOBILE.build(num_feedforwards=0)
    with pytest.raises(ValueError, match="table is 80 wide but the model 44"):
        tasks.MaskedLM.for_backbone(garden.MobileBertBackbone)(MOBILE.build(embedding_dim=80))
