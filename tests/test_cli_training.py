"""`garden finetune` and `garden quickstart` in this process, whole and killed half-way."""

import json

import keras
import keras_hub
import numpy as np
import pytest
from cli_material import NEGATIVE, POSITIVE, SMALL, SPLIT

import garden
from garden.cli import main, quickstart, training
from garden.cli.backup import Backup
from garden.cli.jobs import find_job

pytest_plugins = ["cli_fixtures"]


def test_finetune_learns_and_fills_the_run_folder(run):
    names = {"preset", "config.json", "metrics.json", "learning_curve.png", "confusion_matrix.png"}
    assert {path.name for path in run.iterdir()} == names
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["accuracy"] == 1.0 and metrics["majority_baseline"] == 0.5
    assert metrics["examples"] == {"training": 48, "validation": 12}
    assert [row["epoch"] for row in metrics["epochs"]] == list(range(1, 9))
    assert metrics["epochs"][-1]["val_loss"] == pytest.approx(metrics["loss"], abs=1e-5)
    config = json.loads((run / "config.json").read_text())
    assert config["flags"]["learning_rate"] == 0.01 and config["flags"]["weight_decay"] == 0.01
    assert config["flags"]["backend"] == keras.backend.backend()
    assert config["versions"]["keras"] == keras.__version__


def test_the_saved_preset_loads_here_and_in_keras_hub(run):
    ours = garden.tasks.TextClassifier.from_preset(str(run / "preset"))
    theirs = keras_hub.models.TextClassifier.from_preset(str(run / "preset"))
    texts = ["a good plot", "the dull film ?"]
    assert ours.class_names == ["neg", "pos"]
    assert ours.predict_labels(texts)[0] == ["pos", "neg"]
    np.testing.assert_allclose(theirs.predict(texts, verbose=0), ours.predict(texts, verbose=0), atol=1e-6)


def test_the_optimizer_leaves_biases_and_norms_undecayed(preset):
    classifier = garden.tasks.TextClassifier.from_preset(preset, num_classes=2)
    recipe = training.Recipe(2, 8, 1e-3, 0.1, 0.01, 0, 0)
    training.compile_model(find_job("classification"), classifier, recipe, steps_per_epoch=10)
    decayed = {v.name for v in classifier.trainable_variables if classifier.optimizer._use_weight_decay(v)}
    spared = {v.name for v in classifier.trainable_variables} - decayed
    assert decayed == {"kernel", "embeddings"} and spared == {"bias", "gamma", "beta"}


def test_the_schedule_rises_to_its_peak_and_falls_to_zero():
    schedule = training.LinearWarmupDecay(2.0, warmup_steps=4, total_steps=12)
    rates = [float(schedule(step)) for step in range(13)]
    np.testing.assert_allclose(rates, [0.5, 1, 1.5, 2, 2, 1.75, 1.5, 1.25, 1, 0.75, 0.5, 0.25, 0], atol=1e-6)
    assert float(training.LinearWarmupDecay(1.0, 0, 4)(0)) == 1.0


