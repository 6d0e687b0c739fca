"""GPT: Improving Language Understanding by Generative Pre-Training (Radford et al. 2018)."""

import keras

from garden.decoder import Decoder
from garden.encoder import transformer_blocks
from garden.gpt_tokenizers import GptTokenizer
from garden.layers import Embeddings


@keras.saving.register_keras_serializable("garden")
class GptBackbone(Decoder):
    """The first GPT: a post-norm decoder with learned positions.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        dropout: rate on the embeddings and on what attention and feed-forward add.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        max_sequence_length: rows of the position table.
        activation: `"gelu_tanh"` in the published checkpoint.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d).

    Raises:
        ValueError: rows longer than `max_sequence_length`, or `num_heads` does not divide `hidden_dim`.

    >>> import numpy as np, garden
    >>> model = garden.GptBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> ids = np.array([[5, 7, 8, 2]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = GptTokenizer

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=None,
        max_sequence_length=512,
        activation="gelu_tanh",
        layer_norm_epsilon=1e-5,
        dtype=None,
        **kwargs,
    ):
        self.embeddings = Embeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length,
            dropout=dropout,
            normalization="identity",
            dtype=dtype,
            name="embeddings",
        )
        self.blocks = transformer_blocks(
            num_layers, num_heads, intermediate_dim, activation, dropout, attention_dropout, layer_norm_epsilon, dtype
        )
        super().__init__(dtype, **kwargs)
