"""Backbones that carry a memory from one segment of a text to the next (Dai et al. 2019, section 3.2)."""

import keras
import numpy as np

from garden.backbone import Backbone, Taps
from garden.kept import FunctionalModel
from garden.layers import Memory


class RecurrentBackbone(Backbone):
    """A backbone that reads a text alone, or segment by segment with a memory.

    A subclass names `num_layers`, `hidden_dim`, `memory_length` and `reuse_length` in its constructor. Its `assemble`
    gives block i the entry i of `memories(inputs)`, which holds inputs of block i, and `inputs.get("memory_mask")` to
    the attention mask.

    >>> import garden
    >>> issubclass(garden.XlnetBackbone, RecurrentBackbone)
    True
    """

    def recurrent(self) -> keras.Model:
        """A functional model over the same weights that goes on from a memory.

        Inputs beside the backbone's:
            memory: float (b, l, m, d), one entry a layer; `empty_memory` is the first.
            memory_mask: int32 (b, m), 0 where the memory holds nothing: a memory of zeros alone equals none.

        Outputs beside the backbone's:
            memory, memory_mask: those for the next segment, of `memory_length` places at most, without a gradient.

        >>> import numpy as np, garden
        >>> xlnet = garden.XlnetBackbone(
        ...     50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16, memory_length=4)
        >>> ids = np.array([[7, 8, 9]])
        >>> x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        >>> model, memory = xlnet.recurrent(), xlnet.empty_memory(1)
        >>> for _ in range(2):
        ...     outputs = model.predict_on_batch({**x, **memory})
        ...     memory = {name: outputs[name] for name in memory}
        >>> memory["memory"].shape == (1, 2, 4, 8)
        True
        """
        inputs = self.with_memory(self.input)
        outputs = self.remembering(inputs, Taps(("hidden_states",)), self.assemble)
        return RecurrentModel(inputs, outputs, name=f"{self.name}_recurrent")

    def with_memory(self, inputs: dict) -> dict:
        """Symbolic inputs, and those of the memory beside them."""
        return {
            **inputs,
            "memory": keras.Input((self.num_layers, None, self.hidden_dim), dtype=self.compute_dtype, name="memory"),
            "memory_mask": keras.Input((None,), dtype="int32", name="memory_mask"),
        }

    def remembering(self, inputs: dict, taps: Taps, assemble) -> dict:
        """What `assemble(inputs, taps)` returns, and the memory for the next segment."""
        outputs = assemble(inputs, taps)
        update = Memory(self.memory_length, self.reuse_length, dtype=self.dtype_policy, name="memory_update")
        states = self.remembered(taps.lists["hidden_states"])
        memory, memory_mask = update(states, *(inputs[name] for name in ("padding_mask", "memory", "memory_mask")))
        return {**outputs, "memory": memory, "memory_mask": memory_mask}

    def remembered(self, hidden_states: list) -> list:
        """Which hidden states the layers' memories hold: their inputs."""
        return hidden_states[:-1]

    def memories(self, inputs: dict) -> list:
        """Each block's memory (b, m, d), or None where the inputs have none."""
        if "memory" not in inputs:
            return [None] * self.num_layers
        return [inputs["memory"][:, i] for i in range(self.num_layers)]

    def empty_memory(self, batch_size: int, length: int | None = None) -> dict:
        """A memory that holds nothing, as the first segment's input.

        Args:
            batch_size: b.
            length: m; None means `memory_length`, so that all segments are computed at one shape, or 0 where that is
                None too.

        Returns:
            `memory`, zeros (b, l, m, d), and `memory_mask`, zeros (b, m).
        """
        length = (self.memory_length or 0) if length is None else length
        return {
            "memory": np.zeros((batch_size, self.num_layers, length, self.hidden_dim), "float32"),
            "memory_mask": np.zeros((batch_size, length), "int32"),
        }


class RecurrentModel(FunctionalModel):
    """What `recurrent` makes: a functional model that says what is wrong with a memory.

    >>> import garden
    >>> backbone = garden.XlnetBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> type(backbone.recurrent()).__name__
    'RecurrentModel'
    """

    def call(self, inputs, *args, **kwargs):
        self.check_memory(inputs)
        return super().call(inputs, *args, **kwargs)

    def predict(self, x, *args, **kwargs):
        self.check_memory(x)  # here too: TensorFlow forgets shapes when it compiles
        return super().predict(x, *args, **kwargs)

    def predict_on_batch(self, x):
        self.check_memory(x)
        return super().predict_on_batch(x)

    def check_memory(self, inputs):
        """Raises ValueError where a memory's shape does not fit the rows and the mask beside it, or the model."""
        if not isinstance(inputs, dict):
            return
        _, layers, _, width = self.input["memory"].shape
        rows, places = inputs["token_ids"].shape[0], inputs["memory_mask"].shape[-1]
        wanted, found = (rows, layers, places, width), tuple(inputs["memory"].shape)
        if len(found) != 4 or any(None not in pair and pair[0] != pair[1] for pair in zip(wanted, found, strict=True)):
            raise ValueError(
                f"The memory has the shape {found}, but with {rows} rows and a memory_mask of {places} places it must "
                f"be {wanted}: take `empty_memory`, or what the last segment gave."
            )
