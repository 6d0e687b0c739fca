"""Fine-tuning a text classifier as the BERT paper does (Devlin et al. 2018, appendix A.3): AdamW, a linear rise and
fall of the learning rate, gradients cut to norm 1."""

import sys
from dataclasses import dataclass

import keras
import numpy as np
from keras import ops

from garden.tasks import TextClassifier, length_grouped

from .backup import Backup
from .examples import Examples
from .run_folder import RunFolder

_UNDECAYED = ("bias", "beta", "gamma", "scale")


@dataclass(frozen=True)
class Recipe:
    """How to train; the names are those of `garden finetune`'s flags."""

    epochs: int
    batch_size: int
    learning_rate: float
    warmup: float
    weight_decay: float
    seed: int
    backup_steps: int


class LinearWarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises over the first `warmup_steps` to `peak`, then falls to zero at `total_steps`; no step has rate zero.

    >>> schedule = LinearWarmupDecay(1.0, warmup_steps=2, total_steps=6)
    >>> [float(schedule(step)) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """

    def __init__(self, peak: float, warmup_steps: int, total_steps: int):
        self.peak, self.warmup_steps, self.total_steps = peak, warmup_steps, total_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rise = (step + 1) / max(self.warmup_steps, 1)
        fall = (self.total_steps - step) / max(self.total_steps - self.warmup_steps, 1)
        return self.peak * ops.clip(ops.minimum(rise, fall), 0, 1)

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "total_steps": self.total_steps}


def train(
    classifier: TextClassifier, training: Examples, validation: Examples, recipe: Recipe, run: RunFolder
) -> list[dict]:
    """Trains in place, going on from the run folder's backup if there is one, and returns each epoch's figures.

    Every epoch is a `fit` of its own, whose batches the seed and the epoch alone decide: a run that was killed goes on
    with the batches that were left.
    """
    steps = max(1, len(training) // recipe.batch_size)
    compile_classifier(classifier, recipe, steps)
    backup = Backup(run.backup, recipe.backup_steps, recipe.seed)
    done = backup.restore(classifier)
    if done:
        print(f"going on after step {done} of {steps * recipe.epochs}", file=sys.stderr)
    held_out = _batches(classifier, validation, recipe)
    for epoch in range(done // steps, recipe.epochs):
        begin = max(done, epoch * steps)
        classifier.fit(
            _batches(classifier, training, recipe, epoch, drop_remainder=True).skip(begin % steps),
            validation_data=held_out,
            initial_epoch=epoch,
            epochs=epoch + 1,
            shuffle=False,
            callbacks=[backup, _Progress(recipe.epochs)],
        )
    return backup.epochs


def compile_classifier(classifier: TextClassifier, recipe: Recipe, steps_per_epoch: int) -> None:
    """Gives the classifier its optimizer, loss and metric."""
    total = steps_per_epoch * recipe.epochs
    schedule = LinearWarmupDecay(recipe.learning_rate, round(recipe.warmup * total), total)
    optimizer = keras.optimizers.AdamW(schedule, recipe.weight_decay, epsilon=1e-6, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(
        var_list=[variable for variable in classifier.trainable_variables if variable.name in _UNDECAYED]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    classifier.compile(optimizer, loss, metrics=["accuracy"])


def _batches(
    classifier: TextClassifier, examples: Examples, recipe: Recipe, epoch: int = 0, drop_remainder: bool = False
):
    seed = int(np.random.SeedSequence([recipe.seed, epoch]).generate_state(1)[0])
    labels = examples.label_ids(classifier.class_names)
    batches = length_grouped(
        examples.inputs,
        labels,
        tokenizer=classifier.preprocessor.tokenizer,
        batch_size=recipe.batch_size,
        seed=seed,
        drop_remainder=drop_remainder,
    )
    # `length_grouped` draws anew each time it is iterated, and Keras iterates once more in a process's first fit.
    batches = batches.cache()
    batches.reduce(0, lambda count, _: count + 1)
    return batches


class _Progress(keras.callbacks.ProgbarLogger):
    """Keras's progress bar, told how many epochs the whole run has; one line an epoch where output is no terminal."""

    def __init__(self, epochs: int):
        super().__init__()
        self._of = epochs

    def set_params(self, params):
        super().set_params({**params, "epochs": self._of, "verbose": 1 if sys.stdout.isatty() else 2})
