"""Every `--task` from its file to a finished run, an evaluation and predictions, on a tiny model."""

import csv
import json
from types import SimpleNamespace

import pytest
from cli_material import SMALL

from garden.cli import main
from garden.cli.jobs import JOBS, find_job
from garden.cli.jobs.tagging import label_names, read_columns

pytest_plugins = ["cli_fixtures"]

GOOD, BAD, NAMES = ("good", "fine", "great"), ("bad", "dull", "poor"), ("film", "plot")
COLUMNS = SimpleNamespace(text_column="text", label_column="label", pair_column=None)
UNANSWERED = '{"data": [{"paragraphs": [{"context": "x", "qas": [{"id": "a", "question": "q"}]}]}]}'
LEARN = [*SMALL, "--epochs=12", "--debug"]


def finetune(task, preset, file, folder, *flags):
    """Trains and returns the figures of the run."""
    arguments = ["finetune", f"--task={task}", f"--preset={preset}", f"--train={file}", f"--validation={file}"]
    assert main([*arguments, f"--output={folder}", *LEARN, *flags]) == 0
    return json.loads((folder / "metrics.json").read_text("utf-8"))


def evaluate(folder, file, output):
    assert main(["evaluate", f"--preset={folder}", f"--input={file}", f"--output={output}", "--debug"]) == 0
    return json.loads((output / "metrics.json").read_text("utf-8"))


def test_regression_learns_numbers(preset, tmp_path, capsys):
    values = {**dict.fromkeys(GOOD, 4.5), **dict.fromkeys(BAD, -1)}
    rows = [f"the {word} {name},{value}" for word, value in values.items() for name in NAMES]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows * 4]), "utf-8")
    run = tmp_path / "run"
    figures = finetune("regression", preset, tmp_path / "a.csv", run)
    assert figures["pearson"] > 0.9 and figures["mean_squared_error"] < 0.5 * figures["variance"]
    assert {"learning_curve.png", "predictions.png"} <= {path.name for path in run.iterdir()}
    again = evaluate(run, tmp_path / "a.csv", tmp_path / "test")
    assert again["pearson"] == pytest.approx(figures["pearson"], abs=1e-6)
    capsys.readouterr()
    assert main(["predict", f"--preset={run}", "--text=the good film"]) == 0
    assert float(capsys.readouterr().out) > 1.75
    assert main(["predict", f"--preset={run}", f"--input={tmp_path / 'a.csv'}", f"--output={tmp_path / 'b.csv'}"]) == 0
    with open(tmp_path / "b.csv", encoding="utf-8") as file:
        answers = list(csv.DictReader(file))
    assert len(answers) == 48 and float(answers[0]["predicted_value"]) > float(answers[-1]["predicted_value"])


def test_tagging_learns_entities(preset, tmp_path, capsys):
    sentences = [["the", word, name] for word in (*GOOD, *BAD) for name in NAMES]
    labels = {word: f"B-{kind}" for words, kind in ((GOOD, "GOOD"), (BAD, "BAD")) for word in words}
    labels |= {"film": "I-THING", "the": "O", "plot": "O"}
    lines = ["\n".join(f"{word} x {labels[word]}" for word in words) + "\n" for words in sentences]
    (tmp_path / "a.conll").write_text("-DOCSTART- -X- O\n\n" + "\n".join(lines * 3), "utf-8")
    run = tmp_path / "run"
    figures = finetune("tagging", preset, tmp_path / "a.conll", run, "--crf", "--epochs=25")
    assert figures["f1"] > 0.9 and figures["words"] == 108
    assert set(figures["entities"]) == {"all", "mean of types", "GOOD", "BAD", "THING"}
    assert {"learning_curve.png", "entities.png"} <= {path.name for path in run.iterdir()}
    assert evaluate(run, tmp_path / "a.conll", tmp_path / "test")["entities"] == figures["entities"]
    capsys.readouterr()
    assert main(["predict", f"--preset={run}", "--text=the  great film"]) == 0
    assert capsys.readouterr().out.split()[1:4] == ["GOOD", "5-10", "great"]
    (tmp_path / "b.csv").write_text("text\nthe dull plot\n", "utf-8")
    arguments = ["predict", f"--preset={run}", f"--input={tmp_path / 'b.csv'}", f"--output={tmp_path / 'c.jsonl'}"]
    assert main(arguments) == 0
    answer = json.loads((tmp_path / "c.jsonl").read_text("utf-8"))
    assert [(entity["label"], entity["text"]) for entity in answer["entities"]] == [("BAD", "dull")]


def test_question_answering_learns_spans(preset, tmp_path, capsys):
    paragraphs = []
    for i, word in enumerate((*GOOD, *BAD)):
        passage = f"the film , the {word} plot"
        answer = {"text": word, "answer_start": passage.index(word)}
        paragraphs.append({"context": passage, "qas": [{"id": f"q{i}", "question": "a plot ?", "answers": [answer]}]})
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), "utf-8")
    run = tmp_path / "run"
    figures = finetune("qa", preset, tmp_path / "a.json", run, "--epochs=40", "--batch_size=3")
    assert figures["exact_match"] == 100.0 and figures["rule"] == "SQuAD" and figures["total"] == 6
    capsys.readouterr()
    assert main(["predict", f"--preset={run}", "--text=a plot ?", "--pair=the film , the great plot"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[1:] == ["15-20", "great"]
    arguments = ["predict", f"--preset={run}", f"--input={tmp_path / 'a.json'}", f"--output={tmp_path / 'answers'}"]
    assert main(arguments) == 0
    predictions = json.loads((tmp_path / "answers" / "predictions.json").read_text("utf-8"))
    assert predictions == {f"q{i}": word for i, word in enumerate((*GOOD, *BAD))}


def test_multiple_choice_learns_answers(preset, tmp_path, capsys):
    rows = [f"the film,is,{good},{bad},0" for good in GOOD for bad in BAD]
    rows += [f"the film,is,{bad},{good},1" for good in GOOD for bad in BAD]
    (tmp_path / "a.csv").write_text("\n".join(["sent1,sent2,ending0,ending1,label", *rows]), "utf-8")
    run = tmp_path / "run"
    figures = finetune("multiple_choice", preset, tmp_path / "a.csv", run, "--epochs=20")
    assert figures["accuracy"] == 1.0 and figures["chance"] == 0.5 and figures["questions"] == 18
    capsys.readouterr()
    arguments = ["predict", f"--preset={run}", "--text=is", "--pair=the film", "--choice=dull", "--choice=great"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[1] == "great"
    assert (
        main(["predict", f"--preset={run}", f"--input={tmp_path / 'a.csv'}", f"--output={tmp_path / 'b.jsonl'}"]) == 0
    )
    answer = json.loads((tmp_path / "b.jsonl").read_text("utf-8").splitlines()[0])
    assert (answer["answer"], answer["predicted_choice"]) == ("good", 0) and len(answer["probabilities"]) == 2


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
    path.write_text("\ufeff\n我\tO\r\n在\tO\n\n\n北\tns\tB-LOC\n京\tns\tI-LOC\n", "utf-8")
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
