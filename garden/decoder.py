"""The decoder that GPT and its descendants share: embeddings, causal blocks, a last norm where there is one."""

from keras import ops

from garden.backbone import Backbone
from garden.layers import causal_mask, distances, positions


class Cached:
    """What decoding asks of a backbone beside `cached(token_ids, cache, index)` and `language_model_head()`.

    A mixin for a backbone whose `blocks` hold an `attention` each; see `Decoder` for the two methods.

    >>> import garden
    >>> issubclass(garden.Gpt2Backbone, garden.decoder.Cached)
    True
    """

    is_encoder = False
    classifier_pooler = {}
    masked_lm_head = None

    def next_token_states(self, inputs):
        """The states float (b, t, d) from which the token behind each place is predicted."""
        return self(inputs)["sequence_output"]

    def masks(self, mask, distance):
        """The mask of each block.

        Args:
            mask: bool (b, 1, t, s), True where a key is of the query's sequence and not later.
            distance: int (t, s), how many places the key lies behind the query.
        """
        return [mask] * len(self.blocks)

    def empty_cache(self, batch_size, length: int) -> list:
        """For each block an array of zeros (b, 2, s, n, h) for the keys and values of `length` places."""
        heads = [(block.attention.num_heads, block.attention.query.units) for block in self.blocks]
        return [ops.zeros((batch_size, 2, length, n, units // n), self.compute_dtype) for n, units in heads]


class Decoder(Cached, Backbone):
    """The forward pass of GPT (Radford et al. 2018), whole or token by token over a cache.

    A subclass makes `embeddings`, `blocks` and, if its paper has one, `final_norm`. The two ways give the same numbers:
    `assemble` sees a whole row, `cached` the tokens from one place on and what the cache holds of those before.

    >>> import garden
    >>> issubclass(garden.Gpt2Backbone, garden.Decoder)
    True
    """

    input_names = ("token_ids", "padding_mask")
    final_norm = None

    def assemble(self, inputs, taps):
        padding_mask = inputs["padding_mask"]
        x = taps.state(self.embeddings(inputs["token_ids"], positions(padding_mask)))
        masks = self.masks(causal_mask(padding_mask), distances(padding_mask))
        for block, mask in zip(self.blocks, masks, strict=True):
            x = taps.through(block, x, attention_mask=mask)
        return {"sequence_output": taps.replace(self.normalized(x))}

    def normalized(self, x):
        """x (b, t, d) behind the last norm."""
        return self.final_norm(x) if self.final_norm else x

    def logits(self, x):
        """Logits (b, t, v) of the token behind each place, from x (b, t, d): the token table is the output too."""
        return self.token_embedding(x, reverse=True)

    def language_model_head(self):
        """What makes logits of x, as a layer or function; a layer may have weights of its own."""
        return self.logits

    def cached(self, token_ids, cache: list, index):
        """The hidden states of the tokens from place `index` on, of one sequence a row without padding before them.

        Args:
            token_ids: int (b, t).
            cache: what `empty_cache` or an earlier call gave.
            index: int scalar, the place of the first of these tokens.

        Returns:
            float (b, t, d), as the `sequence_output` of whole rows at these places, and the cache with them in it.

        >>> import numpy as np, garden
        >>> model = garden.Gpt2Backbone(50, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16)
        >>> x, cache = model.cached(np.array([[5, 6, 7]]), model.empty_cache(1, length=4), 0)
        >>> x, cache = model.cached(np.array([[8]]), cache, 3)
        >>> x.shape == (1, 1, 8)
        True
        """
        places = index + ops.arange(token_ids.shape[1], dtype="int32")
        x = self.embeddings(token_ids, ops.broadcast_to(places, ops.shape(token_ids)))
        x, filled = through_cache(self.blocks, x, cache, index, self.masks)
        return self.normalized(x), filled


def through_cache(blocks, x, cache: list, index, masks=None, **terms):
    """One step of decoding through blocks in turn.

    Args:
        blocks: the blocks.
        x: float (b, t, d), the tokens from place `index` on.
        cache: for each block float (b, 2, s, n, h).
        index: int scalar, the place of x's first token.
        masks: as `Cached.masks`; None lets every block see all that lies behind.
        **terms: further arguments of the attentions.

    Returns:
        float (b, t, d), and the cache with these tokens in it.

    >>> import garden, keras
    >>> from garden.decoder import through_cache
    >>> model = garden.Gpt2Backbone(9, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16)
    >>> x, cache = through_cache(model.blocks, keras.ops.ones((1, 2, 8)), model.empty_cache(1, length=4), 0)
    >>> x.shape == (1, 2, 8)
    True
    """
    places = index + ops.arange(x.shape[1], dtype="int32")
    distance = places[:, None] - ops.arange(cache[0].shape[2], dtype="int32")
    behind, filled = (distance >= 0)[None, None], []
    shown = masks(behind, distance) if masks else [behind] * len(blocks)
    for block, mask, held in zip(blocks, shown, cache, strict=True):
        x, held = block.cached(x, held, index, attention_mask=mask, **terms)
        filled.append(held)
    return x, filled
