"""Classes of texts or pairs of texts, from a table."""

import numpy as np

from .. import metrics, pictures
from ..answers import answer_table, read_input
from ..data import read_table
from ..examples import Examples, class_names, label_ids, some, stratified_split, text_inputs
from .job import Job


class Classification(Job):
    """One class for each text."""

    task = "TextClassifier"
    problem = "single_label_classification"
    metric = "accuracy"
    pictures = ("confusion_matrix.png",)
    files = "a table (.csv, .tsv, .jsonl) with a text and a class name in each row"

    def read(self, path, options):
        table = read_table(path)
        return Examples(
            text_inputs(table, options.text_column, options.pair_column), table.labels(options.label_column)
        )

    def fits(self, config):
        return config.get("problem", self.problem) == self.problem

    def split(self, examples, fraction, seed):
        return stratified_split(examples.targets, fraction, seed)

    def check(self, training, validation):
        label_ids(validation.targets, class_names(training.targets))

    def arguments(self, training, options):
        return {"class_names": class_names(training.targets), "problem": self.problem}

    def compile_settings(self):
        import keras

        return {"loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "metrics": ["accuracy"]}

    def targets(self, model, examples):
        return label_ids(examples.targets, model.names)

    def about(self, training, validation):
        names = class_names(training.targets)
        baseline = metrics.majority_baseline(label_ids(validation.targets, names))
        return (
            f"{len(training):,} texts to train on, {len(validation):,} held out, {len(names)} classes: {some(names)}\n"
            f"always answering the commonest class would be right for {baseline:.1%} of the held-out texts"
        )

    def figures(self, model, examples, options):
        truth = label_ids(examples.targets, model.names)
        return metrics.report(truth, model.predict_labels(examples.inputs, options.batch_size)[1], model.names)

    def as_text(self, figures):
        return metrics.as_text(figures)

    def draw(self, figures, folder):
        names = list(figures["classes"])
        pictures.confusion_picture(figures["confusion_matrix"], names, folder / "confusion_matrix.png")

    def answer_one(self, model, options):
        inputs = [options.text] if options.pair is None else ([options.text], [options.pair])
        _, probabilities = model.predict_labels(inputs)
        for probability, name in sorted(zip(probabilities[0].tolist(), model.names, strict=True), reverse=True):
            print(f"{probability:.4f}  {name}")

    def answer_file(self, model, options):
        table = read_input(options)
        added = ["predicted_label", *(f"probability_{name}" for name in model.names)]
        inputs = text_inputs(table, options.text_column, options.pair_column)

        def answers():
            labels, probabilities = model.predict_labels(inputs, batch_size=options.batch_size)
            return zip(labels, *np.round(probabilities.astype("float64"), 6).T.tolist(), strict=True)

        answer_table(table, added, answers, options.output)
