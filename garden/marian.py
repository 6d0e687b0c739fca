"""Marian: Fast Neural Machine Translation in C++ (Junczys-Dowmunt et al. 2018), as OPUS-MT publishes its models."""

import keras

from garden.layers import BiasedEmbedding, PositionSinusoids, normal
from garden.marian_tokenizer import MarianTokenizer
from garden.transformer import TransformerBackbone


@keras.saving.register_keras_serializable("garden")
class MarianBackbone(TransformerBackbone):
    __doc__ = (
        """The Transformer as Marian trains it: every projection has a bias, and so have the logits.

    Sines are the first half of the channels and cosines the second. Published models have the activation `"silu"`, a
    `layer_norm_epsilon` of 1e-5, and padding as their last token, with which a decoder starts.

"""
        + "    Args:"
        + TransformerBackbone.__doc__.split("    Args:", 1)[1].replace("TransformerBackbone", "MarianBackbone")
    )

    tokenizer_cls = MarianTokenizer

    def attention(self, dtype, name, **kwargs):
        return super().attention(dtype, name, use_bias=True, **kwargs)

    def make_positions(self, dtype):
        return PositionSinusoids(
            self.hidden_dim, self.max_sequence_length, False, dtype=dtype, name="position_encoding"
        )

    def make_embedding(self, dtype):
        return BiasedEmbedding(
            self.vocabulary_size,
            self.hidden_dim,
            embeddings_initializer=normal(self.hidden_dim**-0.5),
            dtype=dtype,
            name="token_embedding",
        )


MarianTokenizer.backbone_cls = MarianBackbone
