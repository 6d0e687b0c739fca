"""XLNet as a language model that writes: the permutation is the order of the text (Yang et al. 2019, section 2.3)."""

from functools import partial

from keras import ops

from garden.decoder import Cached
from garden.layers import TiedLogits, causal_mask


class TwoStreamDecoding(Cached):
    """What `garden.tasks.CausalLM` asks of a backbone, mixed in before one of two streams.

    The state of a place is that of a query at the next one, which sees the tokens up to here and not its own.

    >>> import garden
    >>> from garden.xlnet_decoding import TwoStreamDecoding
    >>> issubclass(garden.XlnetBackbone, TwoStreamDecoding)
    True
    """

    is_encoder = True  # one stream alone understands

    def next_token_states(self, inputs):
        """The states float (b, t, d) from which the token behind each place is predicted; segments do not count.

        Args:
            inputs: dict of `token_ids` and `padding_mask`, int (b, t).
        """
        h = self.embeddings(inputs["token_ids"])
        g = self.embeddings.mask_embedding(h)
        mask = causal_mask(inputs["padding_mask"])
        here, ahead = (self.relative_positions(h, ahead=by) for by in (0, 1))
        for block in self.blocks:
            g = block(g, attention_mask=mask, source=h, relative=ahead)
            h = block(h, attention_mask=mask, relative=here)
        return self.output_dropout(g)

    def language_model_head(self):
        """The token table once more, and a bias."""
        return TiedLogits(self.token_embedding, dtype=self.dtype_policy, name="language_model")

    def cached(self, token_ids, cache: list, index):
        """`next_token_states` of the tokens from place `index` on, and the cache with them; see `garden.Decoder`."""
        length, places = token_ids.shape[1], cache[0].shape[2]
        mask = (index + ops.arange(length)[:, None] >= ops.arange(places))[None, None]
        h = self.embeddings(token_ids)
        g = self.embeddings.mask_embedding(h)
        stands = {"keys": places, "last": index + length - 1}
        here, ahead = (self.relative_positions(h, **stands, ahead=by) for by in (0, 1))
        filled = []
        for block, held in zip(self.blocks, cache, strict=True):
            h, held = block.cached(h, held, index, attention_mask=mask, relative=here)
            g = block.sublayers(g, partial(block.attention.recall, memory=held, attention_mask=mask, relative=ahead))
            filled.append(held)
        return g, filled
