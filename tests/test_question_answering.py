"""Question answering: the published heads of every family, exact answers in every script, and what is refused."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
import transformers
from families import FAMILIES, TWINS, gap, reference_outputs, write_vocabulary
from safetensors.torch import load_file

import garden
from garden import tasks
from garden.tasks import AnswerSpan, Example


def test_the_head_that_google_trains_loads(tmp_path):
    """`cls/squad` as run_squad.py saves it, with the optimizer's slots, beside its twin in Hugging Face's names."""
    bert = next(row for row in FAMILIES if row.backbone is garden.BertBackbone)
    reference = bert.save_reference(tmp_path / "twin", transformers.BertForQuestionAnswering, hidden_act="relu")
    write_google(load_file(tmp_path / "twin" / "model.safetensors"), tmp_path / "google", bert.sizes)
    model = tasks.QuestionAnswering.from_preset(tmp_path / "google")
    assert not [path for path in model.load_report.fresh if not path.startswith("pooler/")]
    x = bert.inputs(np.array([[1] * 11]))
    theirs = reference_outputs(reference, x)
    assert gap(model(x), np.stack([theirs.start_logits, theirs.end_logits], 1)) <= 1e-5


def write_google(tensors, folder, sizes):
    variables = {}
    for name, tensor in tensors.items():
        path, array = name.replace("layer.", "layer_").replace(".", "/"), tensor.numpy()
        path, _, leaf = path.rpartition("/")
        if path == "qa_outputs":
            path = f"cls/squad/output_{leaf}".replace("weight", "weights")
        elif path.endswith("LayerNorm"):
            path += {"weight": "/gamma", "bias": "/beta"}[leaf]
        elif not path.endswith("_embeddings"):
            path, array = f"{path}/{leaf}".replace("weight", "kernel"), array.T
        variables |= {path: array, f"{path}/adam_m": 0 * array}
    folder.mkdir()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [tf.compat.v1.get_variable(name, initializer=array) for name, array in variables.items()]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(made).save(session, str(folder / "model.ckpt-7299"))
    (folder / "bert_config.json").write_text(json.dumps({**sizes, "hidden_act": "relu"}))
    write_vocabulary(folder / "vocab.txt", sizes["vocab_size"])


# Training and answering

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "zurich", "where", "who", "is", "in", "the", ".", "##s"]
CHARACTERS = list("谁在哪里？王芳李雷住于北京上海天气很好，。😀朋友们都说那个是的")
PEOPLE, PLACES = ["王芳", "李雷"], ["北京", "上海"]
FILLER = ["天气很好，", "朋友们都说，", "那个是的。", "😀很好！", "那些ABC，"]


def chinese_examples(count, seed=0, sentences=2):
    """Questions about where, in passages with one place among other sentences."""
    rng, examples = np.random.default_rng(seed), []
    for i in range(count):
        person, place = str(rng.choice(PEOPLE)), str(rng.choice(PLACES))
        passage = [str(sentence) for sentence in rng.choice(FILLER, sentences)]
        passage.insert(int(rng.integers(sentences + 1)), f"{person}住于{place}。")
        passage = "".join(passage)
        examples.append(Example(f"q{i}", "住哪里？", passage, (AnswerSpan(place, passage.index(place)),)))
    return examples


def small_model(sequence_length=24, **settings):
    keras.utils.set_random_seed(1)
    tokenizer = garden.BertTokenizer(list(dict.fromkeys(WORDS + CHARACTERS)), lowercase=True)
    backbone = garden.BertBackbone(tokenizer.vocabulary_size(), 1, 2, 32, 64, dropout=0.0, max_sequence_length=32)
    settings = {"doc_stride": 8, **settings}
    preprocessor = tasks.BertQuestionAnsweringPreprocessor(tokenizer, sequence_length, **settings)
    return tasks.BertQuestionAnswering(backbone, preprocessor)


@pytest.fixture(scope="module")
def trained():
    model = small_model()
    model.compile(keras.optimizers.Adam(5e-3), metrics=None)
    examples = chinese_examples(96)
    # Passages without what is asked for, as in SQuAD 2.0.
    examples += [Example(f"n{i}", "住哪里？", "天气很好，" * (1 + i % 4), ()) for i in range(24)]
    losses = model.fit(examples, batch_size=16, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < 0.1 * losses[0]
    return model


def answers(model, examples, **settings):
    return model.predict_answers([e.question for e in examples], [e.passage for e in examples], **settings)


def test_it_learns_to_answer_exactly(trained):
    # Passages of eight sentences are several windows; it was trained on three.
    examples = chinese_examples(30, seed=1) + chinese_examples(10, seed=2, sentences=8)
    found = answers(trained, examples, batch_size=7)
    predictions = {f"{i}": answer.text for i, answer in enumerate(found)}
    examples = [example._replace(id=f"{i}") for i, example in enumerate(examples)]
    figures = tasks.evaluate_answers(examples, predictions, tasks.CMRC)
    assert figures == {"exact_match": 100.0, "f1": 100.0, "total": 40}
    for example, answer in zip(examples, found, strict=True):
        assert (answer.text, answer.start) == example.answers[0]
        for candidate in (answer, *answer.n_best):
            assert example.passage[candidate.start : candidate.end] == candidate.text
        assert sum(candidate.probability for candidate in answer.n_best) == pytest.approx(1, abs=1e-6)


def test_an_answer_in_the_last_window(trained):
    passage = "天气很好，朋友们都说，" * 8 + "李雷住于上海。"
    assert len(trained.preprocessor.windows("住哪里？", passage)) > 8
    answer = trained.predict_answers(["住哪里？"], [passage])[0]
    assert (answer.text, answer.start, answer.end) == ("上海", len(passage) - 3, len(passage) - 1)


def test_neither_batches_nor_padding_change_an_answer(trained):
    examples = chinese_examples(5, seed=3, sentences=2) + chinese_examples(2, seed=3, sentences=5)
    expected = answers(trained, examples)
    other = [answers(trained, examples, batch_size=4), [answers(trained, [e], batch_size=1)[0] for e in examples]]
    trained.preprocessor.pad_to_multiple_of = 12
    other.append(answers(trained, examples))
    trained.preprocessor.pad_to_multiple_of = None
    for found in other:
        for ours, theirs in zip(found, expected, strict=True):
            assert ours[:3] == theirs[:3] and abs(ours.score - theirs.score) <= 1e-4


def test_the_null_threshold_decides_whether_there_is_an_answer(trained):
    examples = chinese_examples(6, seed=4) + [Example("n", "住哪里？", "天气很好，" * 3, ())]
    found = answers(trained, examples, null_threshold=0.0)
    assert [bool(answer.text) for answer in found] == [True] * 6 + [False]
    assert (found[-1].start, found[-1].end) == (0, 0) and found[-1].null_odds > 0
    assert all("" in [candidate.text for candidate in answer.n_best] for answer in found)
    # Without a threshold every question gets an answer, and "" is no candidate.
    forced = answers(trained, examples)
    assert all(answer.text and all(candidate.text for candidate in answer.n_best) for answer in forced)
    assert [answer.null_odds for answer in forced] == pytest.approx([answer.null_odds for answer in found], abs=1e-4)
    threshold, best = tasks.best_null_threshold(
        examples,
        {example.id: answer.text for example, answer in zip(examples, forced, strict=True)},
        {example.id: answer.null_odds for example, answer in zip(examples, forced, strict=True)},
        tasks.CMRC,
    )
    assert best == 100 and threshold < found[-1].null_odds


def test_n_best_is_sorted_and_of_the_asked_length(trained):
    for n_best in (1, 3, 20):
        answer = answers(trained, chinese_examples(1), n_best=n_best, max_answer_length=4)[0]
        assert len(answer.n_best) == n_best and answer.n_best[0].text == answer.text
        scores = [candidate.score for candidate in answer.n_best]
        assert scores == sorted(scores, reverse=True) and len({c.text for c in answer.n_best}) == n_best
        assert all(len(candidate.text) <= 6 for candidate in answer.n_best)


@pytest.mark.parametrize(
    "passage", ["李", "😀", "e\u0301", "Ａ", "\u3000李\u3000", "Zürich\u2028❤\ufe0f", "cafe\u0301s", "王芳" * 40]
)
def test_passages_of_any_kind_give_exact_pieces(trained, passage):
    answer = trained.predict_answers("谁？", passage)[0]
    for candidate in (answer, *answer.n_best):
        assert candidate.text and candidate.text == passage[candidate.start : candidate.end]
        assert candidate.text == candidate.text.strip()
    if len(passage) == 2:  # the letter and its accent
        assert answer.text == passage


def test_a_question_longer_than_the_row(trained):
    answer = trained.predict_answers(["谁住？" * 200], ["李雷住于上海。"])[0]
    assert answer.text in "李雷住于上海。"


def test_save_load_save(trained, tmp_path):
    examples = chinese_examples(5, seed=5, sentences=6)
    expected = answers(trained, examples)
    trained.save_to_preset(tmp_path / "one")
    one = tasks.QuestionAnswering.from_preset(tmp_path / "one")
    one.save_to_preset(tmp_path / "two")
    two = tasks.QuestionAnswering.from_preset(tmp_path / "two", doc_stride=4)
    trained.save(tmp_path / "model.keras")
    for model in (one, two, keras.saving.load_model(tmp_path / "model.keras")):
        assert type(model) is tasks.BertQuestionAnswering and model.dropout == 0.0
        assert model.preprocessor.sequence_length == 24 and model.preprocessor.max_query_length == 64
        assert model.preprocessor.doc_stride == (4 if model is two else 8)
        assert [answer.text for answer in answers(model, examples)] == [answer.text for answer in expected]
        if model is not two:
            gaps = [abs(a.score - b.score) for a, b in zip(answers(model, examples), expected, strict=True)]
            assert max(gaps) <= 1e-5
    one.fit(examples, verbose=0)


def test_the_loss_is_that_of_the_reference(tmp_path):
    bert = next(row for row in FAMILIES if row.backbone is garden.BertBackbone)
    reference = bert.save_reference(tmp_path, transformers.BertForQuestionAnswering)
    model = tasks.QuestionAnswering.from_preset(tmp_path, preprocessor=None)
    x = bert.inputs(np.ones((4, 11), "int32"))
    y = np.array([[0, 0], [3, 5], [9, 10], [1, 1]], "int32")
    starts, ends = torch.tensor(y).long().T
    theirs = reference_outputs(reference, x, start_positions=starts, end_positions=ends).loss
    assert gap(model.evaluate(x, y, verbose=0)[0], theirs) <= 1e-5


def test_a_file_is_read_and_measured(tmp_path):
    examples = chinese_examples(8)
    paragraphs = [
        {
            "context": e.passage,
            "qas": [
                {"id": e.id, "question": e.question, "answers": [{"text": s.text, "answer_start": s.start}]}
                for s in e.answers
            ],
        }
        for e in examples
    ]
    (tmp_path / "train.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), "utf-8")
    model = small_model()
    from_file = model.fit(tmp_path / "train.json", validation_data=str(tmp_path / "train.json"), verbose=0).history
    other = small_model()
    assert from_file["loss"] == pytest.approx(other.fit(examples, verbose=0).history["loss"], abs=1e-6)
    assert from_file["val_loss"] == pytest.approx([other.evaluate(examples, verbose=0)[0]], abs=1e-5)


def test_pairs_of_strings_and_positions_work_as_in_keras(tmp_path):
    model = small_model(sequence_length=16)
    pairs = (["谁？", "哪里？"] * 4, ["王芳住于北京。"] * 8)
    packed = model.preprocessor(pairs)
    assert packed["token_ids"].shape == (8, 16) and packed["segment_ids"][0].tolist() == [0] * 4 + [1] * 8 + [0] * 4
    logits = model.predict(pairs, verbose=0)
    assert logits.shape == (8, 2, 16)
    assert gap(model(packed), logits) <= 1e-5
    dataset = tf.data.Dataset.from_tensor_slices((pairs, np.tile([[4, 5]], (8, 1)))).batch(8)
    assert gap(model.predict(dataset, verbose=0), logits) <= 1e-5
    model.fit(dataset, verbose=0)
    with pytest.raises(ValueError, match="labels must be whole numbers from 0 to 15, not 16"):
        model.fit(pairs, np.tile([[4, 16]], (8, 1)), verbose=0)
    if keras.config.backend() != "torch":
        tasks.export_saved_model(model, tmp_path / "served")
        served = tf.saved_model.load(str(tmp_path / "served"))
        assert (
            gap(served.serve_pairs(*map(tf.constant, pairs)).numpy(), keras.ops.convert_to_numpy(model(packed))) <= 1e-5
        )


def test_half_precision_is_finite():
    tokenizer = small_model().preprocessor.tokenizer
    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, max_sequence_length=16)
    backbone = garden.BertBackbone(tokenizer.vocabulary_size(), **size, dtype="mixed_bfloat16")
    model = tasks.BertQuestionAnswering(backbone, tasks.BertQuestionAnsweringPreprocessor(tokenizer, 16))
    assert np.isfinite(model.fit(chinese_examples(4), verbose=0).history["loss"]).all()
    answer = model.predict_answers(["谁？"], ["王芳" * 8])[0]
    assert np.isfinite([answer.score, answer.probability, answer.null_odds]).all()


# What is refused


def test_bad_examples_are_one_clear_error():
    model, good = small_model(), chinese_examples(1)[0]
    for example, message in (
        (good._replace(answers=None), "Question q0 has no answers, not even that there is none"),
        (
            good._replace(answers=(AnswerSpan("北京", 500),)),
            "Question q0: the passage of .* does not have the answer '北京' at 500",
        ),
        (good._replace(answers=(AnswerSpan("北京", -3),)), "does not have the answer '北京' at -3"),
        (good._replace(answers=(AnswerSpan("", 0),)), "does not have the answer '' at 0"),
        (good._replace(answers=(AnswerSpan("巴黎", None),)), "nothing to learn from"),
        (good._replace(passage="", answers=()), "Question q0: the passage is empty"),
        (good._replace(question=" "), "Question q0: the question is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit([example], verbose=0)
    with pytest.warns(UserWarning, match="1 examples whose answer is not in the passage are left out, such as q0"):
        model.fit([good._replace(answers=(AnswerSpan("巴黎", None),)), chinese_examples(2)[1]], verbose=0)
    with pytest.raises(ValueError, match="the input is empty"):
        model.fit([], verbose=0)
    with pytest.raises(FileNotFoundError):
        model.fit("nowhere.json", verbose=0)


@pytest.mark.parametrize(
    ("questions", "passages", "settings", "message"),
    [
        (["谁？", "谁？"], ["王芳"], {}, "2 questions but 1 passages"),
        (["谁？", "谁？"], ["王芳", " "], {}, "Question 1: the passage is empty"),
        ([""], ["王芳"], {}, "Question 0: the question is empty"),
        ([None], ["王芳"], {}, "Row 0 of the batch is None, not a string"),
        (["谁？"], ["王芳\ud83d"], {}, "surrogate"),
        (["谁？"], ["王芳"], {"n_best": 0}, "n_best=0 has to be 1 or more"),
        (["谁？"], ["王芳"], {"max_answer_length": 0}, "max_answer_length=0 has to be 1 or more"),
        (["谁？"], ["王芳"], {"batch_size": 0}, "batch_size=0 has to be 1 or more"),
    ],
)
def test_bad_questions_are_one_clear_error(trained, questions, passages, settings, message):
    with pytest.raises(ValueError, match=message):
        trained.predict_answers(questions, passages, **settings)


def test_no_questions_have_no_answers(trained):
    assert trained.predict_answers([], []) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sequence_length": 4}, "sequence_length=4"),
        ({"doc_stride": 0}, "doc_stride=0 has to be 1 or more"),
        ({"max_query_length": 0}, "max_query_length=0 has to be 1 or more"),
        ({"pad_to_multiple_of": 0}, "pad_to_multiple_of=0 has to be 1 or more"),
        ({"sequence_length": 33}, "sequence_length=33 is more than this backbone's 32 positions"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        small_model(**settings).predict_answers(["谁？"], ["王芳"])


def test_without_a_preprocessor_it_takes_ids_only():
    model = small_model()
    packed = model.preprocessor((["谁？"], ["王芳"]))
    model.preprocessor = None
    assert model.predict(packed, verbose=0).shape[:2] == (1, 2)
    with pytest.raises(ValueError, match="no preprocessor"):
        model.predict_answers(["谁？"], ["王芳"])
    with pytest.raises(ValueError, match="not examples"):
        model.fit(chinese_examples(1), verbose=0)
    with pytest.raises(ValueError, match="not one column of text"):
        small_model().predict(["谁？"], verbose=0)


def test_dropout_is_the_published_one():
    rates = {row.backbone: getattr(row.config(), "qa_dropout", 0.0) for row in TWINS}
    assert {backbone: backbone.question_answering_dropout for backbone in rates} == rates
