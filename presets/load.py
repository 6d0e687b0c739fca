"""Builds backbones, tokenizers and tasks from a preset in any format, and accounts for every tensor."""

import inspect
import json
import warnings
from contextlib import nullcontext
from dataclasses import replace

import keras_hub

import garden
from garden.layers import weights_to_be_loaded

from .accounting import fill
from .checkpoint import networks_of, read_checkpoint
from .errors import CheckpointError
from .family import families
from .formats import read_words
from .location import locate, network
from .table import presets as rows


def load_backbone(preset, cls: type, load_weights: bool = True, **kwargs):
    """What `Backbone.from_preset` does.

    Args:
        preset: see `locate`.
        cls: the class that was asked for; the preset's class must be it or a subclass.
        load_weights: whether to read weights; without them a built-in name needs no network.
        **kwargs: constructor arguments in place of the preset's.

    Returns:
        The backbone; its attribute `load_report` tells what became of every tensor of a foreign checkpoint.

    Raises:
        CheckpointError: damaged files, or a tensor that the table does not explain.
        TypeError: the preset holds another family than `cls`.

    >>> import garden
    >>> garden.presets.load_backbone("rbt3_zh", garden.BertBackbone, load_weights=False).num_layers
    3
    """
    source = _Source(preset, load_weights)
    if source.is_garden:
        garden.backbones()  # KerasHub finds only classes that have been imported
        backbone = keras_hub.models.Backbone.from_preset(str(source.path), load_weights, **kwargs)
        _check_class(type(backbone), cls, preset)
        return backbone
    source.choose(lambda backbone_cls: issubclass(backbone_cls, cls))
    _check_class(source.backbone_cls, cls, preset)
    backbone = source.build(**kwargs)
    if load_weights:
        _note(backbone, fill(backbone, source.checkpoint))
    return backbone


def load_tokenizer(preset, cls: type, **kwargs):
    """The tokenizer of a preset.

    Args:
        preset: see `locate`.
        cls: the tokenizer class of the family.
        **kwargs: constructor arguments in place of the preset's.

    Raises:
        FileNotFoundError: the preset has no vocabulary.

    ```python
    tokenizer = garden.BertTokenizer.from_preset("all_minilm_l6_v2_en")
    ```
    """
    source = _Source(preset)
    if source.is_garden:
        garden.backbones()
        tokenizer = keras_hub.tokenizers.Tokenizer.from_preset(str(source.path), **kwargs)
        if type(tokenizer).__name__ not in cls.alternatives:
            _check_class(type(tokenizer), cls, preset)
        return tokenizer
    return source.tokenizer(cls, **kwargs)


def load_task(preset, cls: type, load_weights: bool = True, **kwargs):
    """What `from_preset` of every task does.

    The head is loaded when the checkpoint has it in the right size; otherwise it is fresh, and a warning says so.

    Args:
        preset: see `locate`.
        cls: the task's class, generic or of one family.
        load_weights: whether to read weights.
        **kwargs: the task's arguments (`num_classes`, `preprocessor`, ...), `dtype`, and those of its preprocessor
            (`sequence_length`, ...).

    Raises:
        CheckpointError: as in `load_backbone`.
        ValueError: `num_classes` is not given and the checkpoint has no head that states it.

    ```python
    classifier = garden.tasks.TextClassifier.from_preset("all_minilm_l6_v2_en", num_classes=2)
    ```
    """
    source = _Source(preset, load_weights)
    if source.is_garden:
        return cls.from_garden_preset(source.path, load_weights, **kwargs)
    source.choose(lambda found: found is cls.backbone_cls if cls.backbone_cls else cls.fits(found))
    cls = cls.for_backbone(source.backbone_cls)
    dtype = {"dtype": kwargs.pop("dtype")} if "dtype" in kwargs else {}
    backbone = source.build(**dtype)
    kwargs = cls.complete(kwargs, source.checkpoint) if source.checkpoint else kwargs
    settings = {name: kwargs.pop(name) for name in cls.preprocessor_settings if name in kwargs}
    if "preprocessor" not in kwargs and source.checkpoint:
        if backbone.max_sequence_length is not None:
            for name in (name for name in cls.preprocessor_settings if name.endswith("sequence_length")):
                settings.setdefault(name, backbone.max_sequence_length)
        kwargs["preprocessor"] = cls.preprocessor_cls(source.tokenizer(backbone.tokenizer_cls), **settings)
    task = cls(backbone=backbone, **kwargs)
    if load_weights:
        unread = () if cls.reads == "pooled_output" else source.checkpoint.family.optional
        _note(task, fill(task, source.checkpoint, cls.__base__.__name__, source.untrained), unread)
    return task


