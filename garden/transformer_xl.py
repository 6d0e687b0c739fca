"""Transformer-XL: attentive language models beyond a fixed-length context (Dai et al. 2019)."""

import keras
from keras import layers, ops

from garden.decoder import Cached, through_cache
from garden.layers import (
    AdaptiveEmbedding,
    AdaptiveSoftmax,
    FeedForward,
    PostNormBlock,
    RecurrentPreNormBlock,
    RelativeBiases,
    RelativePositions,
    XLAttention,
    causal_mask,
    distances,
)
from garden.recurrent import RecurrentBackbone
from garden.transformer_xl_tokenizer import TransformerXlTokenizer


@keras.saving.register_keras_serializable("garden")
class TransformerXlBackbone(Cached, RecurrentBackbone):
    """A causal language model without absolute positions, whose layers also attend their inputs of earlier segments.

    `recurrent()` is the same network with the memory of earlier segments as an input and the next one as an output.

    Args:
        vocabulary_size: v; ids are sorted by frequency where there are cutoffs.
        num_layers: number of blocks.
        num_heads: n.
        hidden_dim: d, an even number.
        intermediate_dim: f, width of the feed-forward network.
        embedding_dim: e, width of the vectors of the most frequent words; None means `hidden_dim`.
        head_dim: h; None means hidden_dim / n.
        cutoffs: the first id of every band of the vocabulary but the first; see `garden.layers.AdaptiveEmbedding`.
        div_val: what the width of each band is divided by to get the next one's.
        tie_projections: for each band, whether the softmax projects as the embedding does; see
            `garden.layers.AdaptiveSoftmax`. The backbone only keeps it for its language-model head.
        dropout: rate on the embeddings, the table of positions, on what attention and feed-forward add, inside the
            feed-forward network, and on the output.
        attention_dropout: rate on the attention probabilities.
        memory_length: m, how many places of earlier segments a memory holds at most; None means all.
        clamp_length: distances beyond it count as it; None leaves all as they are.
        same_length: whether each token sees `memory_length` places, itself included, instead of all of memory and
            segment.
        share_biases: whether all layers share u and v, as in the original PyTorch code.
        pre_norm: whether norms stand in front of attention and feed-forward, and none at the end.
        activation: `"relu"` in all published models.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d).

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim` and there is no `head_dim`, impossible cutoffs, an odd
            `hidden_dim`, or `same_length` without a `memory_length`.

    >>> import numpy as np, garden
    >>> model = garden.TransformerXlBackbone(
    ...     50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16, cutoffs=(10, 20), div_val=2)
    >>> ids = np.array([[0, 7, 48, 2]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = TransformerXlTokenizer
    input_names = ("token_ids", "padding_mask")
    reuse_length = None  # a memory takes in whole segments

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        embedding_dim=None,
        head_dim=None,
        cutoffs=(),
        div_val=1,
        tie_projections=True,
        dropout=0.1,
        attention_dropout=0.0,
        memory_length=None,
        clamp_length=None,
        same_length=False,
        share_biases=False,
        pre_norm=False,
        activation="relu",
        layer_norm_epsilon=1e-5,
        dtype=None,
        **kwargs,
    ):
        if same_length and not memory_length:
            raise ValueError("same_length=True lets each token see memory_length places: give memory_length.")
        self.embeddings = AdaptiveEmbedding(
            vocabulary_size,
            embedding_dim or hidden_dim,
            hidden_dim,
            cutoffs,
            div_val,
            dropout=dropout,
            dtype=dtype,
            name="embeddings",
        )
        self.relative_positions = RelativePositions(
            causal=True, clamp_length=clamp_length, dropout=dropout, dtype=dtype, name="relative_positions"
        )
        biases = None
        if share_biases:
            biases = RelativeBiases(num_heads, head_dim or hidden_dim // num_heads, dtype=dtype, name="biases")
            biases.build()
        block = RecurrentPreNormBlock if pre_norm else PostNormBlock
        self.blocks = [
            block(
                XLAttention(
                    num_heads, attention_dropout, head_dim=head_dim, biases=biases, dtype=dtype, name="attention"
                ),
                FeedForward(intermediate_dim, activation, dropout, dtype=dtype, name="feedforward"),
                dropout,
                layer_norm_epsilon,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]
        self.output_dropout = layers.Dropout(dropout, dtype=dtype, name="output_dropout")
        super().__init__(dtype, **kwargs)

    def assemble(self, inputs, taps):
        padding_mask, memory_mask = inputs["padding_mask"], inputs.get("memory_mask")
        masks = self.masks(causal_mask(padding_mask, memory_mask), distances(padding_mask, memory_mask))
        memories = self.memories(inputs)
        x = taps.state(self.embeddings(inputs["token_ids"]))
        relative = self.relative_positions(x, memory=memories[0])
        for block, mask, memory in zip(self.blocks, masks, memories, strict=True):
            x = taps.through(block, x, attention_mask=mask, memory=memory, relative=relative)
        return {"sequence_output": self.output_dropout(x)}

    def masks(self, mask, distance):
        if self.same_length:
            mask = ops.logical_and(mask, distance < self.memory_length)
        return super().masks(mask, distance)

    def language_model_head(self):
        return AdaptiveSoftmax(self.embeddings, self.tie_projections, dtype=self.dtype_policy, name="language_model")

    def cached(self, token_ids, cache, index):
        x = self.embeddings(token_ids)
        relative = self.relative_positions(x, keys=cache[0].shape[2], last=index + x.shape[1] - 1)
        return through_cache(self.blocks, x, cache, index, self.masks, relative=relative)


TransformerXlTokenizer.backbone_cls = TransformerXlBackbone
