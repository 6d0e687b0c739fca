"""Models that keep their weights when a step fails."""

from contextlib import contextmanager

import keras


class Kept:
    """Mixin before a `keras.Model`: what trains, measures and predicts leaves a whole model behind an error.

    Keras's JAX trainer takes the weights out of the model while it computes. An error in between, or a Ctrl-C, would
    lose them, and whatever came next would fail with "'NoneType' object is not callable".

    >>> import numpy as np, garden
    >>> bert = garden.BertBackbone(
    ...     50, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16, max_sequence_length=4)
    >>> for length in (5, 4):
    ...     ids = np.ones((1, length), "int32")
    ...     try:
    ...         outputs = bert.predict({"token_ids": ids, "segment_ids": ids, "padding_mask": ids}, verbose=0)
    ...     except ValueError as error:
    ...         print("The rows have 5 tokens" in str(error))
    True
    >>> outputs["sequence_output"].shape
    (1, 4, 8)
    """

    def fit(self, *args, **kwargs):
        with weights_kept(self):
            return super().fit(*args, **kwargs)

    def evaluate(self, *args, **kwargs):
        with weights_kept(self):
            return super().evaluate(*args, **kwargs)

    def predict(self, *args, **kwargs):
        with weights_kept(self):
            return super().predict(*args, **kwargs)

    def train_on_batch(self, *args, **kwargs):
        with weights_kept(self):
            return super().train_on_batch(*args, **kwargs)

    def test_on_batch(self, *args, **kwargs):
        with weights_kept(self):
            return super().test_on_batch(*args, **kwargs)

    def predict_on_batch(self, *args, **kwargs):
        with weights_kept(self):
            return super().predict_on_batch(*args, **kwargs)


class FunctionalModel(Kept, keras.Model):
    """A functional `keras.Model` that keeps its weights, over inputs and outputs of layers that exist already.

    >>> import keras
    >>> from garden.kept import FunctionalModel
    >>> x = keras.Input((2,))
    >>> FunctionalModel(x, keras.layers.Dense(3)(x)).output_shape
    (None, 3)
    """


@contextmanager
def weights_kept(model):
    """On JAX, puts back what the trainer took out of a model's variables, if the block raises.

    Args:
        model: a `keras.Model`.
    """
    if keras.backend.backend() != "jax":
        yield
        return
    held = [(variable, variable._value) for variable in model.variables]
    try:
        yield
    except BaseException:
        last = getattr(model, "_jax_state", None) or {}  # what the last whole step gave
        groups = ("trainable_variables", "non_trainable_variables", "metrics_variables")
        newer = [pair for name in groups for pair in zip(getattr(model, name), last.get(name) or (), strict=False)]
        if getattr(model, "optimizer", None):
            newer += zip(model.optimizer.variables, last.get("optimizer_variables") or (), strict=False)
        for variable, value in [*newer, *held]:
            if variable._value is None and value is not None and not value.is_deleted():
                variable._value = value
        raise
