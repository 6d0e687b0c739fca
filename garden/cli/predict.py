"""garden predict: labels texts with a trained classifier.

example: garden predict --preset=runs/reviews --text="A lovely film"
example: garden predict --preset=runs/reviews --input=new.csv --output=labelled.csv
The result has the input's columns, then predicted_label and one probability_CLASS a class."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
from absl import flags

from . import backend
from .data import Table, decode, read_table
from .options import add_backend, add_columns, add_required
from .run_folder import replacing

_FORMATS = (".csv", ".jsonl")


def define_flags(values: flags.FlagValues) -> None:
    """Which classifier on which texts, and where to."""
    add = {"flag_values": values}
    add_required(values, "preset", "run folder or preset of a classifier")
    flags.DEFINE_string("text", None, "one text to label", **add)
    flags.DEFINE_string("pair", None, "its second text, for a classifier of pairs", **add)
    flags.DEFINE_string(
        "input", None, "table to label: .csv, .tsv, .jsonl, or - for standard input, a text a line", **add
    )
    flags.DEFINE_string("output", None, "file to write: .csv or .jsonl; else CSV on standard output", **add)
    add_columns(values, labels=False)
    flags.DEFINE_integer("batch_size", 32, "texts per step", lower_bound=1, **add)
    add_backend(values)


def run(options: flags.FlagValues) -> None:
    """Labels one text or a table."""
    if (options.text is None) == (options.input is None):
        raise ValueError("give either --text or --input")
    if options.pair is not None and options.text is None:
        raise ValueError("--pair goes with --text; the second texts of a table are named by --pair_column")
    if options.output and Path(options.output).suffix.lower() not in _FORMATS:
        raise ValueError(f"--output={options.output}: the name must end in {' or '.join(_FORMATS)}")
    backend.choose(options.backend)
    if options.input:
        _label_table(options)
    else:
        _label_one(options)


def load(options: flags.FlagValues) -> tuple:
    """The classifier of a run folder or preset, with its class names ("0", "1", ... where it has none)."""
    backend.import_keras()
    from garden.tasks import TextClassifier

    from .finetune import dtype

    inside = Path(options.preset) / "preset"
    classifier = TextClassifier.from_preset(str(inside) if inside.is_dir() else options.preset, **dtype(options))
    return classifier, classifier.class_names or [str(index) for index in range(classifier.num_classes)]


def _label_one(options: flags.FlagValues) -> None:
    classifier, names = load(options)
    inputs = [options.text] if options.pair is None else ([options.text], [options.pair])
    _, probabilities = classifier.predict_labels(inputs)
    for probability, name in sorted(zip(probabilities[0].tolist(), names, strict=True), reverse=True):
        print(f"{probability:.4f}  {name}")


def _label_table(options: flags.FlagValues) -> None:
    table = _standard_input(options.text_column) if options.input == "-" else read_table(options.input)
    texts = table.texts(options.text_column)
    inputs = (texts, table.texts(options.pair_column)) if options.pair_column else texts
    classifier, names = load(options)
    added = ["predicted_label", *(f"probability_{name}" for name in names)]
    repeated = sorted(set(added) & set(table.columns))
    if repeated:
        raise ValueError(f"{table.path} has a column {repeated[0]!r} already: rename or remove it")
    labels, probabilities = classifier.predict_labels(inputs, batch_size=options.batch_size)
    rows = [{**row, **answer} for row, answer in zip(table.rows, _answers(added, labels, probabilities), strict=True)]
    _write(options.output, [*table.columns, *added], rows)


def _standard_input(column: str) -> Table:
    lines = decode(sys.stdin.buffer.read(), "standard input").splitlines()
    if not lines:
        raise ValueError("standard input is empty")
    return Table(Path("-"), [column], [{column: line} for line in lines], list(range(1, len(lines) + 1)))


def _answers(columns: list[str], labels: list[str], probabilities: np.ndarray) -> list[dict]:
    rounded = np.round(probabilities.astype("float64"), 6).tolist()
    return [dict(zip(columns, [label, *row], strict=True)) for label, row in zip(labels, rounded, strict=True)]


def _write(output: str | None, columns: list[str], rows: list[dict]) -> None:
    if output is None:
        return _write_csv(sys.stdout, columns, rows)
    write = _write_jsonl if Path(output).suffix.lower() == ".jsonl" else _write_csv
    with replacing(output) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        write(file, columns, rows)


def _write_csv(file, columns: list[str], rows: list[dict]) -> None:
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _write_jsonl(file, columns: list[str], rows: list[dict]) -> None:
    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
