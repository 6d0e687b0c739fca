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
from .sentence_transformers import read_pooling

# Hugging Face and Google write "gelu" for whatever their code computes: erf in transformers, tanh in Google's since
# 2019.
_ACTIVATIONS = {
    "huggingface": {"gelu": "gelu_erf", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"},
    "tensorflow1": {"gelu": "gelu_tanh"},
}


@dataclass(frozen=True)
class Checkpoint:
    """A folder of foreign files: one format, one family.

    Attributes:
        path: the folder, or the file that was named in it.
        format: `"huggingface"`, `"tensorflow1"` or `"keras_hub"`; `"garden"` folders are KerasHub's own business.
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
            return {**own, "activation": "gelu_tanh"}
        published = self.family.read_config({**self.family.defaults, **self.config})
        arguments = {ours: published[theirs] for ours, theirs in self.family.config.items() if theirs in published}
        activations = _ACTIVATIONS[self.format]
        return {**arguments, "activation": activations.get(arguments["activation"], arguments["activation"])}

    @cached_property
    def tensors(self) -> Mapping:
        """Foreign name -> array, read at each access."""
        return H5Weights(self.path) if self.format == "keras_hub" else open_weights(self.path)

    @property
    def dialect(self) -> weight_names.Dialect:
        """How this format spells variables."""
        dialects = {
            "huggingface": weight_names.HUGGING_FACE,
            "tensorflow1": weight_names.TENSORFLOW_1,
            "keras_hub": weight_names.KERAS_HUB,
        }
        return dialects[self.format]

    @cached_property
    def prefix(self) -> str:
        """The backbone's scope in this checkpoint, `"bert."` or empty, decided from its token table."""
        token_table = getattr(self.family, self.format)[0]
        scope = f"{self.family.prefix}."
        if self.format == "tensorflow1":
            scope = f"{self.family.tensorflow1_prefix or self.family.prefix}/"
        known = weight_names.foreign_names(
            f"{token_table[0]}/embeddings", [(token_table[0], scope + token_table[1])], self.dialect
        )
        return scope if known and known[0] in self.tensors else ""

    def rows(self, task: str | None = None) -> list[tuple[str, str]]:
        """The name table of the backbone, with that of a task's head."""
        rows = [(ours, self.prefix + theirs) for ours, theirs in getattr(self.family, self.format)]
        head = self.family.heads.get(task)
        return rows + list(getattr(head, self.format) if head else ())

    @property
    def embedder_arguments(self) -> dict:
        """How tokens become an embedding, where the folder is one of sentence-transformers."""
        folder = self.path if self.path.is_dir() else self.path.parent
        return read_pooling(folder, self.arguments["max_sequence_length"])

    def class_names(self, task: str) -> list[str] | None:
        """Names of a published head's classes; generic ones where only their number is known, None without a head."""
        named = sorted((int(i), name) for i, name in self.config.get("id2label", {}).items())
        if named:
            return [name for _, name in named]
        bias = self.rows(task)[-1][0].removesuffix("/bias") + "/bias"
        found = [
            name for name in weight_names.foreign_names(bias, self.rows(task), self.dialect) if name in self.tensors
        ]
        return [f"LABEL_{i}" for i in range(self.tensors.shape(found[0])[0])] if found else None


def read_checkpoint(path: Path) -> Checkpoint | None:
    """What is in a folder; None when it is a garden preset, which KerasHub's loader reads.

    Args:
        path: a folder, or one weights file (or TensorFlow 1 prefix) whose folder holds the configuration.

    Raises:
        CheckpointError: no configuration, one of an unknown kind, or of a family that garden does not have.
    """
    folder = path if path.is_dir() else path.parent
    config = {**_inferred(path), **_config(folder)}
    if not config:
        held = ", ".join(sorted(file.name for file in folder.iterdir())) or "nothing"
        raise CheckpointError(f"{folder} has no config.json or bert_config.json; it holds {held}.")
    registered = config.get("registered_name", "")
    if registered.startswith("keras_hub>"):
        family = _family(folder, registered.removeprefix("keras_hub>"), lambda f: f.backbone if f.keras_hub else "")
        return Checkpoint(path, "keras_hub", config, family)
    if registered:
        return None
    format = "tensorflow1" if _is_tensorflow1(path) else "huggingface"
    family = _family(folder, config.get("model_type", "bert"), lambda f: f.model_type)
    if not getattr(family, format):
        raise CheckpointError(f"{folder} is a {format} checkpoint, which garden does not read for {family.backbone}.")
    return Checkpoint(path, format, config, family)


def _is_tensorflow1(path):
    if not path.is_dir():
        return Path(f"{path}.index").exists() or path.suffix == ".index"
    torch_files = [*path.glob("*.safetensors*"), *path.glob("pytorch_model*")]
    return not torch_files and any(path.glob("*.index"))


def _config(folder):
    candidates = [folder / "config.json", *sorted(folder.glob("*config*.json"))]
    found = next((file for file in candidates if file.exists() and not file.name.startswith("tokenizer")), None)
    if found is None:
        return {}
    try:
        config = json.loads(found.read_text("utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{found} is not valid JSON: {error}.") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{found} holds a {type(config).__name__}, not a configuration.")
    return config


def _inferred(path):
    if not _is_tensorflow1(path):
        return {}
    tensors = open_weights(path)
    return next(filter(None, (family.infer_config(tensors) for family in families().values())), {})


def _family(folder, name, key):
    for family in families().values():
        if key(family) == name:
            return family
    known = ", ".join(sorted(filter(None, map(key, families().values()))))
    raise CheckpointError(f"{folder} holds a {name} model; garden reads {known}.")
