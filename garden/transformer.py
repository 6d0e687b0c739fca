"""The Transformer: Attention Is All You Need (Vaswani et al. 2017)."""

import keras
from keras import layers

from garden.layers import Attention, FeedForward, PositionSinusoids, PostNormBlock, PostNormCrossBlock, normal
from garden.seq2seq import Seq2Seq
from garden.transformer_tokenizer import TransformerTokenizer


class PostNormSeq2Seq(Seq2Seq):
    """The parts of both stacks, from the hyper-parameters of `TransformerBackbone`.

    A subclass says what is added to the embeddings and how a stack attends to itself.

    >>> import garden
    >>> issubclass(garden.TransformerBackbone, PostNormSeq2Seq)
    True
    """

    def make_parts(self, dtype):
        """Embedding, positions and both stacks, from the hyper-parameters."""
        self.token_embedding = self.make_embedding(dtype)
        self.position_encoding = self.make_positions(dtype)
        self.embedding_dropout = layers.Dropout(self.dropout, dtype=dtype, name="embedding_dropout")
        depth = self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers
        self.encoder_blocks = [
            PostNormBlock(self.self_attention(dtype), **self.rest(dtype), name=f"encoder_block_{i}")
            for i in range(self.num_layers)
        ]
        self.decoder_blocks = [
            PostNormCrossBlock(
                self.self_attention(dtype),
                self.attention(dtype, "cross_attention"),
                **self.rest(dtype),
                name=f"decoder_block_{i}",
            )
            for i in range(depth)
        ]

    def make_embedding(self, dtype):
        """The token table."""
        return layers.ReversibleEmbedding(
            self.vocabulary_size,
            self.hidden_dim,
            embeddings_initializer=normal(self.hidden_dim**-0.5),
            dtype=dtype,
            name="token_embedding",
        )

    def make_positions(self, dtype):
        """What is added to the embeddings; None for nothing."""
        return None

    def self_attention(self, dtype):
        """The attention of a stack to itself."""
        return self.attention(dtype, "attention")

    def attention(self, dtype, name, cls=Attention, **kwargs):
        """One attention of this model's width."""
        settings = {"dropout": self.attention_dropout, "use_bias": False, "initializer": "glorot_uniform"}
        return cls(num_heads=self.num_heads, dtype=dtype, name=name, **{**settings, **kwargs})

    def rest(self, dtype):
        """What a block has beside its attentions."""
        return {
            "feedforward": FeedForward(
                self.intermediate_dim,
                self.activation,
                self.activation_dropout,
                initializer="glorot_uniform",
                dtype=dtype,
                name="feedforward",
            ),
            "dropout": self.dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "dtype": dtype,
        }

    def lookup(self, token_ids):
        return super().lookup(token_ids) * self.hidden_dim**0.5


@keras.saving.register_keras_serializable("garden")
class TransformerBackbone(PostNormSeq2Seq):
    """The Transformer as published: a post-norm encoder-decoder with sinusoids for positions.

    One table embeds the source, times sqrt(d), and the target, and is the output too. Projections of the attention have
    no bias, and there is no norm behind a stack.

    Args:
        vocabulary_size: v, rows of the token table.
        num_layers: number of blocks of each stack.
        num_heads: n; it divides `hidden_dim`.
        hidden_dim: d, an even number.
        intermediate_dim: f, width of the feed-forward network.
        dropout: rate on the embeddings and on what each sublayer adds.
        attention_dropout: rate on the attention probabilities; 0 in the paper, 0.1 in tensor2tensor.
        activation_dropout: rate behind the activation; 0 in the paper, 0.1 in tensor2tensor.
        max_sequence_length: places of the sinusoids; any number fits any weights.
        activation: of the feed-forward network.
        num_decoder_layers: blocks of the decoder, where they are not `num_layers`.
        layer_norm_epsilon: epsilon of all norms.
        dtype: dtype policy of computations and weights.

    Inputs, int32 (b, s) and (b, t):
        encoder_token_ids, decoder_token_ids, and their padding_mask: 0 is padding, k >= 1 the k-th sequence packed into
        the row, whose decoder reads the k-th sequence of the encoder.

    Outputs:
        encoder_sequence_output (b, s, d), decoder_sequence_output (b, t, d); `logits` turns the latter into logits.

    Raises:
        ValueError: rows longer than `max_sequence_length`, a `hidden_dim` that is odd or that `num_heads` does not
            divide.

    >>> import numpy as np, garden
    >>> model = garden.TransformerBackbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> source, target = np.array([[5, 7, 8, 1]]), np.array([[0, 9]])
    >>> x = {"encoder_token_ids": source, "encoder_padding_mask": 0 * source + 1}
    >>> x |= {"decoder_token_ids": target, "decoder_padding_mask": 0 * target + 1}
    >>> model(x)["decoder_sequence_output"].shape == (1, 2, 8)
    True
    """

    tokenizer_cls = TransformerTokenizer

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=0.0,
        activation_dropout=0.0,
        max_sequence_length=1024,
        activation="relu",
        num_decoder_layers=None,
        layer_norm_epsilon=1e-6,
        dtype=None,
        **kwargs,
    ):
        self.make_parts(dtype)
        super().__init__(dtype, **kwargs)

    def make_positions(self, dtype):
        return PositionSinusoids(self.hidden_dim, self.max_sequence_length, dtype=dtype, name="position_encoding")
