"""brightmart's ALBERT, which transformers does not have, against the original's arithmetic on the original's names."""

import json
import shutil
import warnings

import numpy as np
import pytest
import tensorflow as tf
from families import FAMILIES, gap, inputs, run, write_vocabulary
from keras import ops

import garden
from garden import tasks
from garden.layers import FactorizedEmbedding
from garden.presets import CheckpointError, convert, export_to_transformers, find

ROW = next(row for row in FAMILIES if row.backbone is garden.BrightmartAlbertBackbone)
X = inputs(np.array([[1] * 11, [1] * 7 + [0] * 4]))
POSITIONS = {"mask_positions": np.tile(np.arange(11, dtype="int32"), (2, 1))}
SIZES = {
    "vocab_size": 97,
    "embedding_size": 24,
    "hidden_size": 60,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 70,
    "max_position_embeddings": 33,
    "type_vocab_size": 3,
}
# As in albert_config_tiny.json: no model_type, "gelu" for tanh, and what only other code reads.
CONFIG = {"hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, **SIZES} | {
    "directionality": "bidi",
    "pooler_num_attention_heads": 12,
    "pooler_type": "first_token_transform",
    "ln_type": "postln",
}


def original_variables():
    """Random variables under the names of albert_zh's modeling.py and run_pretraining.py."""
    v, e, d, f, p, s = (SIZES[key] for key in list(SIZES)[:3] + list(SIZES)[5:])
    layer = "bert/encoder/layer_shared"
    tables = {"word_embeddings": (v, e), "word_embeddings_2": (e, d), "position_embeddings": (p, d)}
    tables |= {"token_type_embeddings": (s, d)}
    dense = {f"{layer}/attention/self/{name}": (d, d) for name in ("query", "key", "value")}
    dense |= {f"{layer}/attention/output/dense": (d, d), f"{layer}/intermediate/dense": (d, f)}
    dense |= {f"{layer}/output/dense": (f, d), "bert/pooler/dense": (d, d), "cls/predictions/transform/dense": (d, d)}
    norms = ("bert/embeddings", f"{layer}/attention/output", f"{layer}/output", "cls/predictions/transform")
    shapes = {f"bert/embeddings/{name}": shape for name, shape in tables.items()}
    for name, shape in dense.items():
        shapes |= {f"{name}/kernel": shape, f"{name}/bias": shape[1:]}
    shapes |= {f"{name}/LayerNorm/{part}": (d,) for name in norms for part in ("gamma", "beta")}
    shapes |= {"cls/predictions/output_bias": (v,)}
    shapes |= {"cls/seq_relationship/output_weights": (2, d), "cls/seq_relationship/output_bias": (2,)}
    rng = np.random.default_rng(0)
    return {
        name: rng.normal(1.0 if name.endswith("gamma") else 0.0, 0.2, shape).astype("float32")
        for name, shape in shapes.items()
    }


def original_outputs(variables, x, config=CONFIG):
    """What the original computes: hidden states, pooled output, logits of tokens and of sentence order."""
    w = {name: array.astype("float64") for name, array in variables.items()}
    heads = config["num_attention_heads"]

    def dense(name, h):
        return h @ w[f"{name}/kernel"] + w[f"{name}/bias"]

    def norm(name, h):
        centred = h - h.mean(-1, keepdims=True)
        scaled = centred / np.sqrt(h.var(-1, keepdims=True) + 1e-12)
        return scaled * w[f"{name}/LayerNorm/gamma"] + w[f"{name}/LayerNorm/beta"]

    def gelu(h):
        return h * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))

    def split(h):
        return h.reshape(*h.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    words, factor = w["bert/embeddings/word_embeddings"], w["bert/embeddings/word_embeddings_2"]
    h = words[x["token_ids"]] @ factor + w["bert/embeddings/token_type_embeddings"][x["segment_ids"]]
    h = norm("bert/embeddings", h + w["bert/embeddings/position_embeddings"][: h.shape[1]])
    states, layer = [h], "bert/encoder/layer_shared"
    for _ in range(config["num_hidden_layers"]):
        q, k, v = (split(dense(f"{layer}/attention/self/{name}", h)) for name in ("query", "key", "value"))
        scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]) - 10000.0 * (1 - x["padding_mask"])[:, None, None]
        probabilities = np.exp(scores - scores.max(-1, keepdims=True))
        context = (probabilities / probabilities.sum(-1, keepdims=True)) @ v
        context = context.transpose(0, 2, 1, 3).reshape(h.shape)
        a = norm(f"{layer}/attention/output", dense(f"{layer}/attention/output/dense", context) + h)
        h = norm(f"{layer}/output", dense(f"{layer}/output/dense", gelu(dense(f"{layer}/intermediate/dense", a))) + a)
        states.append(h)
    pooled = np.tanh(dense("bert/pooler/dense", h[:, 0]))
    t = norm("cls/predictions/transform", gelu(dense("cls/predictions/transform/dense", h)))
    tokens = t @ factor.T @ words.T + w["cls/predictions/output_bias"]
    order = pooled @ w["cls/seq_relationship/output_weights"].T + w["cls/seq_relationship/output_bias"]
    return states, pooled, tokens, order


