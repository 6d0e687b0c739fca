"""brightmart's own ALBERT, the first one for Chinese (github.com/brightmart/albert_zh, 2019)."""

import keras

from garden.albert import AlbertBackbone
from garden.layers import FactorizedEmbeddings
from garden.tokenizers import BertTokenizer


@keras.saving.register_keras_serializable("garden")
class BrightmartAlbertTokenizer(BertTokenizer):
    __doc__ = BertTokenizer.__doc__


@keras.saving.register_keras_serializable("garden")
class BrightmartAlbertBackbone(AlbertBackbone):
    """ALBERT as it was written before Google published its code: only the token table is factorised.

    A token's vector is multiplied to the model's width first, and positions and segments are added and normalised at
    that width. The masked-LM head is as wide as the model and goes back through both factors. Google's ALBERT sums
    narrow tables and projects the sum.

    Args:
        those of `AlbertBackbone`, whose `embedding_dim` is the width of the token table alone; None means one as wide
            as the model, and the matrix behind it is there all the same. The published models have one group of one
            block.

    Inputs, int32 (b, t):
        token_ids, segment_ids, and padding_mask: 0 is padding, k >= 1 the k-th sequence packed into the row.

    Outputs:
        sequence_output (b, t, d), and pooled_output (b, d) from the row's first token.

    Raises:
        ValueError: as `AlbertBackbone`.

    >>> import numpy as np, garden
    >>> albert = garden.BrightmartAlbertBackbone(
    ...     50, num_layers=4, num_heads=2, hidden_dim=8, intermediate_dim=16, embedding_dim=4)
    >>> ids = np.array([[2, 7, 8, 3]])
    >>> inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    >>> albert(inputs)["sequence_output"].shape == (1, 4, 8), tuple(albert.token_embedding.projection.shape)
    (True, (4, 8))
    """

    tokenizer_cls = BrightmartAlbertTokenizer
    embeddings_cls = FactorizedEmbeddings


BrightmartAlbertTokenizer.backbone_cls = BrightmartAlbertBackbone
