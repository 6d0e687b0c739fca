"""T5: Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer (Raffel et al. 2020)."""

import keras
from keras import layers

from garden.backbone import Backbone
from garden.layers import (
    Attention,
    FeedForward,
    GatedFeedForward,
    PositionBias,
    PreNormBlock,
    PreNormCrossBlock,
    normal,
    normalization,
)
from garden.seq2seq import Encoding, Seq2Seq
from garden.t5_tokenizer import T5Tokenizer


class T5Parts:
    """The parts of both stacks, mixed in before a backbone that has T5's hyper-parameters as attributes."""

    def make_embedding(self, dtype, tie_weights=True):
        """The token table, which both stacks read, and the dropout behind it."""
        self.token_embedding = layers.ReversibleEmbedding(
            self.vocabulary_size,
            self.hidden_dim,
            tie_weights,
            embeddings_initializer=normal(1.0),
            dtype=dtype,
            name="token_embedding",
        )
        self.embedding_dropout = layers.Dropout(self.dropout, dtype=dtype, name="embedding_dropout")

    def make_encoder(self, dtype):
        """The encoder's bias, blocks and norm."""
        self.encoder_bias = self.position_bias(True, dtype, "encoder_bias")
        self.encoder_blocks = [self.block(dtype, f"encoder_block_{i}") for i in range(self.num_layers)]
        self.encoder_norm = normalization("rms_norm", self.layer_norm_epsilon, dtype=dtype, name="encoder_norm")

    def block(self, dtype, name, cross=False):
        """One block: scores are not divided, nothing has a bias."""
        attentions = [
            Attention(
                self.num_heads,
                self.dropout,
                head_dim=self.key_value_dim,
                use_bias=False,
                scale=1.0,
                initializer="fan_in",
                dtype=dtype,
                name=part,
            )
            for part in (["attention", "cross_attention"] if cross else ["attention"])
        ]
        feedforward = GatedFeedForward if self.use_gated_activation else FeedForward
        return (PreNormCrossBlock if cross else PreNormBlock)(
            *attentions,
            feedforward(
                self.intermediate_dim, self.activation, self.dropout, False, "fan_in", dtype=dtype, name="feedforward"
            ),
            self.dropout,
            self.layer_norm_epsilon,
            "rms_norm",
            dtype=dtype,
            name=name,
        )

    def position_bias(self, bidirectional, dtype, name):
        """The bias of a stack, by the distance of query and key."""
        return PositionBias(
            self.num_heads, bidirectional=bidirectional, stddev=self.hidden_dim**-0.5, dtype=dtype, name=name
        )

    def encoder_terms(self, distance):
        return {"bias": self.encoder_bias(distance)}

    def finish(self, x, norm):
        return self.embedding_dropout(norm(x))


@keras.saving.register_keras_serializable("garden")
class T5Backbone(T5Parts, Seq2Seq):
    """T5, T5 1.1, mT5 and Flan-T5: a pre-norm encoder-decoder whose positions are a bias on the scores.

    In half precision use bfloat16, as T5 was trained: the hidden states of published checkpoints outgrow float16.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks of each stack.
        num_heads: n.
        hidden_dim: d.
        intermediate_dim: f, width of the feed-forward network.
        key_value_dim: h, width of a head; None means d / n.
        dropout: rate wherever there is one, attention probabilities included.
        activation: of the feed-forward network, `"relu"` in T5, `"gelu_tanh"` in T5 1.1 and mT5.
        use_gated_activation: whether the feed-forward network is gated, as in T5 1.1 and mT5.
        tie_embedding_weights: whether the token table, times d^-0.5, is the output too, as in T5; else the output has
            a matrix of its own.
        num_decoder_layers: blocks of the decoder, where they are not `num_layers`.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, s) and (b, t):
        encoder_token_ids, decoder_token_ids, and their padding_mask: 0 is padding, k >= 1 the k-th sequence packed into
        the row, whose decoder reads the k-th sequence of the encoder.

    Outputs:
        encoder_sequence_output (b, s, d), decoder_sequence_output (b, t, d); `logits` turns the latter into logits.

    Raises:
        ValueError: there is no `key_value_dim`, and `num_heads` does not divide `hidden_dim`.

    >>> import numpy as np, garden
    >>> model = garden.T5Backbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> source, target = np.array([[5, 7, 8, 1]]), np.array([[0, 9]])
    >>> x = {"encoder_token_ids": source, "encoder_padding_mask": 0 * source + 1}
    >>> x |= {"decoder_token_ids": target, "decoder_padding_mask": 0 * target + 1}
    >>> model(x)["decoder_sequence_output"].shape == (1, 2, 8)
    True
    """

    tokenizer_cls = T5Tokenizer

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        key_value_dim=None,
        dropout=0.1,
        activation="relu",
        use_gated_activation=False,
        tie_embedding_weights=True,
        num_decoder_layers=None,
        layer_norm_epsilon=1e-6,
        dtype=None,
        **kwargs,
    ):
        self.make_embedding(dtype, tie_embedding_weights)
        self.make_encoder(dtype)
        self.decoder_bias = self.position_bias(False, dtype, "decoder_bias")
        depth = num_layers if num_decoder_layers is None else num_decoder_layers
        self.decoder_blocks = [self.block(dtype, f"decoder_block_{i}", cross=True) for i in range(depth)]
        self.decoder_norm = normalization("rms_norm", layer_norm_epsilon, dtype=dtype, name="decoder_norm")
        super().__init__(dtype, **kwargs)

    def decoder_terms(self, distance):
        return {"bias": self.decoder_bias(distance)}

    def logits(self, x):
        return super().logits(x * self.hidden_dim**-0.5 if self.tie_embedding_weights else x)


@keras.saving.register_keras_serializable("garden")
class T5EncoderBackbone(T5Parts, Encoding, Backbone):
    """The encoder of T5 alone, for embeddings and for heads on its tokens.

    `from_preset` takes the encoder out of any T5.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, key_value_dim, dropout, activation,
            use_gated_activation, layer_norm_epsilon, dtype: as in `garden.T5Backbone`.

    Inputs, int32 (b, t):
        token_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d).

    >>> import numpy as np, garden
    >>> model = garden.T5EncoderBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> ids = np.array([[5, 7, 8, 1]])
    >>> model({"token_ids": ids, "padding_mask": 0 * ids + 1})["sequence_output"].shape == (1, 4, 8)
    True
    """

    tokenizer_cls = T5Tokenizer
    input_names = ("token_ids", "padding_mask")
    masked_lm_head = None
    classifier_pooler = {"activation": "tanh", "dropout": 0.1}

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        key_value_dim=None,
        dropout=0.1,
        activation="relu",
        use_gated_activation=False,
        layer_norm_epsilon=1e-6,
        dtype=None,
        **kwargs,
    ):
        self.make_embedding(dtype)
        self.make_encoder(dtype)
        super().__init__(dtype, **kwargs)

    @property
    def blocks(self):
        """The encoder's blocks."""
        return self.encoder_blocks

    def assemble(self, inputs, taps):
        return {"sequence_output": self.encode(inputs["token_ids"], inputs["padding_mask"], taps)}


T5Tokenizer.backbone_cls = T5Backbone
