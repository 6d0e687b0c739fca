"""Regression and multi-label classification: losses and logits of transformers, targets, and metrics."""

import json

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
import torch
import transformers
from families import FAMILIES, gap, reference_outputs
from test_tasks import LABELS, TEXTS, small_task

import garden
from garden import tasks
from garden.presets import export_to_transformers
from garden.tasks.metrics import multi_label_f1, pearson, ranks, spearman

BERT = next(family for family in FAMILIES if family.backbone is garden.BertBackbone)
NAMES = ["film", "chinese"]
# What holds of each text in the order of NAMES, and a number for each.
SETS = [["film"], ["film"], [], [], ["film", "chinese"], ["film", "chinese"]] * 4
NUMBERS = np.array([1.0, 1.0, -1.0, -1.0, 1.5, 1.5] * 4)


def build(problem, **arguments):
    model = small_task(problem=problem, **arguments)
    model.compile(keras.optimizers.Adam(1e-2))
    return model


@pytest.fixture(scope="module")
def regression():
    model = build("regression")
    model.fit(TEXTS, NUMBERS, batch_size=8, epochs=30, verbose=0)
    return model


@pytest.fixture(scope="module")
def multi_label():
    model = build("multi_label_classification", class_names=NAMES)
    model.fit(TEXTS, SETS, batch_size=8, epochs=15, validation_data=(TEXTS, SETS), verbose=0)
    return model


# The reference: transformers


@pytest.mark.parametrize(
    ("problem", "targets"),
    [
        ("regression", [[2.5], [-1.0]]),
        ("regression", [[2.5, 0.0, 1.0], [-1.0, 3.0, 0.5]]),
        ("multi_label_classification", [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]),
        ("single_label_classification", [2, 0]),
    ],
)
def test_losses_and_exports_equal_transformers(problem, targets, tmp_path):
    width = 3 if np.ndim(targets) == 1 else len(targets[0])
    reference_cls = transformers.BertForSequenceClassification
    reference = BERT.save_reference(tmp_path / "in", reference_cls, num_labels=width, problem_type=problem)
    model = tasks.TextClassifier.from_preset(tmp_path / "in", preprocessor=None)
    assert (model.problem.name, model.num_classes) == (problem, width)
    x = BERT.inputs(np.array([[1] * 11, [1] * 7 + [0] * 4]))
    theirs = reference_outputs(reference, x, labels=torch.tensor(targets))
    assert gap(model(x), theirs.logits) <= 1e-5
    assert abs(model.evaluate(x, np.array(targets), verbose=0)[0] - float(theirs.loss)) <= 1e-5
    export_to_transformers(model, tmp_path / "out")
    reloaded = reference_cls.from_pretrained(tmp_path / "out").eval()
    assert reloaded.config.problem_type == problem
    again = reference_outputs(reloaded, x, labels=torch.tensor(targets))
    assert abs(float(again.loss) - float(theirs.loss)) <= 1e-5


def test_a_published_head_of_one_output_is_a_regression(tmp_path):
    BERT.save_reference(tmp_path, transformers.BertForSequenceClassification, num_labels=1)
    assert "problem_type" not in json.loads((tmp_path / "config.json").read_text("utf-8"))
    model = tasks.TextClassifier.from_preset(tmp_path)
    assert model.problem.name == "regression" and model.num_classes == 1
    with pytest.warns(UserWarning, match="fresh"):
        other = tasks.TextClassifier.from_preset(tmp_path, num_classes=3)
    assert other.problem.name == "single_label_classification"


def test_a_problem_that_is_asked_for_gets_a_head_of_its_own(tmp_path):
    BERT.save_reference(tmp_path / "in", transformers.BertForSequenceClassification, num_labels=3)
    with pytest.warns(UserWarning, match="fresh"):
        model = tasks.TextClassifier.from_preset(tmp_path / "in", problem="regression")
    assert model.num_classes == 1
    small_task(class_names=["bad", "good"]).save_to_preset(tmp_path / "preset")
    with pytest.warns(UserWarning, match="num_classes=2, not 1: the head is fresh"):
        model = tasks.TextClassifier.from_preset(tmp_path / "preset", problem="regression")
    assert model.num_classes == 1 and model.predict_values(["good"]).shape == (1,)