def test_a_killed_run_ends_with_the_weights_of_a_whole_one(preset, reviews, tmp_path, monkeypatch):
    """48 reviews in batches of 12: 4 steps an epoch, backups after steps 3, 4 (an epoch's end) and 7."""
    command = ["finetune", f"--preset={preset}", f"--train={reviews}", *SMALL, SPLIT, "--epochs=3", "--backup_steps=3"]
    seen = _record_batches(monkeypatch)
    with monkeypatch.context() as patch:
        _kill_after(8, patch)
        assert main([*command, f"--output={tmp_path / 'run'}"]) == 130
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"config.json", "backup"}
    seen.clear()
    assert main([*command, f"--output={tmp_path / 'run'}"]) == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert [row["epoch"] for row in metrics["epochs"]] == [1, 2, 3]
    resumed = seen.copy()
    assert [skipped for skipped, _ in resumed] == [3, 0]

    seen.clear()
    assert main([*command, f"--output={tmp_path / 'whole'}"]) == 0
    assert [texts for _, texts in seen[1:]] == [texts for _, texts in resumed]
    for ours, theirs in zip(_weights(tmp_path / "run"), _weights(tmp_path / "whole"), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def _kill_after(steps, patch):
    original, done = Backup.on_train_batch_end, []

    def dying(self, batch, logs=None):
        original(self, batch, logs)
        done.append(batch)
        if len(done) == steps:
            raise KeyboardInterrupt

    patch.setattr(Backup, "on_train_batch_end", dying)


def _record_batches(monkeypatch):
    """A list to which every epoch adds the number of batches it skips and the texts of all its batches in order."""
    seen, original = [], training._batches

    class Recorded:
        def __init__(self, batches):
            self.batches = batches
            self.cardinality = batches.cardinality

        def skip(self, count):
            seen.append((count, [tuple(texts.tolist()) for texts, _ in self.batches.as_numpy_iterator()]))
            return self.batches.skip(count)

    def recorded(job, model, examples, *arguments, **options):
        batches = original(job, model, examples, *arguments, **options)
        return Recorded(batches) if len(examples) == 48 else batches

    monkeypatch.setattr(training, "_batches", recorded)
    return seen


def _weights(run):
    return garden.tasks.TextClassifier.from_preset(str(run / "preset")).get_weights()


def test_a_finished_or_different_run_is_not_overwritten_unasked(preset, reviews, run, error_of):
    command = ["finetune", f"--preset={preset}", f"--train={reviews}", f"--output={run}", *SMALL]
    assert "holds a finished run: choose another --output, or replace it with --overwrite" in error_of(command)


def test_pairs_and_a_validation_file(preset, tmp_path):
    rows = [
        {"a": f"{article} {one}", "b": f"{two} film", "same": int((one in POSITIVE) == (two in POSITIVE))}
        for article in ("a", "the")
        for one in POSITIVE[:2] + NEGATIVE[:2]
        for two in POSITIVE[:2] + NEGATIVE[:2]
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ["--text_column=a", "--pair_column=b"]
    command = ["finetune", f"--preset={preset}", f"--train={path}", f"--validation={path}", "--label_column=same"]
    assert main([*command, *columns, *SMALL, "--epochs=1", f"--output={tmp_path / 'run'}"]) == 0
    assert main(["predict", f"--preset={tmp_path / 'run'}", "--text=a good", "--pair=fine film"]) == 0
    output = tmp_path / "out.jsonl"
    assert main(["predict", f"--preset={tmp_path / 'run'}", f"--input={path}", *columns, f"--output={output}"]) == 0
    answers = [json.loads(line) for line in output.read_text().splitlines()]
    assert [{key: answer[key] for key in ("a", "b", "same")} for answer in answers] == rows
    assert all(answer["predicted_label"] in ("0", "1") for answer in answers)


def test_quickstart_on_a_small_slice(preset, tmp_path, capsys):
    arguments = ["quickstart", f"--preset={preset}", "--limit=40", "--sequence_length=32"]
    arguments += [f"--output={tmp_path / 'run'}"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "always answering the commonest class" in printed and str(tmp_path / "run" / "learning_curve.png") in printed
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["examples"] == {"training": 40, "validation": 40}


def test_the_quickstarts_data_are_the_rated_sentences_with_a_fixed_split():
    sentences = quickstart.film_sentences()
    assert [sentences.targets.count(label) for label in ("positive", "negative")] == [5242, 5326]
    assert sentences.inputs[0].startswith("The Rock is destined") and "clichés" in " ".join(sentences.inputs)
    train, held_out = quickstart.split(sentences)
    assert (len(train), len(held_out)) == (8568, 2000)
    assert sorted(train.inputs + held_out.inputs) == sorted(sentences.inputs)
    assert quickstart.split(sentences)[1] == held_out
    assert quickstart.split(sentences, 5)[1].inputs == held_out.inputs[:5]
