"""What encoder-decoders share: two stacks over one token table, whole or decoding over a cache."""

from keras import ops

from garden.backbone import Backbone, Taps
from garden.layers import attention_mask, causal_mask, cross_mask, distances, positions


class Encoding:
    """The encoder's stack, mixed in before `garden.Backbone`.

    A subclass makes `token_embedding`, `encoder_blocks`, `embedding_dropout`, and what its paper has of the rest.

    Attributes:
        position_encoding: from places int (b, t) to what is added to the embeddings; None adds nothing.
        encoder_norm: the norm behind the last block, or None.
    """

    token_embedding = None
    position_encoding = None
    encoder_norm = None

    def encode(self, token_ids, padding_mask, taps):
        """The encoder's output.

        Args:
            token_ids, padding_mask: int (b, s).
            taps: what notes the hidden states.

        Returns:
            float (b, s, d).
        """
        x = taps.state(self.embed(token_ids, positions(padding_mask)))
        mask, terms = attention_mask(padding_mask), self.encoder_terms(distances(padding_mask))
        for block in self.encoder_blocks:
            x = taps.through(block, x, attention_mask=mask, **terms)
        return taps.replace(self.finish(x, self.encoder_norm))

    def embed(self, token_ids, places):
        """The first hidden state, float (b, t, d), of int (b, t) ids at these places."""
        x = self.lookup(token_ids)
        if self.position_encoding:
            x = x + self.position_encoding(places)
        return self.embedding_dropout(x)

    def lookup(self, token_ids):
        """The vectors (b, t, d) of ids (b, t)."""
        return self.token_embedding(token_ids)

    def encoder_terms(self, distance) -> dict:
        """Further arguments of the encoder's blocks, from the distances int (t, s) of queries and keys."""
        return {}

    def finish(self, x, norm):
        """x (b, t, d) behind the norm of a stack."""
        return norm(x) if norm else x


class Seq2Seq(Encoding, Backbone):
    """The forward pass of the Transformer (Vaswani et al. 2017, section 3.1), whole or token by token over a cache.

    A subclass makes what `Encoding` asks for, and `decoder_blocks` of `garden.layers.CrossBlock`. `features` names what
    is inside the decoder as it does for a model of one stack; what is inside the encoder has `encoder_` in front, and
    what is inside the cross-attentions `cross_`.

    Attributes:
        decoder_norm: the norm behind the last block of the decoder, or None.

    >>> import garden
    >>> issubclass(garden.T5Backbone, garden.Seq2Seq)
    True
    """

    input_names = ("encoder_token_ids", "encoder_padding_mask", "decoder_token_ids", "decoder_padding_mask")
    feature_names = (
        *Backbone.feature_names,
        *(f"encoder_{name}" for name in Backbone.feature_names),
        *(f"cross_{name}" for name in Backbone.feature_names[1:]),
    )
    is_encoder = False
    decoder_norm = None

    def assemble(self, inputs, taps):
        encoder_taps, decoder_taps = taps.split("encoder_")
        source_mask, padding_mask = inputs["encoder_padding_mask"], inputs["decoder_padding_mask"]
        encoded = self.encode(inputs["encoder_token_ids"], source_mask, encoder_taps)
        x = decoder_taps.state(self.embed(inputs["decoder_token_ids"], positions(padding_mask)))
        seen = {"source": encoded, "source_mask": cross_mask(padding_mask, source_mask)}
        mask, terms = causal_mask(padding_mask), self.decoder_terms(distances(padding_mask))
        for block in self.decoder_blocks:
            x = decoder_taps.through(block, x, attention_mask=mask, **seen, **terms)
        decoded = decoder_taps.replace(self.finish(x, self.decoder_norm))
        return {"encoder_sequence_output": encoded, "decoder_sequence_output": decoded}

    def decoder_terms(self, distance) -> dict:
        """Further arguments of the decoder's blocks, from the distances int (t, s) of queries and keys."""
        return {}

    def logits(self, x):
        """Logits (b, t, v) of the token behind each place, from x (b, t, d)."""
        return self.token_embedding(x, reverse=True)

    def language_model_head(self):
        """What makes logits of x; see `garden.Decoder`."""
        return self.logits

    def encode_alone(self, token_ids, padding_mask):
        """The `encoder_sequence_output` (b, s, d) of int (b, s) ids, without a decoder."""
        return self.encode(token_ids, padding_mask, Taps())

    def empty_cache(self, encoded, encoder_padding_mask, length: int) -> dict:
        """What decoding remembers: of each block zeros for its own keys and values, and the source's.

        Args:
            encoded: float (b, s, d), the encoder's output.
            encoder_padding_mask: int (b, s).
            length: how many places the decoder will have.

        Returns:
            A dict of `blocks`, a pair (b, 2, t, n, h), (b, 2, s, n, h) each, and `padding_mask`.
        """
        blocks = []
        for block in self.decoder_blocks:
            memory = block.cross_attention.remember(encoded)
            batch, _, _, heads, head_dim = ops.shape(memory)
            blocks.append((ops.zeros((batch, 2, length, heads, head_dim), memory.dtype), memory))
        return {"blocks": blocks, "padding_mask": ops.cast(encoder_padding_mask, "int32")}

    def cached(self, token_ids, cache: dict, index):
        """The decoder's hidden states of the tokens from place `index` on, without padding before them.

        Args:
            token_ids: int (b, t).
            cache: what `empty_cache` or an earlier call gave.
            index: int scalar, the place of the first of these tokens.

        Returns:
            float (b, t, d), as the `decoder_sequence_output` of whole rows at these places, and the cache with them.

        >>> import numpy as np, garden
        >>> model = garden.T5Backbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
        >>> ids = np.array([[5, 6, 7, 1]])
        >>> cache = model.empty_cache(model.encode_alone(ids, ids > 0), ids > 0, length=3)
        >>> x, cache = model.cached(np.array([[0, 8]]), cache, 0)
        >>> x, cache = model.cached(np.array([[9]]), cache, 2)
        >>> x.shape == (1, 1, 8)
        True
        """
        places = index + ops.arange(token_ids.shape[1], dtype="int32")
        x = self.embed(token_ids, ops.broadcast_to(places, ops.shape(token_ids)))
        distance = places[:, None] - ops.arange(cache["blocks"][0][0].shape[2], dtype="int32")
        mask, terms = (distance >= 0)[None, None], self.decoder_terms(distance)
        source_mask = (cache["padding_mask"] > 0)[:, None, None, :]
        blocks = []
        for block, held in zip(self.decoder_blocks, cache["blocks"], strict=True):
            x, held = block.cached(x, held, index, attention_mask=mask, source_mask=source_mask, **terms)
            blocks.append(held)
        return self.finish(x, self.decoder_norm), {**cache, "blocks": blocks}
