"""The encoder that BERT and its descendants share: embeddings, post-norm blocks, and a pooler where there is one."""

from garden.backbone import Backbone
from garden.layers import Attention, FeedForward, PostNormBlock, attention_mask, positions


class Encoder(Backbone):
    """The forward pass of BERT (Devlin et al. 2018, section 3).

    A subclass makes `embeddings`, `blocks` and, if its paper has one, `pooler`.

    >>> import garden
    >>> issubclass(garden.BertBackbone, garden.Encoder)
    True
    """

    pooler = None

    def assemble(self, inputs, taps):
        padding_mask = inputs["padding_mask"]
        x = taps.state(self.embed(inputs))
        mask = attention_mask(padding_mask)
        for block in self.blocks:
            x = taps.through(block, x, attention_mask=mask)
        pooled = {"pooled_output": self.pooler(x, padding_mask)} if self.pooler else {}
        return {"sequence_output": x, **pooled}

    def embed(self, inputs):
        """The first hidden state, from the inputs' dictionary."""
        ids = [inputs["token_ids"], positions(inputs["padding_mask"])]
        ids += [inputs["segment_ids"]] if "segment_ids" in inputs else []
        return self.embeddings(*ids)


def transformer_blocks(
    num_layers,
    num_heads,
    intermediate_dim,
    activation,
    dropout,
    attention_dropout,
    layer_norm_epsilon,
    dtype=None,
    block=PostNormBlock,
    head_dim=None,
    name="block",
):
    """The blocks of one stack with plain attention, `block_0` to the last.

    Args:
        num_layers: how many.
        num_heads: n.
        intermediate_dim: f.
        activation: of the feed-forward network.
        dropout: rate on what attention and feed-forward add.
        attention_dropout: rate on the attention probabilities; None means `dropout`.
        layer_norm_epsilon: epsilon of the norms.
        dtype: dtype policy.
        block: class of the blocks.
        head_dim: width of a head; None means that of the model divided by n.
        name: what their names begin with.

    Returns:
        A list of blocks.

    >>> from garden.encoder import transformer_blocks
    >>> [block.name for block in transformer_blocks(2, 2, 16, "gelu_erf", 0.1, None, 1e-12)]
    ['block_0', 'block_1']
    """
    attention_dropout = dropout if attention_dropout is None else attention_dropout
    return [
        block(
            Attention(num_heads, attention_dropout, head_dim=head_dim, dtype=dtype, name="attention"),
            FeedForward(intermediate_dim, activation, dtype=dtype, name="feedforward"),
            dropout,
            layer_norm_epsilon,
            dtype=dtype,
            name=f"{name}_{i}",
        )
        for i in range(num_layers)
    ]
