"""garden evaluate: measures a trained classifier on a table of labelled texts.

example: garden evaluate --preset=runs/reviews --input=test.csv --output=runs/reviews/test"""

from pathlib import Path

from absl import flags

from . import backend, metrics, pictures
from .data import read_table
from .examples import from_table
from .options import add_backend, add_columns, add_required
from .run_folder import write_json


def define_flags(values: flags.FlagValues) -> None:
    """Which classifier on which texts."""
    add_required(values, "preset", "run folder or preset of a classifier")
    add_required(values, "input", "labelled table: .csv, .tsv or .jsonl")
    flags.DEFINE_string("output", None, "folder for metrics.json and confusion_matrix.png", flag_values=values)
    add_columns(values)
    flags.DEFINE_integer("batch_size", 32, "texts per step", lower_bound=1, flag_values=values)
    add_backend(values)


def run(options: flags.FlagValues) -> None:
    """Prints accuracy, macro F1 and each class's figures; writes them where --output says."""
    from .predict import load

    backend.choose(options.backend)
    examples = from_table(read_table(options.input), options.text_column, options.label_column, options.pair_column)
    folder = _new_folder(options.output) if options.output else None
    classifier, names = load(options)
    truth = examples.label_ids(names)
    _, probabilities = classifier.predict_labels(examples.inputs, batch_size=options.batch_size)
    figures = metrics.report(truth, probabilities, names)
    print(metrics.as_text(figures))
    if folder:
        pictures.confusion_picture(figures["confusion_matrix"], names, folder / "confusion_matrix.png")
        write_json(folder / "metrics.json", figures)


def _new_folder(path: str) -> Path:
    if (Path(path) / "metrics.json").exists():
        raise ValueError(f"{path} holds a metrics.json already: choose another --output")
    return Path(path)
