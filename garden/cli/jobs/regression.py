"""A number for each text or pair of texts, such as the similarity of two sentences (STS-B), from a table."""

import math

import numpy as np

from .. import pictures
from ..answers import answer_table, read_input
from ..data import read_table
from ..examples import Examples, text_inputs
from .job import Job


class Regression(Job):
    """One number for each text."""

    task = "TextClassifier"
    problem = "regression"
    metric = "mean_absolute_error"
    pictures = ("predictions.png",)
    files = "a table (.csv, .tsv, .jsonl) with a text and a number in each row"

    def read(self, path, options):
        table = read_table(path)
        cells = table.labels(options.label_column)
        numbers = [
            _number(cell, f"{path}, line {line}: {options.label_column!r}")
            for cell, line in zip(cells, table.lines, strict=True)
        ]
        return Examples(text_inputs(table, options.text_column, options.pair_column), numbers)

    def fits(self, config):
        return config.get("problem") == self.problem

    def check(self, training, validation):
        for name, examples in (("training", training), ("validation", validation)):
            if len(set(examples.targets)) < 2:
                raise ValueError(f"all numbers of the {name} part are {examples.targets[0]}: there is nothing to learn")

    def arguments(self, training, options):
        return {"problem": self.problem}

    def targets(self, model, examples):
        return np.array(examples.targets, "float32")

    def about(self, training, validation):
        values = np.array(training.targets)
        spread = f"numbers from {values.min():g} to {values.max():g}, {values.mean():.3g} on average"
        return f"{len(training):,} texts to train on, {len(validation):,} held out, {spread}"

    def figures(self, model, examples, options):
        from garden.tasks.metrics import pearson, spearman

        truth = np.array(examples.targets)
        found = model.predict_values(examples.inputs, options.batch_size).astype("float64")
        return {
            "pearson": _finite(pearson(truth, found)),
            "spearman": _finite(spearman(truth, found)),
            "mean_squared_error": float(np.mean((truth - found) ** 2)),
            "variance": float(truth.var()),
            "predictions": np.round(found, 6).tolist(),
            "truth": truth.tolist(),
        }

    def as_text(self, figures):
        names = {"pearson": "Pearson", "spearman": "Spearman", "mean_squared_error": "mean squared error"}
        names["variance"] = "the same of always answering the mean"
        shown = {meaning: figures[name] for name, meaning in names.items() if figures[name] is not None}
        return "\n".join(f"{meaning:<40}{figure:9.3f}" for meaning, figure in shown.items())

    def draw(self, figures, folder):
        pictures.scatter_picture(figures["truth"], figures["predictions"], folder / "predictions.png")

    def answer_one(self, model, options):
        inputs = [options.text] if options.pair is None else ([options.text], [options.pair])
        print(f"{float(model.predict_values(inputs)[0]):.4f}")

    def answer_file(self, model, options):
        table = read_input(options)
        inputs = text_inputs(table, options.text_column, options.pair_column)

        def answers():
            values = model.predict_values(inputs, batch_size=options.batch_size)
            return zip(np.round(values.astype("float64"), 6).tolist())

        answer_table(table, ["predicted_value"], answers, options.output)


def _finite(figure: float) -> float | None:
    """A figure as JSON knows it: answers that are all the same have no correlation."""
    return figure if math.isfinite(figure) else None


def _number(cell: str, where: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        raise ValueError(f"{where} is {cell!r}, not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{where} is {cell!r}, not a finite number")
    return number
