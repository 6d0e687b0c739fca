"""Language modelling of one long stream, cut into segments that a memory joins."""

import keras
import numpy as np
from keras import ops

from garden.kept import Kept
from garden.recurrent import RecurrentBackbone
from garden.strings import as_strings, is_text

from .checks import check_labels


class StreamLM(Kept, keras.Model):
    """Trains and measures a `CausalLM` on a text too long for a row (Dai et al. 2019, section 3.2).

    The stream is cut into b rows of equal length, which are read side by side, t tokens a step. Row r of a step goes on
    where row r of the step before it ended: the memory of the backbone is carried over, without a gradient. It is empty
    at the start of every epoch and of every evaluation. No token is dropped.

    The weights are those of `language_model`, which generates and saves them.

    Args:
        language_model: a `garden.tasks.CausalLM` on a `garden.RecurrentBackbone` with a `memory_length`.
        num_rows: b, rows that are read side by side.
        sequence_length: t, tokens of a row a step.

    Raises:
        ValueError: the backbone carries no memory, or has no `memory_length`.

    `fit` and `evaluate` report, over all tokens, `perplexity` and `bits` (bits per character where tokens are
    characters), and as `loss` the mean over the steps.

    >>> import numpy as np, garden
    >>> backbone = garden.TransformerXlBackbone(
    ...     5, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16, memory_length=4)
    >>> model = garden.tasks.StreamLM(garden.tasks.TransformerXlCausalLM(backbone), num_rows=2, sequence_length=4)
    >>> model.compile()
    >>> stream = np.arange(41) % 5
    >>> history = model.fit(stream, epochs=2, verbose=0)
    >>> sorted(model.evaluate(stream, verbose=0))
    ['bits', 'loss', 'perplexity']
    """

    def __init__(self, language_model, num_rows, sequence_length, **kwargs):
        super().__init__(**kwargs)
        backbone = language_model.backbone
        if not isinstance(backbone, RecurrentBackbone) or not backbone.memory_length:
            raise ValueError(
                f"A {type(backbone).__name__} with memory_length={getattr(backbone, 'memory_length', None)} carries "
                "nothing from step to step: take a garden.RecurrentBackbone with a memory_length."
            )
        if backbone.is_encoder:
            raise ValueError(
                f"A {type(backbone).__name__} carries the memory of a stream that sees what is to be said."
            )
        self.language_model = language_model
        self.recurrent = backbone.recurrent()
        self.num_rows = num_rows
        self.sequence_length = sequence_length
        self.memory = {
            name: self.add_weight(
                name=name,
                shape=zeros.shape,
                dtype="int32" if zeros.dtype == "int32" else backbone.compute_dtype,
                initializer="zeros",
                trainable=False,
                autocast=False,
            )
            for name, zeros in backbone.empty_memory(num_rows).items()
        }
        self.perplexity = OfMean(ops.exp, name="perplexity")
        self.bits = OfMean(lambda nats: nats / np.log(2), name="bits")
        self.built = True

    def compile(self, optimizer="auto", **kwargs):
        """Keras's `compile`; `"auto"` is Adam at 2.5e-4 with gradients clipped to a norm of 0.25, as in the paper."""
        adam = {"learning_rate": 2.5e-4, "global_clipnorm": 0.25}
        super().compile(keras.optimizers.Adam(**adam) if optimizer == "auto" else optimizer, **kwargs)

    def fit(self, stream, epochs=1, validation_stream=None, callbacks=(), **kwargs):
        """Reads the stream `epochs` times from its start.

        Args:
            stream: token ids (n,), or text: a string or a list of lines, each of which gets the end token.
            epochs: how often.
            validation_stream: what to evaluate on after every epoch.
            callbacks, **kwargs: as in Keras's `fit`.

        Returns:
            Keras's history.

        Raises:
            ValueError: fewer than two tokens, or ids beyond the vocabulary.
        """
        x, y, sample_weight = self.steps(stream)
        # A batch is a step: nothing may be shuffled.
        settings = {"batch_size": self.num_rows, "shuffle": False, "callbacks": [_EmptyMemory(), *callbacks]}
        if validation_stream is not None:
            settings["validation_data"] = self.steps(validation_stream)
        return super().fit(x, y, sample_weight=sample_weight, epochs=epochs, **settings, **kwargs)

    def evaluate(self, stream=None, callbacks=(), **kwargs):
        """The loss, perplexity and bits of a stream read once from its start, as a dictionary; see `fit`."""
        if kwargs.get("_use_cached_eval_dataset"):  # Keras's own call, at the end of an epoch
            return super().evaluate(callbacks=callbacks, **kwargs)
        x, y, sample_weight = self.steps(stream)
        settings = {"batch_size": self.num_rows, "return_dict": True, "callbacks": [_EmptyMemory(), *callbacks]}
        return super().evaluate(x, y, sample_weight=sample_weight, **settings, **kwargs)

    def steps(self, stream) -> tuple[dict, np.ndarray, np.ndarray]:
        """What is read, in order: inputs, targets and weights, each step a batch of `num_rows` rows."""
        ids = self.token_ids(stream)
        places, real = stream_places(len(ids) - 1, self.num_rows, self.sequence_length)
        token_ids = np.where(real, ids[places], 0)
        inputs = {"token_ids": token_ids, "segment_ids": 0 * token_ids, "padding_mask": real.astype("int32")}
        inputs = {name: inputs[name] for name in self.language_model.backbone.input_names}
        return inputs, np.where(real, ids[places + 1], 0), real.astype("float32")

    def token_ids(self, stream) -> np.ndarray:
        """The ids (n,) of a stream, which may be text."""
        if is_text(stream):
            lines = as_strings([stream] if isinstance(stream, str) else stream)[0]
            rows = self.language_model.preprocessor.rows(lines, end=True)
            stream = np.concatenate([np.array(row, "int32") for row in rows])
        ids = np.asarray(check_labels(np.asarray(stream), self.language_model.backbone.vocabulary_size), "int32")
        if ids.ndim != 1 or len(ids) < 2:
            raise ValueError(f"A stream is one row of at least two tokens; this one has the shape {ids.shape}.")
        return ids

    def empty_memory(self) -> None:
        """Forgets what was read."""
        for state in self.memory.values():
            state.assign(np.zeros(state.shape))

    def call(self, inputs, training=None):
        held = {name: ops.copy(state) for name, state in self.memory.items()}  # PyTorch assigns in place
        outputs = self.recurrent({**inputs, **held}, training=training)
        for name, state in self.memory.items():
            state.assign(outputs[name])
        return outputs["sequence_output"]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        losses = losses_of(self.language_model.head, y_pred, y)
        for metric in (self.perplexity, self.bits):
            metric.update_state(losses, sample_weight)
        return ops.sum(losses * sample_weight) / ops.maximum(ops.sum(sample_weight), 1.0)