class _Source:
    """A preset, resolved as far as is needed: to its files, or to its row in the table when no file has to be read."""

    def __init__(self, preset, load_weights=True):
        self.load_weights = load_weights
        self.row = rows().get(preset) if isinstance(preset, str) else None
        self.path = None if self.row and not load_weights else locate(preset)
        self.checkpoint = read_checkpoint(self.path, network(preset)) if self.path else None
        self.family = self.checkpoint.family if self.checkpoint else self.row and families()[self.row.family]
        if not self.row and network(preset) and (self.is_garden or self.checkpoint.format != "tensorflow1"):
            raise CheckpointError(f"{self.path} holds one network only: leave #{network(preset)} out.")

    @property
    def is_garden(self):
        """Whether the files are a garden preset, which KerasHub's own loader reads."""
        return bool(self.path) and self.checkpoint is None

    @property
    def untrained(self):
        """Names of the tasks whose published head is random."""
        return self.row.untrained if self.row else ()

    @property
    def backbone_cls(self):
        return self.family.backbone_cls

    def choose(self, fits):
        """Of several networks in the same files takes the first that fits, if one does."""
        self.family = next((part for part in networks_of(self.family) if fits(part.backbone_cls)), self.family)
        if self.checkpoint:
            self.checkpoint = replace(self.checkpoint, family=self.family)

    def build(self, **kwargs):
        arguments = self.checkpoint.arguments if self.checkpoint else self.row.backbone_config
        if self.row and self.checkpoint and self.checkpoint.format == "huggingface":
            # The table corrects what some of these files say.
            arguments |= {"activation": self.row.activation, "layer_norm_epsilon": self.row.layer_norm_epsilon}
        with weights_to_be_loaded() if self.load_weights else nullcontext():
            known = inspect.signature(
                self.backbone_cls
            ).parameters  # a part of a network needs not all that the row says
            arguments = {name: value for name, value in arguments.items() if name in known}
            return self.backbone_cls(**{**arguments, **kwargs})

    def tokenizer(self, cls, **kwargs):
        folder = self.path if self.path.is_dir() else self.path.parent
        lowercase = self.row.lowercase if self.row else self.checkpoint.config.get("do_lower_case")
        if self.checkpoint.format == "keras_hub":
            lowercase = json.loads((folder / "tokenizer.json").read_text("utf-8"))["config"].get("lowercase")
            folder = folder / "assets" / "tokenizer"
        kinds = (cls, *(getattr(garden, name) for name in cls.alternatives))
        kind = next((kind for kind in kinds if kind.recognises(folder)), cls)
        stated = {} if lowercase is None else {"lowercase": lowercase}
        known = inspect.signature(kind).parameters  # some tokenizers never fold case
        if "words" in known and "words" not in kwargs:  # published as a pickle, which only `formats` may open
            stated["words"] = read_words(folder)
        return kind.from_files(folder, {name: value for name, value in stated.items() if name in known}, **kwargs)


def _check_class(found, wanted, preset):
    if not issubclass(found, wanted):
        raise TypeError(
            f"{preset} holds a {found.__name__}, not a {wanted.__name__}: call {found.__name__}.from_preset."
        )


def _note(model, report, silent=()):
    """Attaches the report, and warns of fresh weights except in the layers that the model does not read."""
    object.__setattr__(model, "load_report", report)
    fresh = [path for path in report.fresh if not path.startswith(tuple(silent))]
    if fresh:
        warnings.warn(f"Not in the checkpoint, so fresh and in need of training: {', '.join(fresh)}.", stacklevel=4)
