"""garden finetune: trains a text classifier on a CSV, TSV or JSONL file and keeps all of it in one folder.

example: garden finetune --preset=all_minilm_l6_v2_en --train=reviews.csv --output=runs/reviews
The folder then holds preset/ (load it with garden.tasks.TextClassifier.from_preset), metrics.json, config.json and two
pictures. The same command again, after a kill, goes on where the last backup was made."""

import hashlib
import sys
import time
import warnings
from pathlib import Path

from absl import flags

from . import backend, metrics, pictures
from .data import read_table
from .examples import Examples, class_names, from_table, stratified_split
from .options import add_backend, add_columns, add_required, add_training, as_dict
from .run_folder import RunFolder, open_run, replacing, require_space

RECIPE = ("epochs", "batch_size", "learning_rate", "warmup", "weight_decay", "seed", "backup_steps")
_NO_SETTING = ("output", "overwrite", "debug")


def define_flags(values: flags.FlagValues) -> None:
    """What to train on what, and how."""
    add_required(values, "preset", "what to start from: a built-in name, a handle, a URL, or a folder")
    add_required(values, "train", "table to train on: .csv, .tsv or .jsonl")
    flags.DEFINE_string("validation", None, "table to measure on; else a part of --train", flag_values=values)
    flags.DEFINE_float(
        "validation_split", None, "share of --train, of each class alike, to measure on; else 0.1", flag_values=values
    )
    add_required(values, "output", "folder of this run")
    flags.DEFINE_enum("task", "classification", ["classification"], "what to learn", flag_values=values)
    add_columns(values)
    add_training(values, epochs=3, batch_size=32, learning_rate=5e-5, length=128)
    add_backend(values)


def run(options: flags.FlagValues) -> None:
    """Trains, measures and writes the run folder."""
    chosen = backend.choose(options.backend)
    training, validation = _examples(options)
    data = {f"{name}_sha256": _sha256(options[name].value) for name in ("train", "validation")}
    folder = open_run(options.output, config(options, chosen, data), options.overwrite)
    finetune(options, training, validation, folder)
    print(f"\nwrote {folder.path}: preset/, metrics.json, {folder.learning_curve.name}, {folder.confusion_matrix.name}")


def config(options: flags.FlagValues, chosen: str, data: dict) -> dict:
    """What config.json records; a run goes on only with the same "flags" and "data"."""
    settings = {**as_dict(options, without=_NO_SETTING), "backend": chosen}
    return {"flags": settings, "data": data, "versions": backend.versions(chosen), "output": options.output}


def finetune(options: flags.FlagValues, training: Examples, validation: Examples, run: RunFolder) -> tuple:
    """From labelled texts to a finished run folder; returns the classifier and what metrics.json holds.

    Args:
        options: needs preset, sequence_length, dtype and the flags of `RECIPE`.
        training, validation: every class of the second must occur in the first.
        run: where to write.
    """
    keras = backend.import_keras()
    from garden.tasks import TextClassifier

    from .training import Recipe, train

    began = time.perf_counter()
    names = class_names(training.labels)
    truth = validation.label_ids(names)
    recipe = Recipe(**{name: options[name].value for name in RECIPE})
    keras.utils.set_random_seed(recipe.seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Not in the checkpoint")  # a fresh head is what is to be trained
        classifier = TextClassifier.from_preset(
            options.preset,
            class_names=names,
            sequence_length=options.sequence_length,
            pad_to_multiple_of=max(8, options.sequence_length // 4),  # each width is a program to compile: four at most
            **dtype(options),
        )
    _say(training, validation, names, metrics.majority_baseline(truth))
    run.begin()
    epochs = train(classifier, training, validation, recipe, run)
    figures = metrics.report(truth, classifier.predict_labels(validation.inputs)[1], names)
    print("\n" + metrics.as_text(figures))
    return classifier, _write(run, classifier, epochs, figures, len(training), time.perf_counter() - began)


def dtype(options: flags.FlagValues) -> dict:
    """--dtype as an argument of `from_preset`; nothing where the flag was not given."""
    return {"dtype": options.dtype} if options.dtype else {}


def _write(run: RunFolder, classifier, epochs: list[dict], figures: dict, trained_on: int, seconds: float) -> dict:
    require_space(run.path, classifier.variables)
    with replacing(run.preset) as temporary:
        classifier.save_to_preset(str(temporary))
    pictures.learning_curve(epochs, figures["majority_baseline"], run.learning_curve)
    pictures.confusion_picture(figures["confusion_matrix"], list(figures["classes"]), run.confusion_matrix)
    result = {
        **figures,
        "examples": {"training": trained_on, "validation": sum(row["count"] for row in figures["classes"].values())},
        "epochs": epochs,
        "seconds": {"training": round(sum(row["seconds"] for row in epochs), 1), "this_process": round(seconds, 1)},
    }
    run.finish(result)
    return result


def _examples(options: flags.FlagValues) -> tuple[Examples, Examples]:
    if options.validation and options.validation_split is not None:
        raise ValueError("--validation and --validation_split exclude each other: give the one or the other")
    fraction = 0.1 if options.validation_split is None else options.validation_split
    if not 0 < fraction < 1:
        raise ValueError(f"--validation_split={fraction} must lie between 0 and 1")
    columns = (options.text_column, options.label_column, options.pair_column)
    training = from_table(read_table(options.train), *columns)
    names = class_names(training.labels)
    if options.validation:
        validation = from_table(read_table(options.validation), *columns)
    else:
        kept, held_out = stratified_split(training.labels, fraction, options.seed)
        training, validation = training.take(kept), training.take(held_out)
    validation.label_ids(names)
    return training, validation


def _sha256(path: str | None) -> str | None:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None


def _say(training: Examples, validation: Examples, names: list[str], baseline: float) -> None:
    shown = ", ".join(names) if len(names) <= 10 else f"{', '.join(names[:10])}, ..."
    print(f"{len(training):,} texts to train on, {len(validation):,} held out, {len(names)} classes: {shown}")
    print(f"always answering the commonest class would be right for {baseline:.1%} of the held-out texts", flush=True)
    sys.stdout.flush()
