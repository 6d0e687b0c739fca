"""ERNIE 3.0: large-scale knowledge enhanced pre-training for language understanding and generation (Sun et al. 2021).

This is the model of the paper, whose weights were never published. The checkpoints that are called ERNIE 3.0 are
encoders distilled from it, and `garden.ErnieBackbone` reads them.
"""

import math

import keras
import numpy as np
from keras import layers

from garden.decoder import Cached, through_cache
from garden.layers import (
    FeedForward,
    LanguageModelHead,
    Memory,
    Pooler,
    PostNormBlock,
    RelativePositions,
    XLAttention,
    attention_mask,
    causal_mask,
    truncated_normal,
)
from garden.recurrent import RecurrentBackbone
from garden.tokenizers import BertTokenizer


@keras.saving.register_keras_serializable("garden")
class Ernie3Tokenizer(BertTokenizer):
    __doc__ = BertTokenizer.__doc__.replace("as BERT,", "as ERNIE 3.0, BERT,")

    alternatives = ()


class Ernie3(RecurrentBackbone):
    """A universal module that all tasks share, and behind it one of the two that are specific to a kind of task.

    Both are Transformer-XLs. A dense layer and a norm lie between them; what the paper does not say (this bridge, the
    norms, the width of the feed-forward networks) is as in Transformer-XL and BERT.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers, num_heads, hidden_dim, intermediate_dim: sizes of the universal module; 48, 64, 4096 in the paper.
        task_num_layers, task_num_heads, task_hidden_dim, task_intermediate_dim: those of the task-specific module.
        dropout: rate on the embeddings, the tables of positions, on what attention and feed-forward add, inside of the
            feed-forward networks, and on the bridge.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        memory_length: m, how many places of earlier segments generation remembers at most; None means all.
        recurrence: what a layer remembers of earlier segments: `"same_layer"` its outputs (Ding et al. 2021), so that
            the reach grows with every segment, `"shifted"` its inputs, as in Transformer-XL.
        activation: of the feed-forward networks.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.
        universal: another ERNIE 3.0, in place of a universal module of its own.

    Inputs, int32 (b, t):
        token_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Raises:
        ValueError: a number of heads that does not divide its width, an odd width, or no such recurrence.
    """

    input_names = ("token_ids", "padding_mask")
    tokenizer_cls = Ernie3Tokenizer
    reuse_length = None
    causal = False

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        task_num_layers=12,
        task_num_heads=12,
        task_hidden_dim=768,
        task_intermediate_dim=3072,
        dropout=0.1,
        attention_dropout=None,
        memory_length=128,
        recurrence="same_layer",
        activation="gelu_erf",
        layer_norm_epsilon=1e-5,
        dtype=None,
        **kwargs,
    ):
        if recurrence not in ("same_layer", "shifted"):
            raise ValueError(f"There is no recurrence {recurrence!r}; there are same_layer and shifted.")
        universal = kwargs.pop("universal", None)
        rates = (dropout, dropout if attention_dropout is None else attention_dropout)
        shared = (activation, *rates, layer_norm_epsilon, dtype)
        if universal is None:
            self.embeddings = layers.ReversibleEmbedding(
                vocabulary_size, hidden_dim, embeddings_initializer=truncated_normal(), dtype=dtype, name="embeddings"
            )
            self.universal_blocks = _blocks("universal", num_layers, num_heads, intermediate_dim, *shared)
        else:
            self.embeddings, self.universal_blocks = universal.embeddings, universal.universal_blocks
        self.universal_positions, self.task_positions = (
            RelativePositions(self.causal, dropout=dropout, dtype=dtype, name=f"{module}_positions")
            for module in ("universal", self.module)
        )
        self.bridge = layers.Dense(
            task_hidden_dim, kernel_initializer=truncated_normal(), dtype=dtype, name=f"{self.module}_bridge"
        )
        self.bridge_norm = layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=dtype, name=f"{self.module}_bridge_norm"
        )
        self.task_blocks = _blocks(self.module, task_num_layers, task_num_heads, task_intermediate_dim, *shared)
        self.dropout_layer = layers.Dropout(dropout, dtype=dtype, name="dropout")
        self.pooler = None if self.causal else Pooler(task_hidden_dim, dtype=dtype, name="pooler")
        super().__init__(dtype, **kwargs)

    @property
    def token_embedding(self):
        return self.embeddings

    @property
    def blocks(self):
        """The blocks of both modules in the order in which they run."""
        return [*self.universal_blocks, *self.task_blocks]

    def assemble(self, inputs, taps):
        padding_mask, memory_mask = inputs["padding_mask"], inputs.get("memory_mask")
        mask = causal_mask(padding_mask, memory_mask) if self.causal else attention_mask(padding_mask)
        universal, specific = self.memories(inputs), self.task_memories(inputs)
        x = taps.state(self.dropout_layer(self.embeddings(inputs["token_ids"])))
        relative = self.universal_positions(x, memory=universal[0])
        for block, memory in zip(self.universal_blocks, universal, strict=True):
            x = taps.through(block, x, attention_mask=mask, memory=memory, relative=relative)
        x = taps.state(self.across(x))
        relative = self.task_positions(x, memory=specific[0])
        for block, memory in zip(self.task_blocks, specific, strict=True):
            x = taps.through(block, x, attention_mask=mask, memory=memory, relative=relative)
        pooled = {"pooled_output": self.pooler(x, padding_mask)} if self.pooler else {}
        return {"sequence_output": x, **pooled}

    def across(self, x):
        """What the universal module says (b, t, d), in the width of the task-specific one."""
        return self.dropout_layer(self.bridge_norm(self.bridge(x)))

    def task_memories(self, inputs: dict) -> list:
        """Each task-specific block's memory (b, m, d), or None where the inputs have none."""
        if "task_memory" not in inputs:
            return [None] * self.task_num_layers
        return [inputs["task_memory"][:, i] for i in range(self.task_num_layers)]


