"""ALBERT: a lite BERT for self-supervised learning of language representations (Lan et al. 2019)."""

import keras

from garden.albert_tokenizers import AlbertSentencePieceTokenizer, AlbertTokenizer
from garden.encoder import Encoder, transformer_blocks
from garden.layers import Embeddings, Pooler


@keras.saving.register_keras_serializable("garden")
class AlbertBackbone(Encoder):
    """BERT whose layers share their weights and whose tables are narrower than the model.

    Layer i of L runs the blocks of group `i * num_groups // num_layers`, one after another; with one group and one
    block, as in every published model, all layers are the same block. It exists once in memory and on disk.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of layers, each a pass through its group.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        embedding_dim: e, width of the tables, which a projection to d follows. None means tables as wide as the model
            and no projection, as Google's code has it where the widths are equal.
        num_groups: groups of layers that share their weights.
        num_inner_repetitions: blocks of a group.
        dropout: rate on the embeddings and on what attention and feed-forward add; 0 in version 2.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        max_sequence_length: rows of the position table.
        num_segments: rows of the segment table.
        activation: `"gelu_tanh"` in the English models, `"relu"` in Google's Chinese ones.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, segment_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d), and pooled_output (b, d) from the row's first token.

    Raises:
        ValueError: rows longer than `max_sequence_length`, `num_heads` does not divide `hidden_dim`, or there are more
            groups than layers.

    >>> import numpy as np, garden
    >>> albert = garden.AlbertBackbone(
    ...     50, num_layers=4, num_heads=2, hidden_dim=8, intermediate_dim=16, embedding_dim=4)
    >>> ids = np.array([[2, 7, 8, 3]])
    >>> inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    >>> albert(inputs)["sequence_output"].shape == (1, 4, 8), len(albert.groups)
    (True, 1)
    """

    tokenizer_cls = AlbertTokenizer
    embeddings_cls = Embeddings

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        embedding_dim=128,
        num_groups=1,
        num_inner_repetitions=1,
        dropout=0.0,
        attention_dropout=None,
        max_sequence_length=512,
        num_segments=2,
        activation="gelu_tanh",
        layer_norm_epsilon=1e-12,
        dtype=None,
        **kwargs,
    ):
        if not 1 <= num_groups <= num_layers:
            raise ValueError(f"num_groups={num_groups} has to be between 1 and num_layers={num_layers}.")
        self.embeddings = self.embeddings_cls(
            vocabulary_size,
            embedding_dim or hidden_dim,
            max_sequence_length,
            num_segments,
            hidden_dim if embedding_dim else None,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            dtype=dtype,
            name="embeddings",
        )
        sizes = (num_heads, intermediate_dim, activation, dropout, attention_dropout, layer_norm_epsilon, dtype)
        self.groups = [
            transformer_blocks(num_inner_repetitions, *sizes, name=f"group_{g}_block") for g in range(num_groups)
        ]
        self.pooler = Pooler(hidden_dim, dtype=dtype, name="pooler")
        super().__init__(dtype, **kwargs)

    @property
    def blocks(self):
        """The blocks in the order in which they run; shared ones occur again."""
        layers = range(self.num_layers)
        return [block for i in layers for block in self.groups[i * self.num_groups // self.num_layers]]


AlbertTokenizer.backbone_cls = AlbertBackbone
AlbertSentencePieceTokenizer.backbone_cls = AlbertBackbone
