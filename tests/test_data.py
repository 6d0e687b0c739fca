"""What the command line does before and after the model: tables, splits, figures, pictures, run folders."""

import errno
import json
from types import SimpleNamespace

import numpy as np
import pytest

from garden.cli import metrics, pictures
from garden.cli.data import read_table
from garden.cli.examples import Examples, class_names, label_ids, random_split, stratified_split
from garden.cli.jobs import find_job
from garden.cli.run_folder import open_run, replacing

COLUMNS = SimpleNamespace(text_column="text", label_column="label", pair_column=None)
SETTINGS = {"flags": {"epochs": 3}, "data": {"train_sha256": "a"}}


def table(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path)


def test_csv_with_mark_quotes_commas_and_line_breaks(tmp_path):
    read = table(tmp_path, "a.csv", '\ufefftext,label\r\n"one, ""two""\nthree",pos\r\n\r\n,neg\r\nthé,pos\r\n')
    assert read.columns == ["text", "label"]
    assert read.texts("text") == ['one, "two"\nthree', "", "thé"]
    assert read.labels("label") == ["pos", "neg", "pos"]
    assert read.lines == [2, 5, 6]


def test_csv_takes_a_text_longer_than_the_csv_modules_limit(tmp_path):
    assert len(table(tmp_path, "a.csv", f"text\n{'x' * 200_000}\n").texts("text")[0]) == 200_000


def test_tsv_takes_quotation_marks_as_text(tmp_path):
    read = table(tmp_path, "a.tsv", 'text\tlabel\n"Rocky" and\t1\n"never closed\t0\n')
    assert read.texts("text") == ['"Rocky" and', '"never closed']


def test_jsonl_numbers_booleans_and_separators_inside_a_text(tmp_path):
    read = table(tmp_path, "a.jsonl", '{"text": "a\u2028b", "label": 1}\n\n{"text": "c", "label": true, "x": null}\n')
    assert read.texts("text") == ["a\u2028b", "c"]
    assert read.labels("label") == ["1", "true"]
    assert read.columns == ["text", "label", "x"]
    assert read.lines == [1, 3]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.csv", "", "a.csv is empty"),
        ("a.csv", "\n \n", "a.csv is empty"),
        ("a.csv", "text,label\n", "a.csv has a header and no rows"),
        ("a.csv", "text,label\nx,pos\ny\n", "a.csv, line 3: 1 fields where the header has 2"),
        ("a.csv", 'text,label\n"x\n",pos\ny,pos,1\n', "a.csv, line 4: 3 fields where the header has 2"),
        ("a.csv", 'text,label\nx,pos\n"y,pos\nz,neg\n', "the row that begins on line 3 cannot be read"),
        ("a.csv", "text,text\nx,y\n", "the header names 'text' twice"),
        ("a.csv", b"text,label\nx,pos\ncaf\xe9,neg\n", "not UTF-8: byte 0xe9 at offset 20, line 3"),
        ("a.csv", "text\n".encode("utf-16"), "not UTF-8: byte 0xff at offset 0, line 1"),
        ("a.jsonl", '{"text": "x"}\n{"text": \n', "a.jsonl, line 2: not JSON"),
        ("a.jsonl", '{"text": "x"}\n["y"]\n', "a.jsonl, line 2: a JSON object was expected"),
        ("a.txt", "x\n", "must end in .csv, .tsv, .jsonl"),
    ],
)
def test_a_bad_table_is_one_clear_error(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        table(tmp_path, name, content)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.csv", "review,label\nx,pos\n", "has no column 'text'; it has 'review', 'label'"),
        ("a.csv", "text,label\nx,pos\ny, \n", "line 3: the label in column 'label' is empty"),
        ("a.jsonl", '{"text": "x", "label": "a"}\n{"label": "b"}\n', "line 2: 'text' is missing"),
        ("a.jsonl", '{"text": "x\\ud83d", "label": "a"}\n', "line 1: 'text' holds half of a surrogate pair"),
        ("a.jsonl", '{"text": null, "label": "a"}\n', "line 1: 'text' is null, not a text"),
        ("a.jsonl", '{"text": "x", "label": ["a"]}\n', r"line 1: 'label' is \[\"a\"\], not a text"),
    ],
)
def test_a_bad_column_is_one_clear_error(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        find_job("classification").read(table(tmp_path, name, content).path, COLUMNS)


def test_a_missing_file_says_its_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.csv"):
        read_table(tmp_path / "nowhere.csv")


def test_class_names_are_in_order_and_at_least_two():
    assert class_names(["b", "a", "b"]) == ["a", "b"]
    assert class_names(["10", "9", "-1"]) == ["-1", "9", "10"]
    with pytest.raises(ValueError, match="all 2 labels are 'a': a classifier needs two classes"):
        class_names(["a", "a"])


def test_labels_become_positions_and_unknown_ones_an_error():
    assert label_ids(["b", "a", "b"], ["a", "b"]).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="'b' is no class the model is trained on; the classes are 'a', 'c'"):
        label_ids(["b", "a", "b"], ["a", "c"])