class OfMean(keras.metrics.Mean):
    """A function of a weighted mean.

    >>> from keras import ops
    >>> from garden.tasks.stream_lm import OfMean
    >>> metric = OfMean(ops.exp, name="perplexity")
    >>> metric.update_state([0.0, 5.0], sample_weight=[1.0, 0.0])
    >>> float(metric.result())
    1.0
    """

    def __init__(self, function, name):
        super().__init__(name=name)
        self.function = function

    def result(self):
        return self.function(super().result())


class _EmptyMemory(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.model.empty_memory()

    def on_test_begin(self, logs=None):
        self.model.empty_memory()


def losses_of(head, sequence, targets):
    """-log p of each target (b, t) under a language model's head; an adaptive softmax has its own cheaper way.

    >>> import numpy as np
    >>> from garden.tasks.stream_lm import losses_of
    >>> np.allclose(losses_of(lambda x: x, np.zeros((1, 1, 4)), np.array([[2]])), np.log(4))
    True
    """
    if hasattr(head, "losses_of"):
        return head.losses_of(sequence, targets)
    logits = ops.cast(head(sequence), "float32")
    return keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)


def stream_places(count: int, num_rows: int, sequence_length: int) -> tuple[np.ndarray, np.ndarray]:
    """Where in a stream each token of each step stands.

    Args:
        count: tokens of the stream that have a next one.
        num_rows: b.
        sequence_length: t.

    Returns:
        int (steps * b, t), places from 0 to count - 1, and bool (steps * b, t), False where a row is at its end.

    >>> from garden.tasks.stream_lm import stream_places
    >>> places, real = stream_places(7, num_rows=2, sequence_length=3)
    >>> places.reshape(2, 2, 3).tolist(), real.reshape(2, 2, 3).sum(-1).tolist()
    ([[[0, 1, 2], [4, 5, 6]], [[3, 4, 5], [6, 6, 6]]], [[3, 3], [1, 0]])
    """
    length = -(-count // num_rows)
    column = np.arange(-(-length // sequence_length) * sequence_length).reshape(-1, 1, sequence_length)
    places = column + length * np.arange(num_rows)[:, None]
    real = (column < length) & (places < count)
    shape = (-1, sequence_length)
    return np.minimum(places, count - 1).reshape(shape), real.reshape(shape)
