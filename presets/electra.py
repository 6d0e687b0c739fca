"""ELECTRA's checkpoint table: BERT's names inside the blocks, a projection behind the tables, other heads.

Its TensorFlow 1 archives hold two networks, the discriminator and the generator, over the same tables.
"""

import re
from dataclasses import replace

from .bert import FAMILY as BERT
from .bert import LEFTOVERS
from .family import Family, Head
from .heads import encoder_heads


def _encoder(rows):
    return (*(row for row in rows if row[0] != "pooler/dense"), ("embeddings/projection", "embeddings_project"))


def _read(config):
    # "gelu" is the exact function in ELECTRA's TensorFlow code, as it is in transformers.
    return {**config, "hidden_act": "gelu_erf" if config["hidden_act"] == "gelu" else config["hidden_act"]}


def _write(config):
    return {**config, "embedding_size": config["embedding_size"] or config["hidden_size"]}


def _infer(tensors, scope="electra"):
    """A network's configuration: google-research/electra publishes none, and has 64 features a head."""
    intermediate = f"{scope}/encoder/layer_0/intermediate/dense/kernel"
    if "electra/embeddings/word_embeddings" not in tensors or intermediate not in tensors:
        return None
    vocabulary_size, embedding_dim = tensors.shape("electra/embeddings/word_embeddings")
    hidden_dim, intermediate_dim = tensors.shape(intermediate)
    blocks = {match[1] for name in tensors if (match := re.match(rf"{scope}/encoder/layer_(\d+)/", name))}
    return {
        "model_type": "electra",
        "vocab_size": vocabulary_size,
        "embedding_size": embedding_dim,
        "hidden_size": hidden_dim,
        "intermediate_size": intermediate_dim,
        "num_hidden_layers": len(blocks),
        "num_attention_heads": max(1, hidden_dim // 64),
        "max_position_embeddings": tensors.shape("electra/embeddings/position_embeddings")[0],
        "type_vocab_size": tensors.shape("electra/embeddings/token_type_embeddings")[0],
    }


_DISCRIMINATOR = Family(
    backbone="ElectraBackbone",
    model_type="electra",
    prefix="electra",
    config={**BERT.config, "embedding_dim": "embedding_size"},
    # A config.json that does not state the width of the tables means transformers' default, not the model's width.
    defaults={**BERT.defaults, "embedding_size": 128},
    huggingface=_encoder(BERT.huggingface),
    tensorflow1=_encoder(BERT.tensorflow1),
    heads=encoder_heads("Electra")
    | {
        "MaskedLM": Head(
            architecture="ElectraForMaskedLM",
            huggingface=(
                ("masked_lm/dense", "generator_predictions.dense"),
                ("masked_lm/norm", "generator_predictions.LayerNorm"),
                ("masked_lm/bias", "generator_lm_head.bias"),
            ),
        ),
        "ReplacedTokenDetector": Head(
            architecture="ElectraForPreTraining",
            huggingface=(
                ("replaced_token/dense", "discriminator_predictions.dense"),
                ("replaced_token/logits", "discriminator_predictions.dense_prediction"),
            ),
            tensorflow1=(
                ("replaced_token/dense", "discriminator_predictions/dense"),
                ("replaced_token/logits", "discriminator_predictions/dense_1"),
            ),
        ),
        "TextClassifier": Head(
            architecture="ElectraForSequenceClassification",
            huggingface=(("pooler/dense", "classifier.dense"), ("classifier/logits", "classifier.out_proj")),
        ),
        "MultipleChoice": Head(
            architecture="ElectraForMultipleChoice",
            huggingface=(("pooler/dense", "sequence_summary.summary"), ("classifier/logits", "classifier")),
        ),
    },
    tied={"generator_lm_head.weight": "embeddings.word_embeddings.weight"},
    ignored=LEFTOVERS
    | {
        r"^(generator_|discriminator_predictions[./])": "a head of another task",
        r"^(classifier\.|sequence_summary\.|qa_outputs\.|task_specific/)": "a head of another task",
        r"^generator/": "the generator, a network of its own, which #generator behind the name loads",
    },
    read_config=_read,
    write_config=_write,
    infer_config=_infer,
    config_file="discriminator.json",
)

_MASKED_LM = Head(
    architecture="ElectraForMaskedLM",
    huggingface=_DISCRIMINATOR.heads["MaskedLM"].huggingface,
    tensorflow1=(
        ("masked_lm/dense", "generator_predictions/dense"),
        ("masked_lm/norm", "generator_predictions/LayerNorm"),
        ("masked_lm/bias", "generator_predictions/output_bias"),
    ),
)
# The generator shares the discriminator's tables and has the rest of an encoder, often a narrower one.
_GENERATOR = replace(
    _DISCRIMINATOR,
    tensorflow1=tuple(
        (ours, ("electra/" if theirs.startswith("embeddings/") else "generator/") + theirs)
        for ours, theirs in _DISCRIMINATOR.tensorflow1
    ),
    heads={task: replace(head, tensorflow1=()) for task, head in _DISCRIMINATOR.heads.items()}
    | {"MaskedLM": _MASKED_LM},
    ignored=LEFTOVERS
    | {
        r"^electra/(encoder|embeddings_project)/": "the discriminator, a network of its own",
        r"^(discriminator_predictions|generator_predictions|task_specific)/": "a head of another task",
    },
    infer_config=lambda tensors: _infer(tensors, "generator"),
    config_file="generator.json",
)

FAMILY = replace(_DISCRIMINATOR, networks={"generator": _GENERATOR})
