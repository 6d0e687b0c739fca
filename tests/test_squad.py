"""The files of SQuAD, CMRC2018 and DRCD, and measures worked out by hand from the official scripts' rules."""

import json

import numpy as np
import pytest

from garden.tasks import CMRC, Answer, AnswerSpan, Candidate, Example, best_null_threshold, evaluate_answers, read_squad
from garden.tasks import write_predictions as write
from garden.tasks.cmrc_metrics import cmrc_exact_match, cmrc_f1, segments
from garden.tasks.squad_metrics import exact_match, f1

PASSAGE = "Beyoncé 👍🏽 grew up in Houston, Texas. Houston is large."


def squad(*questions, passage=PASSAGE):
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": passage, "qas": list(questions)}]}]}


def question(id, *answers, **more):
    spans = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": id, "question": "Where?", "answers": spans, **more}


@pytest.fixture
def read(tmp_path):
    def written_and_read(content):
        file = tmp_path / "file.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return read_squad(file)

    return written_and_read


def test_squad_1_and_drcd(read):
    content = squad(question("a", ("Houston", 22), ("Houston, Texas", 22)), question("b", ("Beyoncé", 0)))
    # DRCD and CMRC2018 number paragraphs and answers as well.
    content["data"][0]["paragraphs"][0]["id"] = "1147-5"
    content["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["id"] = "1"
    one, two = read(content)
    assert one == Example("a", "Where?", PASSAGE, (AnswerSpan("Houston", 22), AnswerSpan("Houston, Texas", 22)))
    assert two.answers == (AnswerSpan("Beyoncé", 0),)
    for span in (*one.answers, *two.answers):
        assert PASSAGE[span.start : span.start + len(span.text)] == span.text


def test_squad_2_knows_questions_without_answer(read):
    plausible = {"plausible_answers": [{"text": "Texas", "answer_start": 31}]}
    unlabelled = {"id": "d", "question": "Where?"}
    examples = read(
        squad(question("a", ("Texas", 31), is_impossible=False), question("b", is_impossible=True, **plausible))
        | {"extra": 1}
    )
    assert [example.answers for example in examples] == [(AnswerSpan("Texas", 31),), ()]
    assert [example.answers for example in read(squad(question("c"), unlabelled))] == [(), None]


def test_cmrc_2018_in_its_first_layout(read):
    text = "尤金袋鼠分布在澳洲。尤金袋鼠约只有8公斤重。"
    qas = [{"query_id": "TRIAL_154_QUERY_3", "query_text": "体重多少？", "answers": ["约只有8公斤重", "8公斤"]}]
    (example,) = read([{"context_id": "TRIAL_154", "context_text": text, "qas": qas, "title": "尤金袋鼠"}])
    assert example == Example(
        "TRIAL_154_QUERY_3", "体重多少？", text, (AnswerSpan("约只有8公斤重", 14), AnswerSpan("8公斤", 17))
    )


def test_misplaced_answers_are_found_and_lost_ones_counted(read):
    with pytest.warns(UserWarning, match="2 answers are not at their answer_start .* first of a"):
        one, two = read(squad(question("a", ("Houston", 24)), question("b", ("Houston", 45))))
    assert one.answers == (AnswerSpan("Houston", 22),) and two.answers == (AnswerSpan("Houston", 38),)
    with pytest.warns(UserWarning, match="1 answers are not in the passage, first of b"):
        one, two = read(squad(question("a", ("Texas", 31)), question("b", ("Paris", 500), ("Texas", 31))))
    assert two.answers == (AnswerSpan("Paris", None), AnswerSpan("Texas", 31))
    with pytest.warns(UserWarning, match="not at their answer_start"):
        assert read(squad(question("a", ("Texas", -1))))[0].answers == (AnswerSpan("Texas", 31),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (squad(question("a", ("Texas", 31)), question("a", ("Texas", 31))), "the id a occurs twice"),
        (squad(question("a", ("Texas", 0)), passage="  "), "question a has an empty passage, '  '"),
        (squad(question("a", ("", 0))), "question a has an empty answer, ''"),
        (squad({**question("a", ("Texas", 31)), "question": ""}), "question a has an empty question, ''"),
        (squad({**question("a", ("Texas", 31)), "question": None}), "question a has an empty question, None"),
        (squad(question("a", ("Texas", 31)), {"question": "?"}), "at what follows question a, there is no 'id'"),
        ({"data": [{"paragraphs": [{"qas": [question("a")]}]}]}, "at the first question, there is no 'context'"),
        ({"questions": []}, "layout neither of SQuAD nor of CMRC2018: at the first question, there is no 'data'"),
        ([{"context_text": "a"}], "there is no 'qas'"),
        (["text"], "layout neither of SQuAD nor of CMRC2018"),
        ("3", "layout neither of SQuAD nor of CMRC2018"),
        ("{", "is not JSON in UTF-8"),
    ],
)
def test_files_that_are_wrong_are_one_clear_error(read, content, message):
    with pytest.raises(ValueError, match=message):
        read(content)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_squad(tmp_path / "none.json")


def test_predictions_are_written_as_google_writes_them(tmp_path):
    candidate = Candidate("德国 👍🏽", 3, 8, 1.5, 0.75)
    answer = Answer(*candidate, [candidate, Candidate("", 0, 0, 0.4, 0.25)], 0.4, -1.1)
    write(tmp_path / "out", ["q1"], [answer])
    read = {file.name: json.loads(file.read_text("utf-8")) for file in (tmp_path / "out").iterdir()}
    assert read["predictions.json"] == {"q1": "德国 👍🏽"} and read["null_odds.json"] == {"q1": -1.1}
    assert [entry["text"] for entry in read["nbest_predictions.json"]["q1"]] == ["德国 👍🏽", ""]
    assert read["nbest_predictions.json"]["q1"][0] == candidate._asdict()
    with pytest.raises(ValueError):
        write(tmp_path / "other", ["q1", "q2"], [answer])
    assert not (tmp_path / "other").exists()


