"""Multiple choice: parity with the published heads, questions with different numbers of choices, and the readers."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
import transformers
from families import FAMILIES, TWINS, gap, run
from test_tasks import WORDS, small_task

from garden import tasks
from garden.presets import convert, export_to_transformers
from garden.presets.family import families

CONTEXTS = ["a good film", "the bads", "好电影 👍", "a bad film"] * 4
QUESTIONS = ["the film", "a", "电影", "film"] * 4
CHOICES = [["a film", "bad"], ["bad", "good", "film"], ["坏", "影", "好", "a"], ["the", "film"]] * 4
ANSWERS = [0, 2, 1, 1] * 4
SAMPLES = (CONTEXTS, QUESTIONS, CHOICES)


@pytest.fixture(scope="module")
def trained():
    model = small_task(tasks.MultipleChoice, sequence_length=12)
    model.compile(keras.optimizers.Adam(1e-2))
    model.fit(SAMPLES, ANSWERS, batch_size=8, epochs=15, verbose=0)
    return model


def reference_logits(model, x):
    segments = {"token_type_ids": torch.tensor(x["segment_ids"]).long()} if "segment_ids" in x else {}
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(x["token_ids"]).long(), attention_mask=torch.tensor(x["padding_mask"]), **segments
        ).logits


def architecture(row):
    """transformers' class of this head, by the family's table; empty for a family that has none there."""
    table = next(family for family in families().values() if family.backbone == row.backbone.__name__)
    return table.heads["MultipleChoice"].architecture if "MultipleChoice" in table.heads else ""


PUBLISHED = [row for row in TWINS if architecture(row)]


@pytest.mark.parametrize("family", PUBLISHED, ids=lambda family: family.backbone.__name__)
def test_published_heads_load_and_export_equal(family, tmp_path):
    reference = family.save_reference(tmp_path / "in", getattr(transformers, architecture(family)))
    model = tasks.MultipleChoice.from_preset(tmp_path / "in")
    assert model.load_report.fresh == [] and "classifier/logits/kernel" in model.load_report.loaded
    x = family.inputs(family.padded(np.array([[1] * 11, [1] * 7 + [0] * 4, [1] * 2 + [0] * 9] * 2)))
    x = {key: array.reshape(2, 3, 11) for key, array in x.items()}
    theirs = reference_logits(reference, x)
    assert theirs.shape == (2, 3) and gap(run(model, x), theirs) <= 1e-5
    export_to_transformers(model, tmp_path / "out")
    reloaded, report = type(reference).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert gap(run(model, x), reference_logits(reloaded.eval(), x)) <= 1e-5
    convert(tmp_path / "in", tmp_path / "preset")  # its config names the head
    assert gap(run(tasks.MultipleChoice.from_preset(tmp_path / "preset"), x), theirs) <= 1e-5


def test_it_learns_and_comes_back_equal(trained, tmp_path):
    chosen, probabilities = trained.predict_choices(SAMPLES, batch_size=5)
    assert chosen.tolist() == ANSWERS and probabilities.shape == (16, 4)
    loss, accuracy = trained.evaluate(SAMPLES, ANSWERS, verbose=0)
    right = probabilities[np.arange(16), ANSWERS]
    assert accuracy == 1.0 and np.isclose(loss, -np.log(right).mean(), atol=1e-4)
    trained.save_to_preset(tmp_path / "one")
    one = tasks.MultipleChoice.from_preset(tmp_path / "one")
    one.save_to_preset(tmp_path / "two")
    trained.save(tmp_path / "model.keras")
    restored = (tasks.MultipleChoice.from_preset(tmp_path / "two"), keras.saving.load_model(tmp_path / "model.keras"))
    for model in restored:
        assert type(model) is tasks.BertMultipleChoice and model.preprocessor.truncate == "first"
        assert gap(model.predict_choices(SAMPLES)[1], probabilities) <= 1e-5
    one.fit(SAMPLES, ANSWERS, validation_data=(SAMPLES, ANSWERS), verbose=0)


def test_a_choice_that_does_not_exist_changes_nothing(trained):
    _, together = trained.predict_choices(SAMPLES)
    assert (together[0, 2:] == 0).all() and (together[1, 3:] == 0).all()
    for i in range(3):
        one = tuple([column[i]] for column in SAMPLES)
        _, alone = trained.predict_choices(one)
        assert alone.shape == (1, len(CHOICES[i]))
        assert gap(alone[0], together[i, : len(CHOICES[i])]) <= 1e-5


def test_the_context_loses_first():
    model = small_task(tasks.MultipleChoice, sequence_length=9)
    words = {i: word for i, word in enumerate(WORDS)}

    def rows(context, choice):
        x = model.preprocessor(([context], ["the"], [[choice, "bad"]]))
        return [[" ".join(words[i] for i in row if i) for row in question] for question in x["token_ids"].tolist()][0]

    assert rows("a good film a good film", "film")[0] == "[CLS] a good film a [SEP] the film [SEP]"
    assert rows("a good film", "film film film film film film")[0] == "[CLS] [SEP] the film film film film film [SEP]"
    model.preprocessor.truncate = "round_robin"
    assert rows("a good film a", "film film film")[0] == "[CLS] a good film [SEP] the film film [SEP]"
    x = model.preprocessor((["a"], ["the"], [["film", "film film"]]))
    assert x["segment_ids"].tolist()[0] == [[0, 0, 0, 1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1, 0, 0]]


def test_datasets_and_ids_work_too(trained):
    padded = [[*row, *[""] * (4 - len(row))] for row in CHOICES]
    data = tf.data.Dataset.from_tensor_slices(((CONTEXTS, QUESTIONS, padded), ANSWERS)).batch(8)
    assert trained.evaluate(data, verbose=0)[1] == 1.0
    ids, expected = trained.preprocessor(SAMPLES), trained.predict(SAMPLES, verbose=0)
    preprocessor, trained.preprocessor = trained.preprocessor, None
    try:
        assert gap(trained.predict(ids, verbose=0), expected) <= 1e-5
        assert trained.evaluate(ids, np.array(ANSWERS), verbose=0)[1] == 1.0
        with pytest.raises(ValueError, match="places among the choices of their question, from 0, not 2"):
            trained.preprocess_samples(ids, np.full(16, 2))
    finally:
        trained.preprocessor = preprocessor


def test_answers_in_a_pipeline_are_checked_too():
    data = tf.data.Dataset.from_tensor_slices(((["a"] * 2, ["a"] * 2, [["a", "a"], ["a", ""]]), [1, 1])).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="places among the choices of their question"):
        small_task(tasks.MultipleChoice).fit(data, verbose=0)


@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16"])
def test_half_precision_is_finite(dtype):
    family = FAMILIES[0]
    model = tasks.MultipleChoice.for_backbone(family.backbone)(family.build(dtype=dtype))
    x = family.inputs(np.array([[0] * 9, [1] * 9, [0] * 9, [0] * 9]))
    logits = model({name: array.reshape(2, 2, 9) for name, array in x.items()})
    logits = keras.ops.convert_to_numpy(keras.ops.cast(logits, "float32"))
    assert np.isfinite(logits).all() and model.problem.values(logits)[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((["a"], ["a"]), [0], "a tuple of contexts, questions and choices"),
        ((["a"], ["a"], [["good", "bad"]]), [2], "labels must be whole numbers from 0 to 1, not 2"),
        (
            (["a", "a"], ["a", "a"], [["a", "a", "a"], ["a", "a"]]),
            [2, 2],
            "The answer to question 1 is choice 2, but it has 2, from 0",
        ),
        ((["a"], ["a"], [["good", "bad"]]), [-1], "labels must be whole numbers"),
        ((["a"], ["a"], [[]]), [0], "Question 0 has no choices"),
        ((["a"], ["a"], [["", "good"]]), [0], "Question 0 has an empty choice"),
        ((["a"], ["a"], ["good"]), [0], "The choices of question 0 are 'good': give a list"),
        ((["a"], ["a"], [["good", None]]), [0], "is None, not a string"),
        ((["a", "a"], ["a"], [["good", "bad"]]), [0], "contexts 2, questions 1, choices 1"),
        (([], [], []), [], "the input is empty"),
    ],
)
def test_bad_samples_are_one_clear_error(trained, x, y, message):
    for method in (trained.fit, trained.evaluate):
        with pytest.raises(ValueError, match=message):
            method(x, y, verbose=0)


def test_odd_texts_work(trained):
    assert trained.predict_choices(([], [], []))[0].shape == (0,)
    for context in ("", "good " * 600, "👍🏽🇨🇳"):
        _, probabilities = trained.predict_choices(([context], [""], [["a", "好 " * 100]]))
        assert np.isfinite(probabilities).all() and np.isclose(probabilities.sum(), 1)


# The readers


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "utf-8")
    return path


RACE = {
    "article": "It rained.",
    "questions": ["The street is _ .", "Why?"],
    "options": [["dry", "wet"], ["a", "b", "c", "d"]],
    "answers": ["B", "D"],
}
C3 = [
    [["男：你好。", "女：再见😀。"], [{"question": "谁先说？", "choice": ["男", "女"], "answer": "女"}], "1-1"],
    [["他病了。"], [{"question": "他怎么了？", "choice": ["好", "病", "走"], "answer": "好"}], "1-2"],
]
SWAG = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"


def test_race_swag_and_c3_are_read(tmp_path):
    write(tmp_path / "race" / "high" / "2.txt", RACE)
    write(tmp_path / "race" / "middle" / "1.txt", {**RACE, "answers": ["A", "A"]})
    (contexts, questions, choices), answers = tasks.read_race(tmp_path / "race")
    assert answers == [1, 3, 0, 0] and contexts == ["It rained."] * 4
    assert questions[0] == "The street is _ ." and choices[1] == ["a", "b", "c", "d"]

    swag = write(
        tmp_path / "swag.csv", SWAG + '0,v,1,"He sits, he",He sits.,He,gold,"runs, fast",eats,sleeps,flies,2\n'
    )
    assert tasks.read_swag(swag) == ((["He sits."], ["He"], [["runs, fast", "eats", "sleeps", "flies"]]), [2])
    unlabelled = write(tmp_path / "test.csv", SWAG.replace(",label", "") + "0,v,1,s,He sits.,He,gold,a,b,c,d\n")
    assert tasks.read_swag(unlabelled)[1] is None

    (contexts, questions, choices), answers = tasks.read_c3(write(tmp_path / "c3.json", C3))
    assert contexts == ["男：你好。\n女：再见😀。", "他病了。"] and answers == [1, 0]
    assert questions[1] == "他怎么了？" and choices == [["男", "女"], ["好", "病", "走"]]


def test_malformed_files_are_one_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no .txt file of RACE"):
        tasks.read_race(tmp_path)
    cases = [
        ({**RACE, "answers": ["B", "E"]}, r"1\.txt, question 1 has the answer 'E', which is none of A, B, C, D"),
        ({**RACE, "answers": ["B"]}, r"1\.txt has 2, 2, 1 questions, options and answers"),
        ({**RACE, "options": [["dry"], ["a", "b"]]}, "question 0 has fewer than two choices"),
        ({"article": ""}, "has no 'questions'"),
        ("{", "is no JSON in UTF-8"),
    ]
    for content, message in cases:
        write(tmp_path / "1.txt", content)
        with pytest.raises(ValueError, match=message):
            tasks.read_race(tmp_path)
    question = {"question": "?", "choice": ["a", "b"], "answer": "c"}
    cases = [
        ([[["p"], [question], "id"]], "passage 0, question 0 has the answer 'c', which is none of a, b"),
        ([[["p"], [{"question": "?"}], "id"]], "passage 0, question 0 has no 'choice'"),
        ([C3[0], ["p"]], "passage 1 is not a list of lines"),
    ]
    for content, message in cases:
        with pytest.raises(ValueError, match=message):
            tasks.read_c3(write(tmp_path / "c3.json", content))
    cases = [
        (SWAG + "0,v,1,s,He sits.,He,gold,a,b,c,d,4\n", r"swag\.csv, line 2 has the answer '4', which is none of 0, 1"),
        ("text,label\na,b\n", "has no column sent1, sent2"),
        (SWAG + "0,v,1\n", "line 2 has a text, question or choice that is no string"),
    ]
    for content, message in cases:
        with pytest.raises(ValueError, match=message):
            tasks.read_swag(write(tmp_path / "swag.csv", content))