# Both learn, say what they mean, and come back


def test_regression_learns_and_comes_back(regression, tmp_path):
    values = regression.predict_values(TEXTS, batch_size=5)
    assert values.shape == (24,) and values.dtype == "float32"
    assert pearson(values, NUMBERS) > 0.9 and np.square(values - NUMBERS).mean() < 0.5 * NUMBERS.var()
    loss, error = regression.evaluate(TEXTS, NUMBERS, verbose=0)
    assert np.isclose(loss, np.square(values - NUMBERS).mean(), atol=1e-4)
    assert np.isclose(error, np.abs(values - NUMBERS).mean(), atol=1e-4)
    regression.save_to_preset(tmp_path / "one")
    regression.save(tmp_path / "model.keras")
    for model in (
        keras_hub.models.TextClassifier.from_preset(str(tmp_path / "one")),
        tasks.TextClassifier.from_preset(tmp_path / "one"),
        tasks.TextClassifier.from_preset(tmp_path / "one", num_classes=1),
        keras.saving.load_model(tmp_path / "model.keras"),
    ):
        assert model.problem.name == "regression"
        assert gap(model.predict_values(TEXTS), values) <= 1e-5
    with pytest.raises(ValueError, match="numbers and no labels: call predict_values"):
        regression.predict_labels(TEXTS)


def test_multi_label_learns_and_comes_back(multi_label, tmp_path):
    labels, probabilities = multi_label.predict_labels(TEXTS)
    assert labels == SETS and probabilities.shape == (24, 2)
    assert gap(probabilities, 1 / (1 + np.exp(-multi_label.predict(TEXTS, verbose=0)))) <= 1e-6
    truth = np.array([[name in names for name in NAMES] for names in SETS])
    assert multi_label_f1(truth, probabilities > 0.5) == {"micro": 1.0, "macro": 1.0}
    indicators = tf.data.Dataset.from_tensor_slices((TEXTS, truth.astype("int32"))).batch(8)
    for loss, accuracy in (multi_label.evaluate(TEXTS, SETS, verbose=0), multi_label.evaluate(indicators, verbose=0)):
        entropy = -np.log(np.where(truth, probabilities, 1 - probabilities)).mean()
        assert np.isclose(loss, entropy, atol=1e-4) and accuracy == 1.0
    multi_label.save_to_preset(tmp_path)
    restored = keras_hub.models.TextClassifier.from_preset(str(tmp_path))
    assert restored.predict_labels(TEXTS)[0] == SETS
    restored.fit(TEXTS, np.array(SETS, dtype=object), verbose=0)


def test_a_preset_from_before_there_were_problems_is_single_label(tmp_path):
    model = small_task(class_names=["bad", "good"])
    model.save_to_preset(tmp_path)
    task = json.loads((tmp_path / "task.json").read_text("utf-8"))
    del task["config"]["problem"]
    (tmp_path / "task.json").write_text(json.dumps(task), "utf-8")
    restored = tasks.TextClassifier.from_preset(tmp_path)
    assert restored.problem.name == "single_label_classification"
    assert gap(restored.predict_labels(TEXTS)[1], model.predict_labels(TEXTS)[1]) <= 1e-6


