"""DistilBERT's checkpoint table. Its configs call the model's width `dim` and the feed-forward's `hidden_dim`."""

from .bert import LEFTOVERS
from .family import Family, Head
from .heads import encoder_heads

FAMILY = Family(
    backbone="DistilBertBackbone",
    model_type="distilbert",
    prefix="distilbert",
    config={
        "vocabulary_size": "vocab_size",
        "num_layers": "n_layers",
        "num_heads": "n_heads",
        "hidden_dim": "dim",
        "intermediate_dim": "hidden_dim",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "max_sequence_length": "max_position_embeddings",
        "activation": "activation",
    },
    defaults={"dropout": 0.1, "attention_dropout": 0.1, "max_position_embeddings": 512, "activation": "gelu"},
    huggingface=(
        ("embeddings/token_embedding", "embeddings.word_embeddings"),
        ("embeddings/position_embedding", "embeddings.position_embeddings"),
        ("embeddings/norm", "embeddings.LayerNorm"),
        ("block_{i}/attention/query", "transformer.layer.{i}.attention.q_lin"),
        ("block_{i}/attention/key", "transformer.layer.{i}.attention.k_lin"),
        ("block_{i}/attention/value", "transformer.layer.{i}.attention.v_lin"),
        ("block_{i}/attention/output_dense", "transformer.layer.{i}.attention.out_lin"),
        ("block_{i}/attention_norm", "transformer.layer.{i}.sa_layer_norm"),
        ("block_{i}/feedforward/intermediate_dense", "transformer.layer.{i}.ffn.lin1"),
        ("block_{i}/feedforward/output_dense", "transformer.layer.{i}.ffn.lin2"),
        ("block_{i}/feedforward_norm", "transformer.layer.{i}.output_layer_norm"),
    ),
    heads=encoder_heads("DistilBert")
    | {
        "MaskedLM": Head(
            architecture="DistilBertForMaskedLM",
            huggingface=(
                ("masked_lm/dense", "vocab_transform"),
                ("masked_lm/norm", "vocab_layer_norm"),
                ("masked_lm/bias", "vocab_projector.bias"),
            ),
        ),
        "TextClassifier": Head(
            architecture="DistilBertForSequenceClassification",
            huggingface=(("pooler/dense", "pre_classifier"), ("classifier/logits", "classifier")),
        ),
        "MultipleChoice": Head(
            architecture="DistilBertForMultipleChoice",
            huggingface=(("pooler/dense", "pre_classifier"), ("classifier/logits", "classifier")),
        ),
    },
    tied={"vocab_projector.weight": "embeddings.word_embeddings.weight"},
    ignored=LEFTOVERS | {r"^(vocab_|pre_classifier\.|classifier\.|qa_outputs\.)": "a head of another task"},
)