def write_archive(folder, variables, **changes):
    """A folder as albert_tiny_489k.zip unpacks to, with an optimizer's variables among the model's."""
    folder.mkdir()
    slots = {f"{name}/{slot}": 0 * array for name, array in variables.items() for slot in ("adam_m", "adam_v")}
    stored = {**variables, **slots, "global_step": np.int64(489000)}
    tf.raw_ops.SaveV2(
        prefix=str(folder / "albert_model.ckpt"),
        tensor_names=list(stored),
        shape_and_slices=[""] * len(stored),
        tensors=[tf.constant(array) for array in stored.values()],
    )
    (folder / "checkpoint").write_text('model_checkpoint_path: "albert_model.ckpt"\n')
    (folder / "albert_config_tiny.json").write_text(json.dumps(CONFIG | changes))
    write_vocabulary(folder / "vocab.txt", 97)
    return folder


@pytest.fixture(scope="module")
def variables():
    return original_variables()


@pytest.fixture(scope="module")
def archive(variables, tmp_path_factory):
    return write_archive(tmp_path_factory.mktemp("brightmart") / "albert_tiny_489k", variables)


@pytest.fixture(scope="module")
def masked_lm(archive):
    return tasks.MaskedLM.from_preset(archive)


def test_every_hidden_state_equals_the_originals_arithmetic(archive, variables):
    states, pooled, *_ = original_outputs(variables, X)
    backbone = garden.Backbone.from_preset(archive)
    assert type(backbone) is garden.BrightmartAlbertBackbone and not backbone.load_report.fresh
    assert set(backbone.load_report.ignored.values()) == {"optimizer state", "a head of another task"}
    ours = run(backbone.features("hidden_states"), X)
    assert len(ours["hidden_states"]) == len(states) == 4
    for mine, theirs in zip(ours["hidden_states"], states, strict=True):
        assert gap(mine, theirs, X["padding_mask"]) <= 1e-5
    assert gap(ours["pooled_output"], pooled) <= 1e-5
    assert type(garden.AlbertBackbone.from_preset(archive)) is garden.BrightmartAlbertBackbone
    with pytest.raises(TypeError, match="holds a BrightmartAlbertBackbone, not a BertBackbone"):
        garden.BertBackbone.from_preset(archive)


def test_the_masked_lm_head_goes_back_through_both_factors(masked_lm, variables, tmp_path):
    theirs = original_outputs(variables, X)[2]
    assert type(masked_lm) is tasks.BrightmartAlbertMaskedLM and not masked_lm.load_report.fresh
    assert tuple(masked_lm.head.dense.kernel.shape) == (60, 60)
    assert gap(run(masked_lm, {**X, **POSITIONS}), theirs, X["padding_mask"]) <= 1e-5
    masked_lm.save_to_preset(tmp_path / "preset")
    again = tasks.MaskedLM.from_preset(tmp_path / "preset")
    assert gap(run(again, {**X, **POSITIONS}), theirs, X["padding_mask"]) <= 1e-5
    assert again.preprocessor.tokenizer("W5 w6") == [10, 11]  # folded to lower case


def test_the_sentence_order_head_equals_the_originals(archive, variables):
    task = tasks.SentenceOrder.from_preset(archive)
    assert not task.load_report.fresh
    assert gap(run(task, X), original_outputs(variables, X)[3]) <= 1e-5


def test_a_classifier_of_the_original_script_keeps_its_head(variables, archive, tmp_path):
    rng = np.random.default_rng(1)
    head = {"output_weights": rng.normal(size=(4, 60)), "output_bias": rng.normal(size=4)}
    head = {name: array.astype("float32") for name, array in head.items()}
    body = {name: array for name, array in variables.items() if not name.startswith("cls/")}
    classifier = tasks.TextClassifier.from_preset(write_archive(tmp_path / "tuned", body | head))
    assert classifier.num_classes == 4 and not classifier.load_report.fresh
    pooled = original_outputs(variables, X)[1]
    assert gap(run(classifier, X), pooled @ head["output_weights"].T + head["output_bias"]) <= 1e-5
    with pytest.warns(UserWarning, match="fresh and in need of training: classifier/logits/kernel"):
        fresh = tasks.TextClassifier.from_preset(archive, num_classes=2)
    assert fresh.predict(["w1 w2", "w3"], verbose=0).shape == (2, 2)