# What they refuse


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, float("nan")], r"regression targets must be finite numbers, not nan \(example 1\)"),
        ([float("inf"), 1.0], r"finite numbers, not inf \(example 0\)"),
        ([1.0, "much"], "regression targets must be finite numbers, not "),
        ([1.0, None], "regression targets must be finite numbers, not None"),
        ([[1.0, 2.0], [1.0, 2.0]], r"1 for each example, but they have the shape \(2, 2\)"),
        ([1.0], "Columns of different length"),
    ],
)
def test_bad_numbers_are_one_clear_error(regression, y, message):
    for method in (regression.fit, regression.evaluate):
        with pytest.raises(ValueError, match=message):
            method(["good", "bad"], y, verbose=0)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0, 2], [0, 0]], r"multi-label targets must be 0 or 1, not 2 \(example 0\)"),
        ([[0, 1], [0, 0.5]], r"must be 0 or 1, not 0.5 \(example 1\)"),
        ([[0, float("nan")], [0, 0]], "must be 0 or 1, not nan"),
        ([[0, 1, 1], [0, 0, 0]], r"2 for each example, but they have the shape \(2, 3\)"),
        ([0, 1], r"2 for each example, but they have the shape \(2,\)"),
        ([[0, 1], [0]], "as many for each example"),
        ([["film"], ["flim"]], "Example 1 has the label 'flim', which is none of film, chinese"),
        ([["film"]], "Columns of different length"),
    ],
)
def test_bad_label_sets_are_one_clear_error(multi_label, y, message):
    for method in (multi_label.fit, multi_label.evaluate):
        with pytest.raises(ValueError, match=message):
            method(["good", "bad"], y, verbose=0)


def test_bad_targets_in_a_pipeline_and_settings_are_refused(regression):
    data = tf.data.Dataset.from_tensor_slices((["good", "bad"], [1.0, float("nan")])).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="regression targets must be finite numbers"):
        regression.fit(data, verbose=0)
    with pytest.raises(ValueError, match="problem='sums' is none of single_label_classification, multi_label"):
        small_task(problem="sums", num_classes=2)
    with pytest.raises(ValueError, match="How many classes"):
        small_task(problem="multi_label_classification")
    nameless = small_task(problem="multi_label_classification", num_classes=2)
    with pytest.raises(ValueError, match="knows no class_names: give them to it"):
        nameless.fit(TEXTS, SETS, verbose=0)
    assert nameless.predict_labels([])[0] == []


def test_another_loss_takes_its_own_targets():
    model = small_task(class_names=["bad", "good"])
    model.compile(loss=keras.losses.CategoricalCrossentropy(from_logits=True), metrics=[])
    assert np.isfinite(model.evaluate(TEXTS, np.eye(2)[LABELS], verbose=0))


# Metrics, by hand: the ranks of ties are their mean, and each class counts alike in macro F1.


def test_correlations():
    assert ranks([3, 1, 3, 2, 3]).tolist() == [4, 1, 4, 2, 4]
    a, b = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 4.0, 3.0, 5.0]
    assert np.isclose(pearson(a, b), 0.8) and np.isclose(spearman(a, b), 1 - 6 * 4 / (5 * 24))
    assert np.isclose(spearman([1, 2, 2, 3], [1, 3, 2, 4]), 4.5 / np.sqrt(4.5 * 5))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    assert np.isclose(pearson(x, y), np.corrcoef(x, y)[0, 1])
    assert np.isnan(pearson([0.1] * 3, [1, 2, 3])) and np.isnan(spearman([1, 2, 3], [0.1] * 3))
    for a, b in (([1], [1]), ([1, 2], [1, 2, 3]), ([[1, 2]], [[1, 2]])):
        with pytest.raises(ValueError, match="have no correlation"):
            pearson(a, b)
    with pytest.raises(ValueError, match="NaN or infinity"):
        spearman([1, float("nan")], [1, 2])


def test_multi_label_f1():
    truth = [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    predicted = [[1, 1, 0], [0, 1, 0], [0, 1, 0]]
    # class 0: 2 * 1 / (2 + 1), class 1: 2 * 2 / (2 + 3), class 2: never
    found = multi_label_f1(truth, predicted)
    assert np.isclose(found["micro"], 6 / 8) and np.isclose(found["macro"], (2 / 3 + 4 / 5) / 3)
    assert multi_label_f1([[0]], [[0]]) == {"micro": 0.0, "macro": 0.0}
    with pytest.raises(ValueError, match="compare probabilities with a threshold"):
        multi_label_f1([[1]], [[0.7]])
    with pytest.raises(ValueError, match="shapes"):
        multi_label_f1([1, 0], [1, 0])
