"""brightmart's checkpoint table: two factors for the token table, then BERT's names in the one layer that all share."""

from .albert import FAMILY as ALBERT
from .bert import FAMILY as BERT
from .errors import CheckpointError
from .family import Family, Head

_TOKENS = (
    # garden                                TensorFlow 1
    ("embeddings/token_embedding/table", "embeddings/word_embeddings"),
    ("embeddings/token_embedding/projection", "embeddings/word_embeddings_2"),
)


def _shared(row):
    ours, theirs = row
    return ours.replace("block_{i}", "group_0_block_0"), theirs.replace("layer_{i}", "layer_shared")


def _infer(tensors):
    """The configurations do not say whose they are; the names do."""
    own = any("/layer_shared/" in name or name.endswith("/word_embeddings_2") for name in tensors)
    return {"model_type": "brightmart_albert"} if own else None


def _read(config):
    if (place := config.get("ln_type")) not in (None, "postln"):
        # The names and shapes are the same, so that nothing else would tell.
        raise CheckpointError(
            f"This ALBERT of brightmart's has its norms in another place (ln_type {place}): garden reads those with "
            "ln_type postln, which are albert_tiny_zh_brightmart, base, large and extra_large."
        )
    return config


FAMILY = Family(
    backbone="BrightmartAlbertBackbone",
    model_type="brightmart_albert",
    prefix="bert",
    config={**BERT.config, "embedding_dim": "embedding_size"},
    defaults={**BERT.defaults, "embedding_size": 128},
    huggingface=(),
    tensorflow1=(*_TOKENS, *map(_shared, BERT.tensorflow1[1:])),
    heads={task: Head("", (), head.tensorflow1) for task, head in ALBERT.heads.items() if head.tensorflow1},
    tied={},
    ignored=ALBERT.ignored,
    optional=ALBERT.optional,
    read_config=_read,
    infer_config=_infer,
)