# Measures


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "overlap"),
    [
        ("Denver Broncos", "Denver Broncos", True, 1),
        ("the  denver broncos!", "Denver Broncos", True, 1),
        ("Broncos", "Denver Broncos", False, 2 / 3),  # precision 1, recall 1/2
        ("Denver Denver", "Denver Broncos", False, 1 / 2),  # a word counts as often as both have it
        ("won", "Denver Broncos", False, 0),
        ("", "Denver Broncos", False, 0),
        ("", "", True, 1),
        ("the", "", True, 1),
        ("U.S.A", "usa", True, 1),
        ("Beyoncé", "Beyonce", False, 0),
        ("another theme", "theme", False, 2 / 3),  # articles are words, not letters
    ],
)
def test_english_answers(prediction, answer, exact, overlap):
    assert exact_match(prediction, answer) is exact
    assert f1(prediction, answer) == pytest.approx(overlap)


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "overlap"),
    [
        ("1546年", "在1546年出生", False, 4 / 7),  # 2 of 2 and 2 of 5 segments
        ("《泡泡战士》。", "泡泡战士", True, 1),
        ("泡泡和战士", "泡泡战士", False, 4 / 9),  # the longest run, not all that is common: 2 of 5 and 2 of 4
        ("英国", "德国", False, 1 / 2),
        ("法", "德国", False, 0),
        ("", "德国", False, 0),
        ("Rot Fai Park", "rot fai park（公园）", False, 2 * 3 / (3 + 5)),
        ("8公斤,约", "8公斤约", False, 2 * 3 / (5 + 4)),  # the ASCII comma is not in the list
        ("澳洲……", "澳洲", False, 2 * 2 / (3 + 2)),  # nor is half of an ellipsis
    ],
)
def test_chinese_answers(prediction, answer, exact, overlap):
    assert cmrc_exact_match(prediction, answer) is exact
    assert cmrc_f1(prediction, answer) == pytest.approx(overlap)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("约为0.304平方公里。", ["约", "为", "0.304", "平", "方", "公", "里"]),
        # NLTK's own docstring, in lower case
        (
            "Good muffins cost $3.88 (roughly 3,36 euros)",
            ["good", "muffins", "cost", "$", "3.88", "(", "roughly", "3,36", "euros", ")"],
        ),
        ("don't, he's 1,000 U.S. ok.", ["do", "n't", ",", "he", "'s", "1,000", "u.s.", "ok", "."]),
        ("Macropus\neugenii袋鼠", ["macropus", "eugenii", "袋", "鼠"]),
        ("鿿人㐀々b", ["鿿", "人", "㐀々b"]),  # the script's range of characters is U+4E00 to U+9FA5
    ],
)
def test_segments(text, expected):
    assert segments(text) == expected


def example(id, *answers):
    return Example(id, "?", PASSAGE, tuple(AnswerSpan(text, None) for text in answers))


def test_means_over_a_file():
    examples = [example("a", "Houston, Texas", "Houston"), example("b", "Texas"), example("c")]
    figures = evaluate_answers(examples, {"a": "houston", "b": "in Texas", "c": ""})
    assert figures == pytest.approx(
        {
            "exact_match": 200 / 3,
            "f1": 100 * (1 + 2 / 3 + 1) / 3,
            "total": 3,
            "has_answer_exact_match": 50,
            "has_answer_f1": 100 * (1 + 2 / 3) / 2,
            "has_answer_total": 2,
            "no_answer_exact_match": 100,
            "no_answer_f1": 100,
            "no_answer_total": 1,
        }
    )
    with pytest.warns(UserWarning, match="1 questions have no prediction and count as wrong, first b"):
        assert evaluate_answers(examples[:2], {"a": "Houston"})["f1"] == 50
    # An answer that is nothing but an article is not asked for in SQuAD 2.0; in Chinese data the letter A is an answer.
    assert evaluate_answers([example("a", "A")], {"a": ""})["exact_match"] == 100
    assert evaluate_answers([example("a", "A")], {"a": ""}, CMRC)["exact_match"] == 0
    assert evaluate_answers([example("a", "德国。")], {"a": "德国"}, CMRC)["exact_match"] == 100
    with pytest.raises(ValueError, match="no examples"):
        evaluate_answers([], {})
    with pytest.raises(ValueError, match="Question a has no answers to compare with"):
        evaluate_answers([Example("a", "?", "b")], {"a": "b"})


def test_the_best_threshold_is_that_of_all():
    rng = np.random.default_rng(0)
    examples = [example(str(i), *(["Texas"] if rng.random() < 0.6 else [])) for i in range(40)]
    texts = {e.id: "Texas" if rng.random() < 0.7 else "in Houston Texas" for e in examples}
    odds = {e.id: float(rng.normal()) + (0 if e.answers else 1) for e in examples}

    def f1_at(threshold):
        return evaluate_answers(examples, {id: "" if odds[id] > threshold else t for id, t in texts.items()})["f1"]

    threshold, best = best_null_threshold(examples, texts, odds)
    assert f1_at(threshold) == pytest.approx(best) == pytest.approx(max(map(f1_at, [-99.0, *odds.values()])))
    assert best_null_threshold(examples[:0] + [example("a")], {"a": "b"}, {"a": -3.0}) == (0.0, 100.0)
