"""BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding (Devlin et al. 2018)."""

import keras

from garden.encoder import Encoder, transformer_blocks
from garden.layers import Embeddings, Pooler
from garden.tokenizers import BertTokenizer


@keras.saving.register_keras_serializable("garden")
class BertBackbone(Encoder):
    """The BERT encoder, for every checkpoint of its shape: Chinese wwm, RoBERTa-wwm-ext, RBT, TinyBERT, MiniLM.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        dropout: rate on the embeddings and on what attention and feed-forward add.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        max_sequence_length: rows of the position table.
        num_segments: rows of the segment table.
        activation: `"gelu_erf"` for the checkpoints of 2018 and Hugging Face's, `"gelu_tanh"` for TensorFlow 1
            checkpoints trained since February 2019.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, segment_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d), and pooled_output (b, d) from the row's first token.

    Raises:
        ValueError: rows longer than `max_sequence_length`, or `num_heads` does not divide `hidden_dim`.

    >>> import numpy as np, garden
    >>> bert = garden.BertBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> ids = np.array([[2, 7, 8, 3, 0]])
    >>> out = bert({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.array([[1, 1, 1, 1, 0]])})
    >>> out["sequence_output"].shape == (1, 5, 8), out["pooled_output"].shape == (1, 8)
    (True, True)
    """

    tokenizer_cls = BertTokenizer

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
        num_segments=2,
        activation="gelu_erf",
        layer_norm_epsilon=1e-12,
        dtype=None,
        **kwargs,
    ):
        self.embeddings = Embeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length,
            num_segments,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            dtype=dtype,
            name="embeddings",
        )
        self.blocks = transformer_blocks(
            num_layers, num_heads, intermediate_dim, activation, dropout, attention_dropout, layer_norm_epsilon, dtype
        )
        self.pooler = Pooler(hidden_dim, dtype=dtype, name="pooler")
        super().__init__(dtype, **kwargs)


BertTokenizer.backbone_cls = BertBackbone
