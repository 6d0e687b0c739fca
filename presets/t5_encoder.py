"""The checkpoint table of T5's encoder alone: T5's own, without the decoder."""

from dataclasses import replace

from .family import Head
from .t5 import CONFIG, ENCODER, in_mesh
from .t5 import FAMILY as T5

FAMILY = replace(
    T5,
    backbone="T5EncoderBackbone",
    architecture="T5EncoderModel",
    prefix="transformer",
    config=CONFIG,
    huggingface=ENCODER,
    tensorflow1=in_mesh(ENCODER),
    heads={
        "TokenClassifier": Head(
            architecture="T5ForTokenClassification", huggingface=(("token_classifier/logits", "classifier"),)
        )
    },
    tied={"encoder.embed_tokens.weight": "shared.weight"},
    ignored=T5.ignored | {r"^(decoder|lm_head)[./]": "the decoder"},
    infer_config=lambda tensors: None,
)
