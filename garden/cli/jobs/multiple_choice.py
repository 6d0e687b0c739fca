"""The right one of several choices, from files in the layouts of RACE, SWAG and C3."""

from pathlib import Path

import numpy as np

from ..answers import write_rows
from ..examples import Examples
from .job import Job


class MultipleChoice(Job):
    """The choice that answers a question about a text."""

    task = "MultipleChoice"
    files = "a folder of RACE's .txt files, SWAG's .csv or C3's .json"

    def read(self, path, options):
        inputs, answers = _read(path)
        if answers is None:
            raise ValueError(f"{path} has no column 'label': it can be answered, but not learnt or measured")
        if not answers:
            raise ValueError(f"{path} holds no question")
        return Examples(inputs, answers)

    def groups(self, examples):
        return examples.inputs[0]

    def targets(self, model, examples):
        return np.array(examples.targets, "int32")

    def lengths(self, model, examples):
        from garden.tasks.batching import token_counts

        return token_counts(examples.inputs[0], model.preprocessor.tokenizer)

    def about(self, training, validation):
        counts = sorted({len(choices) for choices in training.inputs[2]})
        choices = f"{counts[0]} choices" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} choices"
        return f"{len(training):,} questions of {choices} to train on, {len(validation):,} held out"

    def figures(self, model, examples, options):
        chosen, probabilities = model.predict_choices(examples.inputs, options.batch_size)
        counts = np.array([len(choices) for choices in examples.inputs[2]])
        right = probabilities[np.arange(len(chosen)), examples.targets].astype("float64")
        return {
            "accuracy": float((chosen == examples.targets).mean()),
            "chance": float((1 / counts).mean()),
            "loss": float(-np.log(np.maximum(right, 1e-12)).mean()),
            "questions": len(chosen),
        }

    def as_text(self, figures):
        return "\n".join(f"{name:<12}{figures[name]:9.3f}" for name in ("accuracy", "chance", "loss"))

    def answer_one(self, model, options):
        if not options.choice or len(options.choice) < 2:
            raise ValueError("--text is the question: give two choices or more, each with a --choice of its own")
        _, probabilities = model.predict_choices(([options.pair or ""], [options.text], [options.choice]))
        for probability, choice in sorted(zip(probabilities[0].tolist(), options.choice, strict=True), reverse=True):
            print(f"{probability:.4f}  {choice}")

    def answer_file(self, model, options):
        (contexts, questions, choices), _ = _read(options.input)
        chosen, probabilities = model.predict_choices((contexts, questions, choices), options.batch_size)
        columns = ["question", "choices", "predicted_choice", "answer", "probabilities"]
        rows = [
            dict(zip(columns, (question, list(row), int(i), row[i], np.round(p[: len(row)], 6).tolist()), strict=True))
            for question, row, i, p in zip(questions, choices, chosen, probabilities.astype("float64"), strict=True)
        ]
        write_rows(columns, rows, options.output)


def _read(path: str):
    """The samples and answers of a file in any of the layouts."""
    from garden.tasks import read_c3, read_race, read_swag

    if Path(path).is_dir():
        return read_race(path)
    readers = {".csv": read_swag, ".json": read_c3}
    if Path(path).suffix.lower() not in readers:
        raise ValueError(f"{path}: multiple choice takes a folder of RACE, a .csv of SWAG or a .json of C3")
    return readers[Path(path).suffix.lower()](path)