def test_pairs_stay_together():
    examples = Examples((["a", "b", "c"], ["A", "B", "C"]), ["0", "1", "0"]).take(np.array([2, 0]))
    assert examples.inputs == (["c", "a"], ["C", "A"]) and examples.targets == ["0", "0"]


def test_the_split_is_fixed_stratified_and_complete():
    labels = ["a"] * 60 + ["b"] * 30 + ["c"]
    train, held_out = stratified_split(labels, 0.1, seed=7)
    assert sorted([*train, *held_out]) == list(range(91))
    assert [labels[row] for row in held_out] == ["a"] * 6 + ["b"] * 3
    assert stratified_split(labels, 0.1, seed=7)[1].tolist() == held_out.tolist()
    assert stratified_split(labels, 0.1, seed=8)[1].tolist() != held_out.tolist()
    with pytest.raises(ValueError, match="leaves no text of any class to validate on"):
        stratified_split(["a", "b"], 0.1)


def test_a_split_without_classes_is_fixed_and_complete():
    groups = [i // 2 for i in range(40)]
    train, held_out = random_split(groups, 0.25, seed=3)
    assert len(held_out) == 10 and sorted([*train, *held_out]) == list(range(40))
    assert not {groups[i] for i in train} & {groups[i] for i in held_out}
    assert random_split(groups, 0.25, seed=3)[1].tolist() == held_out.tolist()
    for count in (1, 3):
        with pytest.raises(ValueError, match=f"of {count} texts leaves nothing"):
            random_split(list(range(count)), 0.1)


def test_report_of_a_matrix_worked_out_by_hand():
    # truth a a a b b c; answers a a b b b a: a 2/3 right of 3 answers, b 2/2 of 3, c 0/1 of none
    truth = np.array([0, 0, 0, 1, 1, 2])
    probabilities = np.array([[0.8, 0.1, 0.1]] * 2 + [[0.1, 0.8, 0.1]] * 3 + [[0.8, 0.1, 0.1]])
    report = metrics.report(truth, probabilities, ["a", "b", "c"])
    assert report["confusion_matrix"] == [[2, 1, 0], [0, 2, 0], [1, 0, 0]]
    assert report["accuracy"] == pytest.approx(4 / 6)
    assert report["majority_baseline"] == pytest.approx(3 / 6)
    assert report["classes"]["a"] == pytest.approx({"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3, "count": 3})
    assert report["classes"]["b"] == pytest.approx({"precision": 2 / 3, "recall": 1.0, "f1": 0.8, "count": 2})
    assert report["classes"]["c"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 1}
    assert report["macro_f1"] == pytest.approx((2 / 3 + 0.8) / 3)
    assert report["loss"] == pytest.approx(-(4 * np.log(0.8) + 2 * np.log(0.1)) / 6)
    json.dumps(report)
    assert "majority baseline" in metrics.as_text(report)


def test_pictures_are_png_files_of_few_and_many_classes(tmp_path):
    epochs = [{"epoch": 1, "loss": 0.7, "accuracy": 0.5, "val_loss": 0.6, "val_accuracy": 0.6}]
    pictures.learning_curve(epochs, tmp_path / "curve.png", "accuracy", 0.5)
    pictures.confusion_picture(np.array([[3, 1], [0, 2]]), ["好", "坏"], tmp_path / "few.png")
    pictures.confusion_picture(np.eye(60, dtype=int), [str(i) for i in range(60)], tmp_path / "many.png")
    assert {path.name for path in tmp_path.iterdir()} == {"curve.png", "few.png", "many.png"}
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in tmp_path.iterdir())


def test_replacing_is_all_or_nothing_for_files_and_folders(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(OSError), replacing(target) as temporary:
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert target.read_text() == "old"
    folder = tmp_path / "preset"
    for content in ("first", "second"):
        with replacing(folder) as temporary:
            temporary.mkdir()
            (temporary / content).touch()
    assert [path.name for path in folder.iterdir()] == ["second"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "preset"}


def test_a_run_folder_goes_on_refuses_or_is_replaced(tmp_path):
    path = tmp_path / "run"
    run = open_run(path, SETTINGS)
    assert not path.exists()
    run.begin()
    other = {**SETTINGS, "flags": {"epochs": 4}}
    open_run(path, other)  # nothing is trained yet: nothing to lose
    run.backup.mkdir()
    open_run(path, SETTINGS).begin()
    assert run.backup.exists()
    with pytest.raises(ValueError, match=r"unfinished run with other settings \(epochs was 3\)"):
        open_run(path, other)
    run.finish({"accuracy": 1.0})
    assert not run.backup.exists()
    with pytest.raises(ValueError, match="holds a finished run"):
        open_run(path, SETTINGS)
    replaced = open_run(path, other, overwrite=True)
    assert run.metrics.exists()
    replaced.begin()
    assert [part.name for part in path.iterdir()] == ["config.json"]


@pytest.mark.parametrize("content", ['{"model_type": "bert"}', "[1]"])
def test_a_folder_of_something_else_is_never_cleared(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match="holds no run of garden"):
        open_run(tmp_path, SETTINGS, overwrite=True)
