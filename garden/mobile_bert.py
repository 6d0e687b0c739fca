"""MobileBERT: a compact task-agnostic BERT for resource-limited devices (Sun et al. 2020)."""

import keras

from garden.encoder import Encoder
from garden.layers import (
    Attention,
    Bottleneck,
    BottleneckAttention,
    BottleneckBlock,
    FeedForward,
    NarrowBlock,
    Pooler,
    ProjectedEmbeddings,
    StackedBlock,
    TrigramEmbeddings,
    WideMaskedLMHead,
    first_token,
    positions,
)
from garden.tokenizers import BertTokenizer


@keras.saving.register_keras_serializable("garden")
class MobileBertTokenizer(BertTokenizer):
    __doc__ = BertTokenizer.__doc__


@keras.saving.register_keras_serializable("garden")
class MobileBertBackbone(Encoder):
    """BERT with blocks that work inside a bottleneck, several feed-forward networks each, and trigram embeddings.

    Three shapes are published: MobileBERT (the defaults), MobileBERT-TINY (`num_feedforwards=2`,
    `attention_input="bottleneck"`) and IB-BERT, the teacher of both (`intermediate_dim=4096`, `bottleneck_dim=1024`,
    `num_feedforwards=1`, `attention_input="input"`, `normalization="layer_norm"`, `classifier_activation=True`,
    `activation="gelu_tanh"`, `dropout=0.1`).

    What is padding is masked out completely, as in transformers. The original code gives it the score -6 instead, so
    that some of its weight leaks and results depend on the amount of padding. See `garden.layers.trigram` for which
    neighbours a token sees in packed and padded rows.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `bottleneck_dim`.
        hidden_dim: d, the width between blocks.
        intermediate_dim: f, width of the feed-forward networks.
        embedding_dim: e, width of the token table.
        bottleneck_dim: the width inside a block; None for blocks without a bottleneck, which are as wide as the model.
        num_feedforwards: feed-forward networks in a block.
        attention_input: where attention in a bottleneck gets its queries, keys and values: `"shared_bottleneck"`, a
            bottleneck that queries and keys share, and values from the block's input; `"bottleneck"`, all three from
            that of the block; `"input"`, all three from the block's input.
        normalization: `"no_norm"`, scale and shift only, or `"layer_norm"`.
        dropout: rate on the embeddings and on what a block adds.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        max_sequence_length: rows of the position table.
        num_segments: rows of the segment table.
        trigram_input: whether a token's embedding is made from its neighbours too.
        classifier_activation: whether the pooled output is tanh(dense(first token)); else it is the first token.
        activation: of the feed-forward networks and of the masked-LM head.
        layer_norm_epsilon: epsilon of layer norms; the masked-LM head has one in any case.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, segment_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d), and pooled_output (b, d) from the row's first token.

    Raises:
        ValueError: rows longer than `max_sequence_length`, a `num_heads` that does not divide the width of attention,
            no feed-forward network, or an unknown `attention_input` or `normalization`.

    >>> import numpy as np, garden
    >>> mobile = garden.MobileBertBackbone(
    ...     50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16, embedding_dim=4, bottleneck_dim=6)
    >>> ids = np.array([[2, 7, 8, 3]])
    >>> inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    >>> mobile(inputs)["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = MobileBertTokenizer
    masked_lm_head = WideMaskedLMHead

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        embedding_dim=128,
        bottleneck_dim=128,
        num_feedforwards=4,
        attention_input="shared_bottleneck",
        normalization="no_norm",
        dropout=0.0,
        attention_dropout=0.1,
        max_sequence_length=512,
        num_segments=2,
        trigram_input=True,
        classifier_activation=False,
        activation="relu",
        layer_norm_epsilon=1e-12,
        dtype=None,
        **kwargs,
    ):
        if num_feedforwards < 1:
            raise ValueError(f"num_feedforwards={num_feedforwards} has to be at least 1.")
        if bottleneck_dim and bottleneck_dim % num_heads:
            raise ValueError(f"num_heads={num_heads} does not divide bottleneck_dim={bottleneck_dim}.")
        norms = dict(normalization=normalization, layer_norm_epsilon=layer_norm_epsilon, dtype=dtype)
        self.embeddings = (TrigramEmbeddings if trigram_input else ProjectedEmbeddings)(
            vocabulary_size,
            embedding_dim,
            max_sequence_length,
            num_segments,
            hidden_dim=hidden_dim,
            dropout=dropout,
            name="embeddings",
            **norms,
        )
        self.blocks = [self._block(f"block_{i}", norms) for i in range(num_layers)]
        self.pooler = Pooler(hidden_dim, dtype=dtype, name="pooler") if classifier_activation else first_token
        super().__init__(dtype, **kwargs)

    def _block(self, name, norms):
        """One block from its parts, by the constructor's arguments, which are attributes already."""
        dtype, dropout = norms["dtype"], self.dropout
        *stack, last = [
            FeedForward(self.intermediate_dim, self.activation, dtype=dtype, name=place)
            for place in (*(f"feedforward_{j}" for j in range(self.num_feedforwards - 1)), "feedforward")
        ]
        attention = dict(
            num_heads=self.num_heads,
            dropout=dropout if self.attention_dropout is None else self.attention_dropout,
            hidden_dim=self.bottleneck_dim,
            dtype=dtype,
            name="attention",
        )
        rest = dict(feedforward=last, stack=stack, dropout=dropout, name=name, **norms)
        if self.bottleneck_dim is None:
            return StackedBlock(Attention(**attention), **rest)
        bottleneck, shared = (Bottleneck(self.bottleneck_dim, name="bottleneck", **norms) for _ in range(2))
        match self.attention_input:
            case "shared_bottleneck":
                return BottleneckBlock(bottleneck, BottleneckAttention(shared, **attention), **rest)
            case "bottleneck":
                return NarrowBlock(bottleneck, Attention(**attention), **rest)
            case "input":
                return BottleneckBlock(bottleneck, Attention(**attention), **rest)
        raise ValueError(
            f"There is no attention_input={self.attention_input!r}; there are shared_bottleneck, bottleneck, input."
        )

    def embed(self, inputs):
        padding_mask = inputs["padding_mask"]
        return self.embeddings(inputs["token_ids"], positions(padding_mask), inputs["segment_ids"], padding_mask)


MobileBertTokenizer.backbone_cls = MobileBertBackbone
