"""DistilBERT, a distilled version of BERT: smaller, faster, cheaper and lighter (Sanh et al. 2019)."""

import keras

from garden.encoder import Encoder, transformer_blocks
from garden.layers import Embeddings, PostNormBlock
from garden.tokenizers import BertTokenizer


@keras.saving.register_keras_serializable("garden")
class DistilBertTokenizer(BertTokenizer):
    __doc__ = BertTokenizer.__doc__


@keras.saving.register_keras_serializable("garden")
class DistilBertBlock(PostNormBlock):
    __doc__ = (
        "A PostNormBlock that drops nothing from what its attention adds, as the published model was trained.\n\n"
        + PostNormBlock.__doc__.split("\n", 2)[2]
    )

    def residual(self, x, sublayer, norm, training=None):
        return super().residual(x, sublayer, norm, training and norm is self.feedforward_norm)


@keras.saving.register_keras_serializable("garden")
class DistilBertBackbone(Encoder):
    """BERT with half of its layers, without segments and without a pooler.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        dropout: rate on the embeddings and on what the feed-forward network adds.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        max_sequence_length: rows of the position table.
        activation: `"gelu_erf"` in every published checkpoint.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d).

    Raises:
        ValueError: rows longer than `max_sequence_length`, or `num_heads` does not divide `hidden_dim`.

    >>> import numpy as np, garden
    >>> model = garden.DistilBertBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> ids = np.array([[2, 7, 8, 3]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = DistilBertTokenizer
    input_names = ("token_ids", "padding_mask")
    classifier_pooler = {"activation": "relu"}
    classifier_dropout = 0.2
    question_answering_dropout = 0.1

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
        activation="gelu_erf",
        layer_norm_epsilon=1e-12,
        dtype=None,
        **kwargs,
    ):
        self.embeddings = Embeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            dtype=dtype,
            name="embeddings",
        )
        self.blocks = transformer_blocks(
            num_layers,
            num_heads,
            intermediate_dim,
            activation,
            dropout,
            attention_dropout,
            layer_norm_epsilon,
            dtype,
            DistilBertBlock,
        )
        super().__init__(dtype, **kwargs)


DistilBertTokenizer.backbone_cls = DistilBertBackbone
