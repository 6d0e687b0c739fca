"""What presets know of one family, as one record."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

Rows = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Head:
    """The names of a task's own layers.

    Attributes:
        architecture: the Hugging Face class that has this head, for the exported config.
        huggingface, tensorflow1, keras_hub: rows (ours, foreign).
    """

    architecture: str
    huggingface: Rows
    tensorflow1: Rows = ()
    keras_hub: Rows = ()


@dataclass(frozen=True)
class Family:
    """A family's checkpoint table.

    Attributes:
        backbone: name of the backbone class on garden's face.
        model_type: what Hugging Face's config.json calls it.
        prefix: scope of the backbone in checkpoints that also hold a head, without its separator; it may be absent.
        config: our constructor argument -> key in the published configs.
        defaults: published key -> what its absence means.
        layers: the backbone's rows for each format, names without the prefix.
        heads: task class name -> `Head`.
        optional: layers of ours that a checkpoint may lack; they are then fresh.
        tied: foreign name -> the foreign name of the tensor that it must equal, both without the prefix.
        ignored: pattern of foreign names -> why they are left; searched, not anchored.
    """

    backbone: str
    model_type: str
    prefix: str
    config: Mapping[str, str]
    defaults: Mapping[str, object]
    huggingface: Rows
    tensorflow1: Rows
    keras_hub: Rows
    heads: Mapping[str, Head]
    optional: tuple[str, ...]
    tied: Mapping[str, str]
    ignored: Mapping[str, str]

    @property
    def backbone_cls(self) -> type:
        """The backbone class itself, imported at first use."""
        return getattr(importlib.import_module("garden"), self.backbone)


_MODULES = ("bert",)


def families() -> dict[str, Family]:
    """Every family by its model type.

    >>> from garden.presets.family import families
    >>> families()["bert"].backbone
    'BertBackbone'
    """
    found = (importlib.import_module(f"garden.presets.{module}").FAMILY for module in _MODULES)
    return {family.model_type: family for family in found}
