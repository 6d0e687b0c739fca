"""What presets know of one family, as one record."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .errors import CheckpointError

Rows = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Head:
    """The names of a task's own layers.

    Attributes:
        architecture: the Hugging Face class that has this head and no other, for the exported config; may be empty.
        huggingface, tensorflow1, keras_hub, fairseq, paddle: rows (ours, foreign).
    """

    architecture: str
    huggingface: Rows
    tensorflow1: Rows = ()
    keras_hub: Rows = ()
    fairseq: Rows = ()
    paddle: Rows = ()


@dataclass(frozen=True)
class Family:
    """A family's checkpoint table.

    Attributes:
        backbone: name of the backbone class on garden's face.
        model_type: what Hugging Face's config.json calls it.
        other_model_types: further names there of the same network.
        architecture: Hugging Face's class without a head, where there is no masked-LM head that tells.
        prefix: scope of the backbone in checkpoints that also hold a head, without its separator; it may be absent.
        config: our constructor argument -> key in the published configs.
        defaults: published key -> what its absence means.
        layers: the backbone's rows for each format, names without the prefix.
        heads: task class name -> `Head`.
        tied: foreign name -> the foreign name of the tensor that it must equal, both without the prefix.
        ignored: pattern of foreign names -> why they are left; searched, not anchored.
        keras_hub_name: name of KerasHub's backbone class, where it is another.
        keras_hub_arguments: constructor arguments of ours that KerasHub's code fixes.
        tensorflow1_prefix: the scope in TensorFlow 1 files where it is another one.
        other_prefixes: scopes that older files have in its place.
        optional: layers of ours that a checkpoint may lack; they are then fresh.
        read_config: a published configuration, brought to the keys of `config`.
        write_config: its inverse, for the exported configuration.
        infer_config: the configuration of tensors that were published without one, or None.
        read_tensors: the tensors of a checkpoint and its configuration -> the tensors that the rows name.
        write_tensors: its inverse, for the exported tensors and configuration.
        config_file: name of the configuration, where it is not `config.json` or the like.
        networks: further networks in the family's TensorFlow 1 archives: name -> its own record.
    """

    backbone: str
    model_type: str
    prefix: str
    config: Mapping[str, str]
    defaults: Mapping[str, object]
    huggingface: Rows
    heads: Mapping[str, Head]
    tied: Mapping[str, str]
    ignored: Mapping[str, str]
    architecture: str = ""
    other_model_types: tuple[str, ...] = ()
    tensorflow1: Rows = ()
    keras_hub: Rows = ()
    fairseq: Rows = ()
    paddle: Rows = ()
    keras_hub_name: str = ""
    keras_hub_arguments: Mapping[str, object] = field(default_factory=lambda: {"activation": "gelu_tanh"})
    tensorflow1_prefix: str = ""
    other_prefixes: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    read_config: Callable[[Mapping], Mapping] = lambda config: config
    write_config: Callable[[Mapping], Mapping] = lambda config: config
    infer_config: Callable[[Mapping], Mapping | None] = lambda tensors: None
    read_tensors: Callable[[Mapping, Mapping], Mapping] = lambda tensors, config: tensors
    write_tensors: Callable[[Mapping, Mapping], Mapping] = lambda tensors, config: tensors
    config_file: str = ""
    networks: Mapping[str, "Family"] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """Hugging Face's classes of this network, bare and with heads."""
        return {self.architecture, *(head.architecture for head in self.heads.values())} - {""}

    @property
    def backbone_cls(self) -> type:
        """The backbone class itself, imported at first use."""
        return getattr(importlib.import_module("garden"), self.backbone)


_MODULES = (
    "albert",
    "bert",
    "brightmart_albert",
    "deberta",
    "deberta_v2",
    "distil_bert",
    "electra",
    "ernie",
    "gpt",
    "gpt2",
    "gpt3",
    "marian",
    "mobile_bert",
    "roberta",
    "transformer_xl",
    "t5",
    "t5_encoder",
    "xlm_roberta",
    "xlnet",
)


def family_of(backbone) -> Family:
    """The family of a backbone: that of its class, or of the nearest class above it.

    Raises:
        CheckpointError: a backbone of which nothing was published, so that no other format has names for its layers.

    >>> import garden
    >>> from garden.presets.family import family_of
    >>> family_of(garden.BertBackbone(9, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)).model_type
    'bert'
    """
    by_class = {family.backbone_cls: family for family in families().values()}
    found = next((by_class[cls] for cls in type(backbone).__mro__ if cls in by_class), None)
    if found is None:
        kind = type(backbone).__name__
        raise CheckpointError(f"No other format has names for the layers of a {kind}: save it as a garden preset.")
    return found


def families() -> dict[str, Family]:
    """Every family by the name of its tables, `presets/NAME.py` and `presets/NAME.tsv`.

    >>> from garden.presets.family import families
    >>> families()["bert"].backbone
    'BertBackbone'
    """
    return {module: importlib.import_module(f"garden.presets.{module}").FAMILY for module in _MODULES}
