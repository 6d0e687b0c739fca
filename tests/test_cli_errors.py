"""What a user can get wrong and what a disk can do: one line, exit code 1, nothing half-written."""

import csv
import errno
import shutil
from pathlib import Path
from types import SimpleNamespace

import keras
import matplotlib.figure
import pytest
from cli_material import SMALL, SPLIT

import garden
from garden.cli import main
from garden.cli.run_folder import RunFolder

pytest_plugins = ["cli_fixtures"]


@pytest.mark.parametrize(
    "content, flags, message",
    [
        ("", [], "is empty"),
        ("text,label\n", [], "has a header and no rows"),
        ("review,label\nx,pos\n", [], "has no column 'text'; it has 'review', 'label'"),
        ("text,stars\nx,5\n", [], "has no column 'label'; it has 'text', 'stars'"),
        ("text,label\nx,pos\ny\n", [], "line 3: 1 fields where the header has 2"),
        ("text,label\nx,pos\ny,\n", [], "line 3: the label in column 'label' is empty"),
        ("text,label\nx,pos\ny,pos\n", [], "all 2 labels are 'pos': a classifier needs two classes or more"),
        ("text,label\nx,pos\ny,neg\n", [], "leaves no text of any class to validate on"),
        ("text,label\nx,pos\ny,neg\n", ["--validation_split=1.5"], "--validation_split=1.5 must lie between 0 and 1"),
        (b"text,label\ncaf\xe9,pos\n", [], "is not UTF-8: byte 0xe9 at offset 14, line 2"),
    ],
)
def test_bad_data_is_one_line_and_leaves_nothing(preset, tmp_path, error_of, content, flags, message):
    path = tmp_path / "train.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    command = ["finetune", f"--preset={preset}", f"--train={path}", f"--output={tmp_path / 'run'}", *flags]
    assert message in error_of(command)
    assert [part.name for part in tmp_path.iterdir()] == ["train.csv"]


def test_bad_files_and_models_are_one_line_and_leave_nothing(preset, reviews, tmp_path, error_of):
    output, other = tmp_path / "run", tmp_path / "other.csv"
    other.write_text("text,label\nx,pos\ny,meh\n")
    start = ["finetune", f"--output={output}", *SMALL]
    usual = [f"--preset={preset}", f"--train={reviews}"]
    cases = {
        "nowhere.csv: No such file or directory": [f"--preset={preset}", f"--train={tmp_path / 'nowhere.csv'}"],
        "'meh' is no class the model is trained on": [*usual, f"--validation={other}"],
        "exclude each other": [*usual, "--validation=x", "--validation_split=0.1"],
        "sequence_length=999": [*usual, "--sequence_length=999"],
        "no_such_preset": ["--preset=no_such_preset", f"--train={reviews}"],
    }
    for message, flags in cases.items():
        assert message in error_of([*start, *flags])
    assert [part.name for part in tmp_path.iterdir()] == ["other.csv"]


def test_labels_that_the_model_does_not_have(run, tmp_path, error_of):
    path = tmp_path / "test.csv"
    path.write_text("text,label\na good film,positive\n")
    message = error_of(["evaluate", f"--preset={run}", f"--input={path}"])
    assert "'positive' is no class the model is trained on; the classes are 'neg', 'pos'" in message


def full_disk(*args, **kwargs):
    for path in args:
        if isinstance(path, (str, Path)) and Path(path).is_absolute():
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_bytes(b"half")
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nothing_half_written(preset, reviews, tmp_path, monkeypatch, error_of):
    """Each writer of the run meets the full disk once, in the order of the run; then there is space."""
    command = ["finetune", f"--preset={preset}", f"--train={reviews}", f"--output={tmp_path / 'run'}", *SMALL, SPLIT]
    writers = [
        (keras.Model, "save_weights"),
        (garden.tasks.TextClassifier, "save_to_preset"),
        (matplotlib.figure.Figure, "savefig"),
        (RunFolder, "finish"),
    ]
    for owner, name in writers:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full_disk)
            assert error_of([*command, "--epochs=1"]) == "garden: error: No space left on device"
        files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
        assert not [path for path in files if path.read_bytes() == b"half" or "partial" in path.name]
        assert not (tmp_path / "run" / "metrics.json").exists()
    assert main([*command, "--epochs=1"]) == 0


def test_a_disk_too_small_is_noticed_before_it_is_full(preset, reviews, tmp_path, monkeypatch, error_of):
    """h5py brings the process down when a disk fills up under it, so that no error could be shown."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    command = ["finetune", f"--preset={preset}", f"--train={reviews}", f"--output={tmp_path / 'run'}", *SMALL, SPLIT]
    message = error_of([*command, "--epochs=1"])
    assert "No space left on device" in message and "1,000 free" in message
    assert not list(tmp_path.rglob("*.h5"))


def test_a_full_disk_leaves_no_half_predictions(run, reviews, tmp_path, monkeypatch, error_of):
    monkeypatch.setattr(csv.DictWriter, "writerow", full_disk)
    output = tmp_path / "answers.csv"
    command = ["predict", f"--preset={run}", f"--input={reviews}", f"--output={output}"]
    assert error_of(command) == "garden: error: No space left on device"
    assert not list(tmp_path.iterdir())
