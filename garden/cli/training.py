"""Fine-tuning as the BERT paper does (Devlin et al. 2018, appendix A.3): AdamW, a linear rise and
fall of the learning rate, gradients cut to norm 1."""

import sys
from dataclasses import dataclass

import keras
import numpy as np
from keras import ops

from .backup import Backup
from .examples import Examples
from .jobs import Job
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


def train(job: Job, model, training: Examples, validation: Examples, recipe: Recipe, run: RunFolder) -> list[dict]:
    """Trains in place, going on from the run folder's backup if there is one, and returns each epoch's figures.

    Every epoch is a `fit` of its own, whose batches the seed and the epoch alone decide: a run that was killed goes on
    with the batches that were left.
    """
    batches = _batches(job, model, training, recipe, drop_remainder=True)
    steps = int(batches.cardinality())
    compile_model(job, model, recipe, steps)
    backup = Backup(run.backup, recipe.backup_steps, recipe.seed)
    done = backup.restore(model)
    if done:
        print(f"going on after step {done} of {steps * recipe.epochs}", file=sys.stderr)
    held_out = _batches(job, model, validation, recipe)
    for epoch in range(done // steps, recipe.epochs):
        begin = max(done, epoch * steps)
        if epoch:
            batches = _batches(job, model, training, recipe, epoch, drop_remainder=True)
        model.fit(
            batches.skip(begin % steps),
            validation_data=held_out,
            initial_epoch=epoch,
            epochs=epoch + 1,
            shuffle=False,
            callbacks=[backup, _Progress(recipe.epochs)],
        )
    return backup.epochs


def compile_model(job: Job, model, recipe: Recipe, steps_per_epoch: int) -> None:
    """Gives the model its optimizer, loss and metric."""
    total = steps_per_epoch * recipe.epochs
    schedule = LinearWarmupDecay(recipe.learning_rate, round(recipe.warmup * total), total)
    optimizer = keras.optimizers.AdamW(schedule, recipe.weight_decay, epsilon=1e-6, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(
        var_list=[variable for variable in model.trainable_variables if variable.name in _UNDECAYED]
    )
    model.compile(optimizer, **job.compile_settings())


def _batches(job: Job, model, examples: Examples, recipe: Recipe, epoch: int = 0, drop_remainder: bool = False):
    seed = int(np.random.SeedSequence([recipe.seed, epoch]).generate_state(1)[0])
    # They are drawn anew at each iteration, and Keras iterates once more in a process's first fit.
    batches = job.batches(model, examples, recipe.batch_size, seed, drop_remainder).cache()
    batches.reduce(0, lambda count, _: count + 1)
    return batches


class _Progress(keras.callbacks.ProgbarLogger):
    """Keras's progress bar, told how many epochs the whole run has; one line an epoch where output is no terminal."""

    def __init__(self, epochs: int):
        super().__init__()
        self._of = epochs

    def set_params(self, params):
        super().set_params({**params, "epochs": self._of, "verbose": 1 if sys.stdout.isatty() else 2})
