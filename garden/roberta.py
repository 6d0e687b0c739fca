"""RoBERTa: a robustly optimized BERT pretraining approach (Liu et al. 2019), and XLM-RoBERTa (Conneau et al. 2020)."""

import keras
import tokenizers as rust

from garden.byte_pair import BytePairTokenizer
from garden.encoder import Encoder, transformer_blocks
from garden.layers import Embeddings
from garden.sentence_piece import SentencePieceTokenizer

FAIRSEQ_TOKENS = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
    "start_token": "<s>",
    "end_token": "</s>",
}


@keras.saving.register_keras_serializable("garden")
class RobertaTokenizer(BytePairTokenizer):
    __doc__ = BytePairTokenizer.__doc__

    published_as = "RobertaTokenizer"
    special_names = FAIRSEQ_TOKENS
    numbers_segments = False

    @property
    def between_ids(self):
        return (self.end_token_id,)

    def _post_processor(self, ids):
        frame = (("</s>", ids["</s>"]), ("<s>", ids["<s>"]))
        return rust.processors.RobertaProcessing(*frame, add_prefix_space=self.add_prefix_space)


@keras.saving.register_keras_serializable("garden")
class RobertaBackbone(Encoder):
    """BERT without segments and without a pooler.

    The published position tables begin with rows for padding, 514 rows for 512 tokens; here they begin with the first
    token's row.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        dropout: rate on the embeddings and on what attention and feed-forward add.
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
    >>> model = garden.RobertaBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> ids = np.array([[0, 7, 8, 2]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = RobertaTokenizer
    input_names = ("token_ids", "padding_mask")
    classifier_pooler = {"activation": "tanh", "dropout": 0.1}

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
        layer_norm_epsilon=1e-5,
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
            num_layers, num_heads, intermediate_dim, activation, dropout, attention_dropout, layer_norm_epsilon, dtype
        )
        super().__init__(dtype, **kwargs)


@keras.saving.register_keras_serializable("garden")
class XlmRobertaTokenizer(SentencePieceTokenizer):
    __doc__ = SentencePieceTokenizer.__doc__.split("\n\n    >>>")[0]

    published_as = "XLMRobertaTokenizer"
    special_names = FAIRSEQ_TOKENS
    numbers_segments = False

    @property
    def between_ids(self):
        return (self.end_token_id,)

    def _pieces(self, model):
        # fairseq's four special tokens in place of the model's own three, and the mask at the end.
        special = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
        return [*special, *model.pieces[3:], ("<mask>", 0.0)], 3

    def _post_processor(self, ids):
        return rust.processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[(token, ids[token]) for token in ("<s>", "</s>")],
        )


@keras.saving.register_keras_serializable("garden")
class XlmRobertaBackbone(RobertaBackbone):
    __doc__ = "RoBERTa over the vocabulary of a hundred languages.\n\n" + RobertaBackbone.__doc__.split("\n\n", 2)[2]

    tokenizer_cls = XlmRobertaTokenizer


RobertaTokenizer.backbone_cls = RobertaBackbone
XlmRobertaTokenizer.backbone_cls = XlmRobertaBackbone
