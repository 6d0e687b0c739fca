"""ELECTRA: pre-training text encoders as discriminators rather than generators (Clark et al. 2020)."""

import keras

from garden.encoder import Encoder, transformer_blocks
from garden.layers import Embeddings
from garden.tokenizers import BertTokenizer


@keras.saving.register_keras_serializable("garden")
class ElectraTokenizer(BertTokenizer):
    __doc__ = BertTokenizer.__doc__


@keras.saving.register_keras_serializable("garden")
class ElectraBackbone(Encoder):
    """The encoder of ELECTRA's discriminator or of its generator: BERT with embeddings of a width of their own.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        embedding_dim: e, width of the tables; a projection to d follows where they differ. None means `hidden_dim`.
        dropout: rate on the embeddings and on what attention and feed-forward add.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        max_sequence_length: rows of the position table.
        num_segments: rows of the segment table.
        activation: `"gelu_erf"` in every published checkpoint.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, segment_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d). ELECTRA has no pooler.

    Raises:
        ValueError: rows longer than `max_sequence_length`, or `num_heads` does not divide `hidden_dim`.

    >>> import numpy as np, garden
    >>> electra = garden.ElectraBackbone(
    ...     50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16, embedding_dim=4)
    >>> ids = np.array([[2, 7, 8, 3]])
    >>> inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    >>> electra(inputs)["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = ElectraTokenizer
    classifier_pooler = {"activation": "gelu_erf", "dropout": 0.1}

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        embedding_dim=None,
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
            embedding_dim or hidden_dim,
            max_sequence_length,
            num_segments,
            hidden_dim if embedding_dim not in (None, hidden_dim) else None,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            dtype=dtype,
            name="embeddings",
        )
        self.blocks = transformer_blocks(
            num_layers, num_heads, intermediate_dim, activation, dropout, attention_dropout, layer_norm_epsilon, dtype
        )
        super().__init__(dtype, **kwargs)


ElectraTokenizer.backbone_cls = ElectraBackbone