@keras.saving.register_keras_serializable("garden")
class Ernie3UnderstandingBackbone(Ernie3):
    """ERNIE 3.0 for understanding: the universal module and the one for understanding, both bidirectional.

    Arguments, inputs and errors are those of `garden.ernie3.Ernie3`.

    Outputs:
        sequence_output (b, t, d) of the task-specific width, and pooled_output (b, d) from the row's first token.

    >>> import numpy as np, garden
    >>> sizes = dict(num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16, task_num_layers=1)
    >>> task = dict(task_num_heads=1, task_hidden_dim=6, task_intermediate_dim=12)
    >>> model = garden.Ernie3UnderstandingBackbone(50, **sizes, **task)
    >>> ids = np.array([[1, 7, 8, 2]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 6)
    True
    """

    module = "understanding"

    def recurrent(self):
        raise TypeError("Understanding has no memory (Sun et al. 2021, 3.1): take a garden.Ernie3GenerationBackbone.")


@keras.saving.register_keras_serializable("garden")
class Ernie3GenerationBackbone(Cached, Ernie3):
    """ERNIE 3.0 for generation: the universal module and the one for generation, both causal and with a memory.

    Arguments, inputs and errors are those of `garden.ernie3.Ernie3`. `recurrent()` has a further input and output,
    `task_memory` (b, l, m, d), the memory of the task-specific module.

    Outputs:
        sequence_output (b, t, d) of the task-specific width.

    >>> import numpy as np, garden
    >>> sizes = dict(num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16, task_num_layers=1)
    >>> task = dict(task_num_heads=1, task_hidden_dim=6, task_intermediate_dim=12)
    >>> understanding = garden.Ernie3UnderstandingBackbone(50, **sizes, **task)
    >>> model = garden.Ernie3GenerationBackbone(50, **sizes, **task, universal=understanding)
    >>> ids = np.array([[1, 7, 8, 2]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 6)
    True
    """

    module = "generation"
    causal = True

    def with_memory(self, inputs):
        shape = (self.task_num_layers, None, self.task_hidden_dim)
        memory = keras.Input(shape, dtype=self.compute_dtype, name="task_memory")
        return {**super().with_memory(inputs), "task_memory": memory}

    def remembering(self, inputs, taps, assemble):
        outputs = super().remembering(inputs, taps, assemble)
        update = Memory(self.memory_length, dtype=self.dtype_policy, name="task_memory_update")
        states = self._remembered(taps.lists["hidden_states"][self.num_layers + 1 :])
        held = (inputs[name] for name in ("padding_mask", "task_memory", "memory_mask"))
        return {**outputs, "task_memory": update(states, *held)[0]}

    def remembered(self, hidden_states):
        return self._remembered(hidden_states[: self.num_layers + 1])

    def _remembered(self, states):
        """Of the states in front of, between and behind the layers of a module those that they remember."""
        return states[1:] if self.recurrence == "same_layer" else states[:-1]

    def empty_memory(self, batch_size, length=None):
        memory = super().empty_memory(batch_size, length)
        shape = (batch_size, self.task_num_layers, memory["memory"].shape[2], self.task_hidden_dim)
        return {**memory, "task_memory": np.zeros(shape, "float32")}

    def language_model_head(self):
        return LanguageModelHead(
            self.token_embedding,
            self.activation,
            self.layer_norm_epsilon,
            dtype=self.dtype_policy,
            name="language_model",
        )

    def cached(self, token_ids, cache, index):
        universal, specific = cache[: self.num_layers], cache[self.num_layers :]
        stands = {"keys": cache[0].shape[2], "last": index + token_ids.shape[1] - 1}
        x = self.embeddings(token_ids)
        relative = self.universal_positions(x, **stands)
        x, universal = through_cache(self.universal_blocks, x, universal, index, relative=relative)
        x = self.across(x)
        relative = self.task_positions(x, **stands)
        x, specific = through_cache(self.task_blocks, x, specific, index, relative=relative)
        return x, [*universal, *specific]


def _blocks(name, count, num_heads, intermediate_dim, activation, dropout, attention_dropout, epsilon, dtype):
    return [
        PostNormBlock(
            XLAttention(num_heads, attention_dropout, dtype=dtype, name="attention"),
            FeedForward(intermediate_dim, activation, dropout, dtype=dtype, name="feedforward"),
            dropout,
            epsilon,
            dtype=dtype,
            name=f"{name}_{i}",
        )
        for i in range(count)
    ]


def reordering_classes(num_segments: int) -> int:
    """How many orders a paragraph may have that was cut into 1 to `num_segments` parts: the classes of reordering.

    >>> from garden.ernie3 import reordering_classes
    >>> reordering_classes(3), reordering_classes(4)
    (9, 33)
    """
    return sum(math.factorial(n) for n in range(1, num_segments + 1))


Ernie3Tokenizer.backbone_cls = Ernie3UnderstandingBackbone