def test_the_published_archive_is_read_as_it_was_packed(archive, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "albert_tiny_489k"), "zip", archive.parent, archive.name)
    backbone = garden.Backbone.from_preset(packed)
    assert backbone.get_config() | {"name": ""} == garden.Backbone.from_preset(archive).get_config() | {"name": ""}
    sizes = {"embedding_dim": 24, "hidden_dim": 60, "num_groups": 1, "num_inner_repetitions": 1}
    assert sizes.items() <= backbone.hyperparameters.items() and backbone.activation == "gelu_tanh"


def test_norms_in_another_place_are_refused(variables, tmp_path):
    folder = write_archive(tmp_path / "albert_xxlarge", variables, ln_type="preln")
    with pytest.raises(CheckpointError, match=r"norms in another place \(ln_type preln\).*albert_tiny_zh_brightmart"):
        garden.Backbone.from_preset(folder)
    unsaid = write_archive(tmp_path / "unsaid", variables, ln_type=None)
    assert garden.Backbone.from_preset(unsaid).num_layers == 3


def test_what_is_missing_or_strange_is_named(variables, tmp_path):
    halved = {name: array for name, array in variables.items() if not name.endswith("word_embeddings_2")}
    with pytest.raises(CheckpointError, match="it has no tensor for embeddings/token_embedding/projection"):
        garden.Backbone.from_preset(write_archive(tmp_path / "halved", halved))
    folder = tmp_path / "halved"
    (folder / "albert_config_tiny.json").rename(folder / "sizes.json")
    with pytest.raises(CheckpointError, match="no configuration that states its vocab_size: .*sizes.json"):
        garden.Backbone.from_preset(folder)
    strange = {**variables, "bert/encoder/layer_1/output/dense/bias": np.zeros(60, "float32")}
    with pytest.raises(CheckpointError, match="does not explain: bert/encoder/layer_1/output/dense/bias"):
        garden.Backbone.from_preset(write_archive(tmp_path / "strange", strange))


def test_there_is_no_export_to_transformers(masked_lm, archive, tmp_path):
    for model in (masked_lm, masked_lm.backbone):
        with pytest.raises(CheckpointError, match="no model with the graph of a BrightmartAlbertBackbone.*save_to_pre"):
            export_to_transformers(model, tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CheckpointError, match="save_to_preset"):
            convert(archive, tmp_path / "out", format="huggingface")
    assert not (tmp_path / "out").exists()
    convert(archive, tmp_path / "preset", task="MaskedLM")
    assert type(tasks.MaskedLM.from_preset(tmp_path / "preset")) is tasks.BrightmartAlbertMaskedLM


@pytest.mark.parametrize(
    ("name", "layers", "heads", "parameters"),
    [
        ("albert_tiny_zh_brightmart", 4, 12, 4_175_152),
        ("albert_base_zh_brightmart", 12, 12, 10_877_440),
        ("albert_large_zh_brightmart", 24, 16, 17_009_664),
        ("albert_extra_large_zh_brightmart", 24, 32, 58_577_920),
    ],
)
def test_published_sizes(name, layers, heads, parameters):
    row = find(name)
    assert (row.num_layers, row.num_heads, row.parameters) == (layers, heads, parameters)
    one = garden.Backbone.from_preset(name, load_weights=False, num_layers=1)  # all layers share one's weights
    assert one.count_params() == parameters


def test_a_table_as_wide_as_the_model_keeps_its_matrix():
    backbone = ROW.build(embedding_dim=None)
    table = backbone.token_embedding
    assert tuple(table.projection.shape) == (60, 60) and tuple(table.table.embeddings.shape) == (97, 60)
    assert run(backbone, X)["sequence_output"].shape == (2, 11, 60)


def test_the_factorised_table_is_the_product_in_both_directions():
    layer = FactorizedEmbedding(10, 6, embedding_dim=4)
    ids = np.array([[5, 6, 7]])
    read = layer(ids)
    product = ops.convert_to_numpy(layer.table.embeddings) @ ops.convert_to_numpy(layer.projection)
    assert gap(read, product[ids]) <= 1e-6
    h = np.random.default_rng(0).normal(size=(1, 2, 6)).astype("float32")
    assert gap(layer(h, reverse=True), h @ product.T) <= 1e-6
    assert len(layer.trainable_weights) == 2


def test_an_int8_masked_lm_still_goes_through_both_factors(archive, variables):
    masked_lm = tasks.MaskedLM.from_preset(archive, preprocessor=None)
    masked_lm.quantize("int8")
    assert masked_lm.backbone.token_embedding.table.embeddings.dtype == "int8"
    theirs = original_outputs(variables, X)[2]
    assert gap(run(masked_lm, {**X, **POSITIONS}), theirs, X["padding_mask"]) < 0.1 * np.abs(theirs).max()
