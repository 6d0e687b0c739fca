"""Every `--task` from its file to a finished run, an evaluation and predictions, on a tiny model."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
from cli_material import SMALL

import garden
from garden.cli import main
from garden.cli.jobs import JOBS, find_job
from garden.cli.jobs.tagging import label_names, read_columns

pytest_plugins = ["cli_fixtures"]

GOOD, BAD, NAMES = ("good", "fine", "great"), ("bad", "dull", "poor"), ("film", "plot")
COLUMNS = SimpleNamespace(text_column="text", label_column="label", pair_column=None)
UNANSWERED = '{"data": [{"paragraphs": [{"context": "x", "qas": [{"id": "a", "question": "q"}]}]}]}'
LEARN = [*SMALL, "--epochs=3", "--debug"]


def finetune(task, preset, file, folder, *flags):
    """Trains on a file, which lowers the loss, and returns the figures of the run and the model that it saved."""
    arguments = ["finetune", f"--task={task}", f"--preset={preset}", f"--train={file}", f"--validation={file}"]
    assert main([*arguments, f"--output={folder}", *LEARN, *flags]) == 0
    figures = json.loads((folder / "metrics.json").read_text("utf-8"))
    assert figures["epochs"][-1]["val_loss"] < figures["epochs"][0]["val_loss"]
    job = find_job(task)
    pictures = {"learning_curve.png", *job.pictures}
    assert {path.name for path in folder.iterdir()} == {"preset", "config.json", "metrics.json", *pictures}
    return figures, getattr(garden.tasks, job.task).from_preset(folder / "preset")


def evaluate(folder, file, output):
    assert main(["evaluate", f"--preset={folder}", f"--input={file}", f"--output={output}", "--debug"]) == 0
    return json.loads((output / "metrics.json").read_text("utf-8"))


def predict(folder, *flags):
    assert main(["predict", f"--preset={folder}", *map(str, flags), "--debug"]) == 0


def test_regression(preset, tmp_path, capsys):
    values = {**dict.fromkeys(GOOD, 4.5), **dict.fromkeys(BAD, -1)}
    rows = [f"the {word} {name},{value}" for word, value in values.items() for name in NAMES]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows]), "utf-8")
    figures, model = finetune("regression", preset, tmp_path / "a.csv", tmp_path / "run")
    assert figures["truth"] == [4.5] * 6 + [-1.0] * 6 and figures["variance"] == pytest.approx(2.75**2)
    found = model.predict_values([row.split(",")[0] for row in rows])
    assert figures["predictions"] == pytest.approx(found.tolist(), abs=1e-5)
    assert figures["mean_squared_error"] == pytest.approx(np.mean((found - figures["truth"]) ** 2), abs=1e-5)
    again = evaluate(tmp_path / "run", tmp_path / "a.csv", tmp_path / "test")
    assert again["pearson"] == pytest.approx(figures["pearson"], abs=1e-5)
    capsys.readouterr()
    predict(tmp_path / "run", "--text=the good film")
    assert float(capsys.readouterr().out) == pytest.approx(found[0], abs=1e-4)
    predict(tmp_path / "run", f"--input={tmp_path / 'a.csv'}", f"--output={tmp_path / 'b.csv'}")
    with open(tmp_path / "b.csv", encoding="utf-8") as file:
        answers = [float(row["predicted_value"]) for row in csv.DictReader(file)]
    assert answers == pytest.approx(found.tolist(), abs=1e-5)


def test_tagging(preset, tmp_path, capsys):
    labels = {"good": "B-GOOD", "bad": "B-BAD", "film": "I-THING", "the": "O", "plot": "O"}
    sentences = [["the", word, name] for word in ("good", "bad") for name in NAMES]
    lines = ["\n".join(f"{word} x {labels[word]}" for word in words) + "\n" for words in sentences]
    (tmp_path / "a.conll").write_text("-DOCSTART- -X- O\n\n" + "\n".join(lines * 6), "utf-8")
    figures, model = finetune("tagging", preset, tmp_path / "a.conll", tmp_path / "run", "--crf")
    assert model.crf and model.class_names == ["O", "B-BAD", "B-GOOD", "I-THING"]
    found = model.predict_labels(sentences)
    words = [word for sentence in sentences for word in sentence]
    right = [label == labels[word] for word, label in zip(words, sum(found, []), strict=True)]
    assert figures["words"] == 72 and figures["accuracy"] == pytest.approx(np.mean(right))
    assert {name: row["support"] for name, row in figures["entities"].items() if name in ("BAD", "GOOD", "THING")} == {
        "BAD": 12,
        "GOOD": 12,
        "THING": 12,
    }
    again = evaluate(tmp_path / "run", tmp_path / "a.conll", tmp_path / "test")
    assert again["entities"] == figures["entities"] and (tmp_path / "test" / "entities.png").exists()
    entities = model.predict_entities(["the  good film"])[0]
    capsys.readouterr()
    predict(tmp_path / "run", "--text=the  good film")
    printed = [line.split()[1:] for line in capsys.readouterr().out.splitlines()]
    assert printed == [[entity.label, f"{entity.start}-{entity.end}", *entity.text.split()] for entity in entities]
    (tmp_path / "b.csv").write_text("text\nthe  good film\n", "utf-8")
    predict(tmp_path / "run", f"--input={tmp_path / 'b.csv'}", f"--output={tmp_path / 'c.jsonl'}")
    answer = json.loads((tmp_path / "c.jsonl").read_text("utf-8"))
    assert [entity["start"] for entity in answer["entities"]] == [entity.start for entity in entities]


def test_question_answering(preset, tmp_path, capsys):
    paragraphs = []
    for i, word in enumerate((*GOOD, *BAD)):
        passage = f"the film , the {word} plot"
        answer = {"text": word, "answer_start": passage.index(word)}
        paragraphs.append({"context": passage, "qas": [{"id": f"q{i}", "question": "a plot ?", "answers": [answer]}]})
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), "utf-8")
    figures, model = finetune("qa", preset, tmp_path / "a.json", tmp_path / "run", "--batch_size=6")
    assert figures["rule"] == "SQuAD" and figures["total"] == 6
    passages = [paragraph["context"] for paragraph in paragraphs]
    answers = model.predict_answers(["a plot ?"] * 6, passages)
    exact = [answer.text == word for answer, word in zip(answers, (*GOOD, *BAD), strict=True)]
    assert figures["exact_match"] == pytest.approx(100 * np.mean(exact))
    capsys.readouterr()
    predict(tmp_path / "run", "--text=a plot ?", f"--pair={passages[0]}")
    assert capsys.readouterr().out.splitlines()[0].split(maxsplit=2)[2] == answers[0].text
    predict(tmp_path / "run", f"--input={tmp_path / 'a.json'}", f"--output={tmp_path / 'answers'}")
    predictions = json.loads((tmp_path / "answers" / "predictions.json").read_text("utf-8"))
    assert predictions == {f"q{i}": answer.text for i, answer in enumerate(answers)}


def test_multiple_choice(preset, tmp_path, capsys):
    rows = [f"the film,is,{good},{bad},0" for good in GOOD for bad in BAD]
    rows += [f"the film,is,{bad},{good},1" for good in GOOD for bad in BAD]
    (tmp_path / "a.csv").write_text("\n".join(["sent1,sent2,ending0,ending1,label", *rows]), "utf-8")
    figures, model = finetune("multiple_choice", preset, tmp_path / "a.csv", tmp_path / "run")
    (samples, truth) = garden.tasks.read_swag(tmp_path / "a.csv")
    chosen, probabilities = model.predict_choices(samples)
    assert figures["accuracy"] == pytest.approx(np.mean(chosen == truth))
    assert figures["chance"] == 0.5 and figures["questions"] == 18
    capsys.readouterr()
    predict(tmp_path / "run", "--text=is", "--pair=the film", "--choice=bad", "--choice=good")
    best = capsys.readouterr().out.splitlines()[0].split()[1]
    assert best == ["bad", "good"][chosen[rows.index("the film,is,bad,good,1")]]
    predict(tmp_path / "run", f"--input={tmp_path / 'a.csv'}", f"--output={tmp_path / 'b.jsonl'}")
    answers = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text("utf-8").splitlines()]
    assert [answer["predicted_choice"] for answer in answers] == chosen.tolist()
    assert answers[0]["probabilities"] == pytest.approx(probabilities[0].tolist(), abs=1e-5)


def test_a_run_of_another_task_is_not_gone_on_with(preset, reviews, run, error_of):
    message = error_of(["finetune", "--task=tagging", f"--preset={preset}", f"--train={reviews}", f"--output={run}"])
    assert "is not a word, and in its last column a label" in message


@pytest.mark.parametrize(
    ("task", "name", "content", "message"),
    [
        ("regression", "a.csv", "text,label\nx,good\n", "line 2: 'label' is 'good', not a number"),
        ("regression", "a.csv", "text,label\nx,nan\n", "not a finite number"),
        ("tagging", "a.conll", "", "holds no word"),
        ("tagging", "a.conll", "word\n", "line 1: 'word' is not a word"),
        ("tagging", "a.conll", b"\xff\xfe", "not UTF-8"),
        ("tagging", "a.conll", "a b O\n# sent 3\nb c\n", "line 3: 'b c' has 2 columns where others have 3"),
        ("tagging", "a.jsonl", '{"text": ["a", "b"], "label": ["O"]}', "2 words but 1 labels"),
        ("tagging", "a.jsonl", '{"text": "a"}', "has to be a list of words or a string"),
        ("qa", "a.json", "[1]", "in the layout neither of SQuAD nor of CMRC2018"),
        ("qa", "a.json", UNANSWERED, "has questions without answers"),
        ("multiple_choice", "a.tsv", "x", "takes a folder of RACE"),
        ("multiple_choice", "a.csv", "sent1,sent2,ending0,ending1\na,b,c,d\n", "no column 'label'"),
        ("multiple_choice", "a.json", "[]", "holds no question"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, task, name, content, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message):
        find_job(task).read(str(path), COLUMNS)


def test_columns_are_texts_of_words(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\ufeff\n我\tO\r\n在\tO\n\n\n北\tB-LOC\n京\tI-LOC\n", "utf-8")
    examples = read_columns(str(path))
    assert examples.inputs == [["我", "在"], ["北", "京"]] and examples.targets == [["O", "O"], ["B-LOC", "I-LOC"]]
    assert label_names(examples) == ["O", "B-LOC", "I-LOC"]
    job = find_job("tagging")
    settings = job.arguments(examples, SimpleNamespace(crf=False))
    assert settings == {"class_names": ["O", "B-LOC", "I-LOC"], "crf": False, "split": "characters"}
    with pytest.raises(ValueError, match="'B-PER' is no label of the training part"):
        job.check(examples, type(examples)([["x"]], [["B-PER"]]))


def test_every_job_is_in_the_help(capsys):
    assert main(["finetune", "--help"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in JOBS)
