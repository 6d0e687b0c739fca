"""Recognises, from the files in a folder, which format they are in and which family they belong to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import weight_names
from .errors import CheckpointError
from .family import Family, families
from .formats import H5Weights, open_weights
from .formats.numpy_shards import SHAPES
from .sentence_transformers import read_pooling

# Hugging Face and Google write "gelu" for whatever their code computes: erf in transformers, tanh in Google's since
# 2019.
_ACTIVATIONS = {
    "huggingface": {"gelu": "gelu_erf", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"},
    "tensorflow1": {"gelu": "gelu_tanh", "gelu_new": "gelu_tanh"},
    "fairseq": {"gelu": "gelu_erf", "gelu_accurate": "gelu_tanh", "gelu_fast": "gelu_tanh"},
    "paddle": {"gelu": "gelu_erf"},
}
# Of a file that is alone; a folder may hold several, and safetensors or pytorch_model.bin go first.
_FORMATS = {".pt": "fairseq", ".pdparams": "paddle", ".index": "tensorflow1"}


@dataclass(frozen=True)
class Checkpoint:
    """A folder of foreign files: one format, one family.

    Attributes:
        path: the folder, or the file that was named in it.
        format: `"huggingface"`, `"tensorflow1"`, `"fairseq"`, `"paddle"` or `"keras_hub"`; garden's own folders are
            KerasHub's business.
        config: the published configuration, as read.
        family: the family's checkpoint table.

    >>> from garden.presets.checkpoint import Checkpoint
    >>> from garden.presets.family import families
    >>> checkpoint = Checkpoint(None, "huggingface", {"vocab_size": 9, "hidden_act": "gelu"}, families()["bert"])
    >>> checkpoint.arguments["activation"]
    'gelu_erf'
    """

    path: Path
    format: str
    config: Mapping
    family: Family

    @property
    def arguments(self) -> dict:
        """The backbone's constructor arguments that the configuration states."""
        if self.format == "keras_hub":
            own = {name: self.config["config"][name] for name in self.family.config if name in self.config["config"]}
            return {**own, **self.family.keras_hub_arguments}
        published = self.family.read_config(self.published)
        arguments = {ours: published[theirs] for ours, theirs in self.family.config.items() if theirs in published}
        activations = _ACTIVATIONS[self.format]
        return {**arguments, "activation": activations.get(arguments["activation"], arguments["activation"])}

    @property
    def published(self) -> Mapping:
        """The published configuration with what the absence of a key means."""
        return {**self.family.defaults, **self.config}

    @cached_property
    def tensors(self) -> Mapping:
        """Foreign name -> array, read at each access."""
        if self.format == "keras_hub":
            return H5Weights(self.path)
        return self.family.read_tensors(open_weights(self.path), self.published)

    @property
    def dialect(self) -> weight_names.Dialect:
        """How this format spells variables."""
        dialects = {
            "huggingface": weight_names.HUGGING_FACE,
            "tensorflow1": weight_names.TENSORFLOW_1,
            "fairseq": weight_names.HUGGING_FACE,  # torch modules, both of them
            "keras_hub": weight_names.KERAS_HUB,
            "paddle": weight_names.PADDLE,
        }
        return dialects[self.format]

    @cached_property
    def prefix(self) -> str:
        """The backbone's scope in this checkpoint, `"bert."` or empty, decided from its token table."""
        ours, theirs = getattr(self.family, self.format)[0]
        scopes = [f"{prefix}." for prefix in (self.family.prefix, *self.family.other_prefixes)]
        if self.format == "tensorflow1":
            scopes = [f"{self.family.tensorflow1_prefix or self.family.prefix}/"]
        if self.format == "fairseq":
            return ""
        for scope in scopes:
            known = weight_names.foreign_names(f"{ours}/embeddings", [(ours, scope + theirs)], self.dialect)
            if known and known[0] in self.tensors:
                return scope
        return ""

    def rows(self, task: str | None = None) -> list[tuple[str, str]]:
        """The name table of the backbone, with that of a task's head if the checkpoint may hold it."""
        return [(ours, self.prefix + theirs) for ours, theirs in getattr(self.family, self.format)] + self._head(task)

    def _head(self, task):
        """The rows of a task's head; none if the configuration says that what has these names is another task's."""
        rows = {name: list(getattr(head, self.format)) for name, head in self.family.heads.items()}
        named = [name for name, head in self.family.heads.items() if head.architecture in self._architectures]
        own = rows.get(task, [])
        shared = {theirs for _, theirs in own}.intersection(theirs for name in named for _, theirs in rows[name])
        return [] if shared and task not in named else own

    @property
    def _architectures(self):
        return self.config.get("architectures") or ()

    def holds(self, path: str, task: str) -> bool:
        """Whether there is a tensor for a variable of a task."""
        return any(name in self.tensors for name in weight_names.foreign_names(path, self.rows(task), self.dialect))

    @property
    def embedder_arguments(self) -> dict:
        """How tokens become an embedding, where the folder is one of sentence-transformers."""
        folder = self.path if self.path.is_dir() else self.path.parent
        return read_pooling(folder, self.arguments.get("max_sequence_length"))

    def class_names(self, task: str) -> list[str] | None:
        """Names of a published head's classes; generic ones where only their number is known, None without a head."""
        rows = self._head(task)
        if not rows:
            return None
        named = sorted((int(i), name) for i, name in self.config.get("id2label", {}).items())
        if named:
            return [name for _, name in named]
        bias = rows[-1][0].removesuffix("/bias") + "/bias"
        found = [name for name in weight_names.foreign_names(bias, rows, self.dialect) if name in self.tensors]
        return [f"LABEL_{i}" for i in range(self.tensors.shape(found[0])[0])] if found else None


