"""Embeddings: pooling as published, training on pairs, and neighbours."""

import json

import keras
import keras_hub
import numpy as np
import pytest
import torch
import transformers
from families import ENCODERS, FAMILIES, gap, reference_outputs, run
from keras import ops
from test_tasks import TEXTS, WORDS, small_task

import garden
from garden import tasks
from garden.layers import Pooling, unit_length
from garden.presets import CheckpointError, export_to_transformers
from garden.presets.sentence_transformers import read_pooling

BERT = next(family for family in FAMILIES if family.backbone is garden.BertBackbone)
PAIRS = (["good film", "bad film", "好电影", "the bads"], ["a good", "a bad", "电影", "bads"])


def embedder(**arguments):
    model = small_task(tasks.TextEmbedder, **arguments)
    model.compile(keras.optimizers.Adam(1e-2))
    return model


def pooled_by_torch(states, mask, mode):
    """sentence-transformers' Pooling, for rows padded on the right."""
    mask = torch.tensor(mask)[:, :, None].float()
    return {
        "mean": (states * mask).sum(1) / mask.sum(1),
        "cls": states[:, 0],
        "max": states.masked_fill(mask == 0, -1e9).max(1).values,
    }[mode]


@pytest.mark.parametrize(
    "family", [row for row in ENCODERS if row.reference], ids=lambda family: family.backbone.__name__
)
def test_pooling_equals_the_reference_in_every_family(family, tmp_path):
    reference = family.save_reference(tmp_path, family.reference)
    x = family.inputs(np.array([[1] * 6 + [0] * 5, [1] * 11]))
    states = reference_outputs(reference, x).last_hidden_state
    backbone = family.backbone.from_preset(tmp_path)
    for mode in ("mean", "cls", "max"):
        for normalize in (False, True):
            model = tasks.TextEmbedder.for_backbone(family.backbone)(backbone, pooling_mode=mode, normalize=normalize)
            theirs = pooled_by_torch(states, x["padding_mask"], mode)
            theirs = torch.nn.functional.normalize(theirs, dim=1) if normalize else theirs
            assert gap(run(model, x), theirs) <= 1e-5
    padding = family.inputs(np.zeros((1, 5), "int32"))
    assert (ops.convert_to_numpy(model(padding)) == 0).all()


@pytest.mark.parametrize("mode", ["mean", "cls", "max"])
def test_padding_never_counts_and_a_row_of_it_is_zeros(mode):
    states = np.random.default_rng(0).normal(size=(3, 9, 4)) * 300
    mask = np.array([[1] * 5 + [0] * 4, [0] * 4 + [1, 1, 2, 2, 2], [0] * 9])
    states[1, 4:] = states[0, :5]
    for dtype, tolerance in (("float32", 1e-4), ("float16", 0.2), ("bfloat16", 2)):
        found = ops.convert_to_numpy(Pooling(mode)(ops.cast(states, dtype), mask))
        assert found.dtype == "float32" and (found[2] == 0).all()
        real = states[0, :5]
        expected = {"mean": real.mean(0), "cls": real[0], "max": real.max(0)}[mode]
        assert gap(found[:2], np.stack([expected, expected])) <= tolerance
        unit = ops.convert_to_numpy(Pooling(mode, normalize=True)(ops.cast(states, dtype), mask))
        assert np.allclose(np.linalg.norm(unit, axis=1), [1, 1, 0], atol=1e-6)


def test_an_embedding_of_zeros_has_a_gradient():
    inputs = keras.Input((3,))
    model = keras.Model(inputs, unit_length(keras.layers.Dense(2, kernel_initializer="zeros")(inputs)))
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    with pytest.raises(ValueError, match="pooling_mode='last' is none of mean, cls, max"):
        Pooling("last")


# Real weights


def test_minilm_gives_the_published_cosines():
    model = tasks.TextEmbedder.from_preset("all_minilm_l6_v2_en")
    texts = ["A man is eating food.", "Someone is having a meal.", "The stock market fell sharply today."]
    many = [*texts, "the quick brown fox " * 30, "", "Grüße 😀 from 北京!"]
    found = model.embed(many, batch_size=4)
    assert found.shape == (6, 384) and found.dtype == "float32"
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    cosines = model.similarity(found[:3], found[:3])
    np.testing.assert_allclose([cosines[0, 1], cosines[0, 2], cosines[1, 2]], [0.6888, 0.0037, -0.0226], atol=1e-4)
    assert gap(model.embed(many[::-1], batch_size=6)[::-1], found) <= 1e-5
    assert model.nearest(found[:1], found[1:3], top_k=1)[0].tolist() == [[0]]


