"""XLNet: generalized autoregressive pretraining for language understanding (Yang et al. 2019)."""

import keras
from keras import layers, ops

from garden.backbone import Taps
from garden.kept import FunctionalModel
from garden.layers import (
    FeedForward,
    PostNormBlock,
    RelativePositions,
    TwoStreamAttention,
    TwoStreamEmbeddings,
    attention_mask,
    causal_mask,
    distances,
    same_segment,
    stream_masks,
)
from garden.recurrent import RecurrentBackbone, RecurrentModel
from garden.xlnet_decoding import TwoStreamDecoding
from garden.xlnet_tokenizer import XlnetTokenizer

ATTENTION_TYPES = ("bi", "uni")


@keras.saving.register_keras_serializable("garden")
class XlnetBackbone(TwoStreamDecoding, RecurrentBackbone):
    """Transformer-XL over segments of text, pretrained to predict tokens in a random order.

    The plain model is the content stream, as fine-tuning uses it. `two_stream()` is the model of pretraining, and
    `recurrent()` goes on from a memory; all have the same weights. No row is too long for it.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks.
        num_heads: n; it divides `hidden_dim` where there is no `head_dim`.
        hidden_dim: d, an even number.
        intermediate_dim: f, width of the feed-forward network.
        head_dim: h, width of a head; None means hidden_dim / n.
        dropout: rate on the embeddings, the relative positions, the activations of the feed-forward network, what
            attention and feed-forward add, and the output.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        activation: `"gelu_erf"` in Hugging Face's copies, `"gelu_tanh"` in the original code, `"relu"` in the Chinese
            models.
        layer_norm_epsilon: epsilon of all norms.
        attention_type: `"bi"`, or `"uni"` for tokens that do not look ahead.
        same_length: whether every token sees as many keys as the memory has places, and itself; only with `"uni"`.
        bi_data: whether the second half of a batch is read backwards.
        clamp_length: distances beyond it count as it; None leaves all as they are.
        memory_length: places of the memory that `recurrent` returns, at most; None keeps all.
        reuse_length: how many of a segment's first places the memory takes; None means all.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, t):
        token_ids, segment_ids, of which only counts which are equal, and padding_mask: 0 is padding, k >= 1 the k-th
        sequence packed into the row.

    Outputs:
        sequence_output (b, t, d).

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`, `hidden_dim` is odd, or there is no such attention type.

    >>> import numpy as np, garden
    >>> xlnet = garden.XlnetBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> ids = np.array([[7, 8, 4, 3]])
    >>> x = {"token_ids": ids, "segment_ids": np.array([[0, 0, 0, 2]]), "padding_mask": 0 * ids + 1}
    >>> xlnet(x)["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = XlnetTokenizer
    masked_lm_head = None  # it was trained on permutations of the text itself
    classifier_pooler = {"activation": "tanh", "token": "last"}

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        head_dim=None,
        dropout=0.1,
        attention_dropout=None,
        activation="gelu_erf",
        layer_norm_epsilon=1e-12,
        attention_type="bi",
        same_length=False,
        bi_data=False,
        clamp_length=None,
        memory_length=None,
        reuse_length=None,
        dtype=None,
        **kwargs,
    ):
        if attention_type not in ATTENTION_TYPES:
            raise ValueError(f"attention_type={attention_type!r} is neither of {' and '.join(ATTENTION_TYPES)}.")
        attention_dropout = dropout if attention_dropout is None else attention_dropout
        self.embeddings = TwoStreamEmbeddings(vocabulary_size, hidden_dim, dropout, dtype=dtype, name="embeddings")
        self.relative_positions = RelativePositions(
            attention_type == "uni", clamp_length, bi_data, dropout, dtype=dtype, name="relative_positions"
        )
        self.blocks = [
            PostNormBlock(
                TwoStreamAttention(num_heads, attention_dropout, head_dim=head_dim, dtype=dtype, name="attention"),
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
        x, mask, terms = self._beginning(inputs, taps)
        for block, memory in zip(self.blocks, self.memories(inputs), strict=True):
            x = taps.through(block, x, attention_mask=mask, memory=memory, **terms)
        return {"sequence_output": self.output_dropout(x)}

    def two_stream(self, memory: bool = False) -> keras.Model:
        """The functional model of pretraining, over the same weights: both streams (Yang et al. 2019, section 2.3).

        Inputs beside the backbone's:
            permutation_mask: int32 (b, t, t), 1 where a query (axis 1) may not look at a key (axis 2).
            target_mapping: int32 (b, p, t), the place of each prediction as a one in a row of zeros.

        Outputs beside the backbone's:
            query_output: float (b, p, d), to be scored by the token table. A query that may look at nothing sees every
                token alike, its own included, as in the original: let it see a memory or a separator.

        Args:
            memory: whether it also has the inputs and outputs of `recurrent`.

        >>> import numpy as np, garden
        >>> xlnet = garden.XlnetBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
        >>> ids = np.array([[7, 8, 4, 3]])
        >>> outputs = xlnet.two_stream()({
        ...     "token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1,
        ...     "permutation_mask": np.array([[[0, 1, 0, 0]] * 4]), "target_mapping": np.array([[[0, 1, 0, 0]]])})
        >>> outputs["query_output"].shape == (1, 1, 8)
        True
        """
        inputs = {
            **self.input,
            "permutation_mask": keras.Input((None, None), dtype="int32", name="permutation_mask"),
            "target_mapping": keras.Input((None, None), dtype="int32", name="target_mapping"),
        }
        name, taps = f"{self.name}_two_stream", Taps(("hidden_states",))
        if not memory:
            return FunctionalModel(inputs, self._two_streams(inputs, taps), name=name)
        inputs = self.with_memory(inputs)
        return RecurrentModel(inputs, self.remembering(inputs, taps, self._two_streams), name=name)

    def _two_streams(self, inputs, taps):
        target_mapping = inputs["target_mapping"]
        h, mask, terms = self._beginning(inputs, taps)
        g = self.embeddings.mask_embedding(target_mapping)
        content_mask, query_mask = stream_masks(mask, inputs["permutation_mask"], inputs.get("memory_mask"))
        for block, memory in zip(self.blocks, self.memories(inputs), strict=True):
            query = {"source": h, "target_mapping": target_mapping}
            g = block(g, attention_mask=query_mask, memory=memory, **query, **terms)
            h = taps.through(block, h, attention_mask=content_mask, memory=memory, **terms)
        return {"sequence_output": self.output_dropout(h), "query_output": self.output_dropout(g)}

    def _beginning(self, inputs, taps):
        """The first state, the attention mask, and the terms of attention that all blocks share."""
        memory_mask = inputs.get("memory_mask")
        x = taps.state(self.embeddings(inputs["token_ids"]))
        terms = {
            "relative": self.relative_positions(x, self.memories(inputs)[0]),
            "same_segment": same_segment(inputs["segment_ids"], memory_mask),
        }
        return x, self._mask(inputs["padding_mask"], memory_mask), terms

    def _mask(self, padding_mask, memory_mask):
        if self.attention_type == "bi":
            return attention_mask(padding_mask, memory_mask)
        mask = causal_mask(padding_mask, memory_mask)
        if not self.same_length:
            return mask
        places = 0 if memory_mask is None else ops.sum(ops.ones_like(memory_mask[0]))
        return ops.logical_and(mask, distances(padding_mask, memory_mask) <= places)


XlnetTokenizer.backbone_cls = XlnetBackbone
