"""Backing up a training run, so that a killed one ends with the weights of one that was not."""

import json
import time
from pathlib import Path

import keras
import numpy as np

from .run_folder import replacing, require_space, write_json


class Backup(keras.callbacks.Callback):
    """Saves weights, optimizer and step count at the end of each epoch, and every `steps` steps if that is not 0.

    It stands in for `keras.callbacks.BackupAndRestore`, which writes its files in place (a kill while it writes costs
    the backup), begins an epoch's data again when it was stopped within it, after the schedule has moved on, and does
    not keep the state of dropout. Here the optimizer's step count, part of the one file that is replaced in one move,
    says which batches are done, and at every backup dropout begins anew from the seed and that count.

    Attributes:
        epochs: what each finished epoch gave: `epoch`, its metrics, `seconds`.
    """

    def __init__(self, folder: Path, steps: int, seed: int):
        super().__init__()
        self.folder, self.steps, self.seed = folder, steps, seed
        self.epochs: list[dict] = []
        self._since_saved = 0
        self._reseeded = False
        self._began = 0.0

    def restore(self, model: keras.Model) -> int:
        """Brings a compiled model to the saved state, if there is one, and returns the number of steps it has done."""
        if not self._state.exists():
            return 0
        model.optimizer.build(model.trainable_variables)
        model.load_weights(self._state)
        if self._history.exists():
            self.epochs = json.loads(self._history.read_text("utf-8"))
        return int(model.optimizer.iterations)

    def on_epoch_begin(self, epoch, logs=None):
        del self.epochs[epoch:]  # the history is saved before the state: it may be one epoch ahead after a kill
        self._began = time.perf_counter()

    def on_train_batch_begin(self, batch, logs=None):
        if not self._reseeded:  # here, since what happens before an epoch's first batch may draw random numbers too
            self._reseed()

    def on_train_batch_end(self, batch, logs=None):
        self._since_saved += 1
        if self.steps and self._since_saved >= self.steps:
            self._save()

    def on_epoch_end(self, epoch, logs=None):
        figures = {key: float(value) for key, value in logs.items()}
        seconds = round(time.perf_counter() - self._began, 2)
        self.epochs.append({"epoch": epoch + 1, **figures, "seconds": seconds})
        write_json(self._history, self.epochs)
        self._save()

    def _save(self) -> None:
        require_space(self.folder, [*self.model.variables, *self.model.optimizer.variables])
        with replacing(self._state) as temporary:
            self.model.save_weights(temporary)
        self._since_saved = 0
        self._reseeded = False

    def _reseed(self) -> None:
        states = [variable for variable in self.model.variables if variable.path.endswith("seed_generator_state")]
        mixed = np.random.SeedSequence([self.seed, int(self.model.optimizer.iterations)])
        first, *others = (mixed.generate_state(1 + len(states)) >> 1).tolist()
        keras.utils.set_random_seed(first)  # from which PyTorch's dropout draws
        for state, value in zip(states, others, strict=True):
            state.assign([value, 0])
        self._reseeded = True

    @property
    def _state(self) -> Path:
        return self.folder / "state.weights.h5"

    @property
    def _history(self) -> Path:
        return self.folder / "epochs.json"