# sentence-transformers' files


def write_modules(folder, pooling, *more, length=None):
    steps = ["Transformer", "Pooling", *more]
    paths = ["", *(f"{i}_{step}" for i, step in enumerate(steps) if i)]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{step}"}
        for i, (path, step) in enumerate(zip(paths, steps, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 60, **pooling}), "utf-8")
    if length:
        limit = {"max_seq_length": length, "do_lower_case": False}
        (folder / "sentence_bert_config.json").write_text(json.dumps(limit), "utf-8")


def test_a_folder_is_pooled_as_published_and_written_back(tmp_path):
    source = tmp_path / "source"
    reference = BERT.save_reference(source, BERT.reference)
    plain = tasks.TextEmbedder.from_preset(source)
    assert (plain.pooling_mode, plain.normalize, plain.preprocessor.sequence_length) == ("mean", True, 33)
    write_modules(source, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, length=12)
    model = tasks.TextEmbedder.from_preset(source)
    assert (model.pooling_mode, model.normalize, model.preprocessor.sequence_length) == ("cls", False, 12)
    given = tasks.TextEmbedder.from_preset(source, pooling_mode="max", sequence_length=20)
    assert (given.pooling_mode, given.preprocessor.sequence_length) == ("max", 20)
    (source / "sentence_bert_config.json").rename(source / "sentence_xlm-roberta_config.json")  # another family's
    assert read_pooling(source, 33)["sequence_length"] == 12
    x = model.preprocessor(["w1 w2", "w3 " * 40])
    assert x["token_ids"].shape == (2, 12)
    states = reference_outputs(reference, x).last_hidden_state
    assert gap(model.embed(["w1 w2", "w3 " * 40]), states[:, 0]) <= 1e-5

    export_to_transformers(model, tmp_path / "out")
    reloaded, report = transformers.BertModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert gap(reference_outputs(reloaded.eval(), x).last_hidden_state[:, 0], states[:, 0]) <= 1e-5
    again = tasks.TextEmbedder.from_preset(tmp_path / "out")
    assert (again.pooling_mode, again.normalize, again.preprocessor.sequence_length) == ("cls", False, 12)
    kinds = [step["type"] for step in json.loads((tmp_path / "out" / "modules.json").read_text("utf-8"))]
    assert kinds == ["sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling"]