def read_checkpoint(path: Path, network: str = "") -> Checkpoint | None:
    """What is in a folder; None when it is a garden preset, which KerasHub's loader reads.

    Args:
        path: a folder, or one weights file (or TensorFlow 1 prefix) whose folder holds the configuration.
        network: which network of a TensorFlow 1 archive that holds several; "" is the family's own.

    Raises:
        CheckpointError: no configuration, one of an unknown kind, of a family that garden does not have, or no such
            network.
    """
    folder = path if path.is_dir() else path.parent
    config = {**_inferred(path, network), **_config(folder)}
    if not config:
        raise CheckpointError(f"{folder} has no config.json or bert_config.json; it holds {_held(folder)}.")
    registered = config.get("registered_name", "")
    if registered.startswith("keras_hub>"):
        name = registered.removeprefix("keras_hub>")
        family = _family(folder, name, lambda f: (f.keras_hub_name or f.backbone) if f.keras_hub else "")
        return Checkpoint(path, "keras_hub", config, family)
    if registered:
        return None
    format = _format(path)
    config = _paddle_config(config) if format == "paddle" else config
    family = _family(folder, config.get("model_type", "bert"), lambda f: f.model_type)
    family = next((part for part in networks_of(family) if part.names & set(config.get("architectures") or ())), family)
    if not getattr(family, format):
        raise CheckpointError(f"{folder} is a {format} checkpoint, which garden does not read for {family.backbone}.")
    if network and format == "tensorflow1":  # the other formats give each network a folder of its own
        if network not in family.networks:
            raise CheckpointError(f"{folder} holds a {family.backbone}, whose archives have no {network}.")
        family = family.networks[network]
    own = folder / family.config_file
    checkpoint = Checkpoint(path, format, config | _read_json(own) if own.is_file() else config, family)
    size, published = family.config["vocabulary_size"], checkpoint.published
    if size not in published and size not in family.read_config(published):  # names alone told the family
        raise CheckpointError(
            f"{folder} holds a {family.backbone} and no configuration that states its {size}: {_held(folder)}."
        )
    return checkpoint


def _held(folder):
    return ", ".join(sorted(file.name for file in folder.iterdir())) or "nothing"


def networks_of(family: Family) -> list[Family]:
    """The records of all networks in the files of a family, itself first: of T5, the whole and the encoder.

    >>> from garden.presets.checkpoint import networks_of
    >>> from garden.presets.family import families
    >>> [part.backbone for part in networks_of(families()["t5"])]
    ['T5Backbone', 'T5EncoderBackbone']
    """
    others = [other for other in families().values() if other.model_type == family.model_type]
    return [family, *(other for other in others if other is not family)]


def _format(path):
    if not path.is_dir():
        return "tensorflow1" if Path(f"{path}.index").exists() else _FORMATS.get(path.suffix, "huggingface")
    if any(path.glob("*.safetensors*")) or any(path.glob("pytorch_model*")):
        return "huggingface"
    found = (format for suffix, format in _FORMATS.items() if any(path.glob(f"*{suffix}")))
    return next(found, "huggingface")


def _config(folder):
    candidates = [folder / "config.json", *sorted(folder.glob("*config*.json"))]
    found = next((file for file in candidates if file.exists() and not file.name.startswith("tokenizer")), None)
    return {} if found is None else _read_json(found)


def _read_json(file):
    try:
        config = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{file} is not valid JSON: {error}.") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{file} holds a {type(config).__name__}, not a configuration.")
    return config


def _inferred(path, network):
    format = _format(path)
    if format not in ("tensorflow1", "fairseq") and not (path / SHAPES).is_file():
        return {}
    tensors = open_weights(path)
    records = (family.networks.get(network, family) for family in families().values())
    config = next(filter(None, (record.infer_config(tensors) for record in records)), {})
    if not config and format == "fairseq":
        raise CheckpointError(f"{tensors.path} has no training arguments of a family that garden reads from fairseq.")
    return config


def _paddle_config(config):
    """PaddleNLP's model_config.json: around the model's own stands that of its task, and the rest is in the code."""
    around = [*config.get("init_args", ()), *config.values()]
    own = next((part for part in around if isinstance(part, dict) and "init_class" in part), config)
    kind = own.get("init_class", "").removesuffix("Model").lower()
    around = {"architectures": [config["init_class"]]} if own is not config and "init_class" in config else {}
    # Its code calls LayerNorm without an epsilon, whatever a configuration says.
    return {"model_type": kind or "bert", "intermediate_size": 3072, **around, **own, "layer_norm_eps": 1e-5}


def _family(folder, name, key):
    for family in families().values():
        if name in (key(family), *family.other_model_types):
            return family
    known = ", ".join(sorted(filter(None, map(key, families().values()))))
    raise CheckpointError(f"{folder} holds a {name} model; garden reads {known}.")
