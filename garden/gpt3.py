"""GPT-3: Language Models are Few-Shot Learners (Brown et al. 2020)."""

import keras
from keras import ops

from garden.gpt2 import Gpt2Backbone


@keras.saving.register_keras_serializable("garden")
class Gpt3Backbone(Gpt2Backbone):
    """GPT-2 whose blocks attend densely and in a band by turns, as in the Sparse Transformer (section 2.1).

    The paper gives neither the width of the band nor which blocks have it. Here blocks 0, 2, ... are dense, and blocks
    1, 3, ... see the `band_width` last places, their own included. A band as wide as the row is GPT-2 exactly.

    Args:
        band_width: places that a query of a banded block sees.
        head_dim: as in `garden.Gpt2Backbone`; two published sizes need it, because their heads do not fill the width.
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, dropout, attention_dropout,
            max_sequence_length, activation, layer_norm_epsilon, dtype: as in `garden.Gpt2Backbone`.

    Inputs, outputs and errors are those of `garden.Gpt2Backbone`.

    >>> import numpy as np, garden
    >>> sizes = dict(num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> model = garden.Gpt3Backbone(50, **sizes, band_width=2)
    >>> ids = np.array([[5, 7, 8, 2]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 8)
    True
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=None,
        max_sequence_length=2048,
        activation="gelu_tanh",
        layer_norm_epsilon=1e-5,
        head_dim=None,
        band_width=256,
        dtype=None,
        **kwargs,
    ):
        if band_width < 1:
            raise ValueError(f"band_width={band_width} lets a query see nothing: use 1 or more.")
        super().__init__(
            vocabulary_size,
            num_layers,
            num_heads,
            hidden_dim,
            intermediate_dim,
            dropout,
            attention_dropout,
            max_sequence_length,
            activation,
            layer_norm_epsilon,
            head_dim,
            dtype,
            **kwargs,
        )

    def masks(self, mask, distance):
        band = ops.logical_and(mask, distance < self.band_width)
        return [band if i % 2 else mask for i in range(len(self.blocks))]