def test_what_a_folder_asks_for_beyond_garden_is_refused(tmp_path):
    BERT.save_reference(tmp_path, BERT.reference)
    cases = [
        ({"pooling_mode_cls_token": True}, (), "pools by mean and cls; garden has one of cls, mean, max"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_lasttoken": True}, (), "pools by lasttoken"),
        ({}, ("Dense", "Normalize"), "has Dense, which garden's TextEmbedder cannot follow"),
    ]
    for pooling, more, message in cases:
        write_modules(tmp_path, pooling, *more)
        with pytest.raises(CheckpointError, match=message):
            tasks.TextEmbedder.from_preset(tmp_path)
    write_modules(tmp_path, {"pooling_mode": "max"}, "Normalize", length=9999)
    model = tasks.TextEmbedder.from_preset(tmp_path)
    assert (model.pooling_mode, model.normalize, model.preprocessor.sequence_length) == ("max", True, 33)
    (tmp_path / "1_Pooling" / "config.json").unlink()
    with pytest.raises(CheckpointError, match="config.json cannot be read"):
        tasks.TextEmbedder.from_preset(tmp_path)


# Training


def test_losses_equal_torch():
    rng = np.random.default_rng(0)
    pairs, scores = rng.normal(size=(10, 7)).astype("float32"), rng.uniform(-1, 1, 5).astype("float32")
    first, second = (torch.tensor(pairs[i::2]) for i in (0, 1))
    cosines = torch.nn.functional.cosine_similarity(first[:, None], second[None], dim=-1)
    ranking = torch.nn.functional.cross_entropy(20 * cosines, torch.arange(5))
    assert abs(float(tasks.MultipleNegativesRankingLoss()(np.zeros(5), pairs)) - float(ranking)) <= 1e-5
    squared = torch.nn.functional.mse_loss(torch.diagonal(cosines), torch.tensor(scores))
    assert abs(float(tasks.CosineSimilarityLoss()(scores, pairs)) - float(squared)) <= 1e-5


def test_it_learns_from_pairs_and_comes_back_equal(tmp_path):
    model = embedder(pooling_mode="max")
    before = model.evaluate(PAIRS, verbose=0)
    model.fit(PAIRS, epochs=20, validation_data=(PAIRS,), verbose=0)
    first, second = model.embed(PAIRS[0]), model.embed(PAIRS[1])
    scores = torch.tensor(20 * model.similarity(first, second))
    assert (
        abs(model.evaluate(PAIRS, verbose=0) - float(torch.nn.functional.cross_entropy(scores, torch.arange(4)))) < 1e-4
    )
    assert model.evaluate(PAIRS, verbose=0) < 0.1 * before
    assert model.nearest(first, second, top_k=1)[0][:, 0].tolist() == [0, 1, 2, 3]
    expected = model.embed(TEXTS)
    model.save_to_preset(tmp_path / "one")
    model.save(tmp_path / "model.keras")
    one = tasks.TextEmbedder.from_preset(tmp_path / "one")
    one.save_to_preset(tmp_path / "two")
    for restored in (
        keras_hub.models.TextEmbedder.from_preset(str(tmp_path / "two")),
        keras.saving.load_model(tmp_path / "model.keras"),
    ):
        assert type(restored) is tasks.BertTextEmbedder and restored.pooling_mode == "max"
        assert gap(restored.embed(TEXTS), expected) <= 1e-6


def test_it_learns_scores():
    model = embedder()
    model.compile(keras.optimizers.Adam(1e-2), loss=tasks.CosineSimilarityLoss())
    scores = [1.0, -0.5, 0.0, 0.5]
    before = model.evaluate(PAIRS, scores, verbose=0)
    model.fit(PAIRS, scores, epochs=20, verbose=0)
    cosines = np.diagonal(model.similarity(model.embed(PAIRS[0]), model.embed(PAIRS[1])))
    after = model.evaluate(PAIRS, scores, verbose=0)
    assert np.isclose(after, np.square(cosines - scores).mean(), atol=1e-4) and after < 0.5 * before
    with pytest.raises(ValueError, match=r"from -1 to 1, as cosines are \(divide STS-B's by 5\), not 4.5"):
        model.fit(PAIRS, [4.5, 1.0, 0.0, 0.0], verbose=0)
    with pytest.raises(ValueError, match="needs a target for every pair"):
        model.fit(PAIRS, verbose=0)


def test_what_is_no_pair_is_refused():
    model = embedder()
    for x in (TEXTS, (TEXTS, TEXTS, TEXTS)):
        with pytest.raises(ValueError, match="a tuple of two lists of strings"):
            model.fit(x, verbose=0)
    with pytest.raises(ValueError, match="takes no targets"):
        model.fit(PAIRS, [1, 1, 1, 1], verbose=0)
    with pytest.raises(ValueError, match="Columns of different length"):
        model.fit((["good"], ["good", "bad"]), verbose=0)
    with pytest.raises(ValueError, match="put the one text into a list"):
        model.embed("good")
    with pytest.raises(ValueError, match="Row 1 of the batch is None"):
        model.embed(["good", None])
    assert model.embed([]).shape == (0, 16) and model.embed(("good", "bad")).shape == (2, 16)
    assert model.preprocessor.tokenizer.vocabulary_size() == len(WORDS)


# Neighbours


def test_nearest_equals_a_sort_with_ties_by_place():
    rng = np.random.default_rng(0)
    corpus = rng.integers(-1, 2, (97, 3)).astype("float32")  # many of the same direction, and zeros
    queries = rng.integers(-1, 2, (11, 3)).astype("float32")
    cosines = tasks.similarity(queries, corpus)
    order = np.argsort(-cosines, axis=1, kind="stable")
    for top_k in (1, 5, 97, 200):
        for block_size in (1, 10, 4096):
            rows, found = tasks.nearest(queries, corpus, top_k, block_size)
            assert rows.tolist() == order[:, :top_k].tolist()
            assert gap(found, np.take_along_axis(cosines, rows, axis=1)) <= 1e-6
    assert tasks.nearest(queries[:0], corpus, 3)[0].shape == (0, 3)
    assert tasks.nearest(queries, corpus[:0], 3)[0].shape == (11, 0)


def test_bad_embeddings_are_refused():
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(1, 2\) cannot be compared"):
        tasks.similarity([1.0, 2.0], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="Row 1 of the second embeddings is not finite"):
        tasks.nearest([[1.0]], [[1.0], [float("nan")]])
    with pytest.raises(ValueError, match="top_k=0 and block_size=4096 have to be 1 or more"):
        tasks.nearest([[1.0]], [[1.0]], top_k=0)
