"""GPT-3's table. Its weights were never published, so that there are sizes only."""

from .family import Family
from .gpt2 import FAMILY as GPT2

FAMILY = Family(
    backbone="Gpt3Backbone",
    model_type="gpt3",
    architecture="",
    prefix="",
    config=GPT2.config,
    defaults={},
    huggingface=(),
    heads={},
    tied={},
    ignored={},
)
