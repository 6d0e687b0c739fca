"""The form of a job: all that differs between classification, tagging, question answering and the others."""

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np

from ..examples import Examples, random_split


class Job(ABC):
    """One `--task` of the command line.

    Attributes:
        task: name of the class in `garden.tasks`.
        metric: what the learning curve shows beside the loss, by its name in Keras's logs.
        pictures: files that `draw` makes.
        sequence_length: tokens a row where the user says nothing.
        flags: those of `garden finetune` that are this job's own.
        files: what `--train` may be, for the help.
    """

    task: str
    metric = "sparse_categorical_accuracy"
    pictures: tuple[str, ...] = ()
    sequence_length = 128
    flags: tuple[str, ...] = ()
    files: str

    @abstractmethod
    def read(self, path: str, options) -> Examples:
        """The examples in a file; raises ValueError or OSError that names it."""

    @abstractmethod
    def figures(self, model, examples: Examples, options) -> dict:
        """What the model's answers to examples are worth, for metrics.json."""

    @abstractmethod
    def as_text(self, figures: dict) -> str:
        """The figures for the terminal."""

    @abstractmethod
    def answer_one(self, model, options) -> None:
        """Prints the answer to --text and its companions."""

    @abstractmethod
    def answer_file(self, model, options) -> None:
        """Writes the answers to --input to --output, or prints them."""

    def fits(self, config: dict) -> bool:
        """Whether a preset of this configuration, which holds the task, is for this job: two jobs may share a task."""
        return True

    def groups(self, examples: Examples) -> list:
        """What examples must have in common so as not to be torn apart by `split`, such as their passage."""
        return list(range(len(examples)))

    def split(self, examples: Examples, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions to train on and positions held out."""
        return random_split(self.groups(examples), fraction, seed)

    def check(self, training: Examples, validation: Examples) -> None:
        """Raises ValueError where the one does not fit the other."""
        return None

    def arguments(self, training: Examples, options) -> dict:
        """The task's arguments beside those of every job."""
        return {}

    def compile_settings(self) -> dict:
        """The arguments of `compile` beside the optimizer; what is left out is the task's own."""
        return {}

    def about(self, training: Examples, validation: Examples) -> str:
        """A line or two before the training starts."""
        return f"{len(training):,} examples to train on, {len(validation):,} held out"

    def targets(self, model, examples: Examples):
        """The targets as the task's `fit` takes them."""
        return examples.targets

    def lengths(self, model, examples: Examples) -> np.ndarray:
        """Tokens of every example: int (n,)."""
        from garden.tasks.batching import token_counts

        return token_counts(examples.inputs, model.preprocessor.tokenizer)

    def batches(self, model, examples: Examples, batch_size: int, seed: int, drop_remainder: bool = False):
        """A `tf.data.Dataset` of raw batches in an order that the seed fixes."""
        from garden.tasks import batches_by_length

        samples = model.training_samples(examples.inputs, self.targets(model, examples))
        return batches_by_length(samples, self.lengths(model, examples), batch_size, seed, drop_remainder)

    def draw(self, figures: dict, folder: Path) -> None:
        """Draws `pictures` into a folder."""
        return None
