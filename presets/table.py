"""The published checkpoints as data: one row per preset, one `.tsv` file per family.

`bert.tsv` is the table of the family `bert`. Cells are separated by tabs, blanks around them only keep the columns
straight, and `-` is an empty cell.
"""

import csv
import difflib
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Preset:
    """One published checkpoint: what its network looks like, where it lies and what it may be used for.

    Attributes:
        name: what `from_preset` takes.
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, max_sequence_length, activation,
            layer_norm_epsilon, num_segments, embedding_dim, num_task_types, bottleneck_dim, num_feedforwards,
            attention_input, head_dim, cutoffs, div_val, tie_projections, memory_length, clamp_length, same_length,
            share_biases, key_value_dim, use_gated_activation, tie_embedding_weights, conv_kernel_size: the backbone's
            arguments of these names; None where a family has none.
        tokenizer: `wordpiece`, `byte-pair`, `sentencepiece` or `words`.
        lowercase: whether the tokenizer folds case and strips accents first; None where it never does.
        language: `en`, `zh` or `multi`.
        licence: as stated by the source.
        parameters: exact number of weights of the backbone with its pooler.
        sources: where the files are, in the order in which they are tried: `pip:NAME==VERSION:FOLDER`,
            `hf://ORG/NAME`, the URL of an archive, or `paddle://WEIGHTS,VOCABULARY,...` (see `hubs.paddle_nlp`).
            Empty where the weights were never published.
        untrained: tasks whose head the published files hold, but random.
        sha256: checksum of `model.safetensors`, or "" where it is not known.
        note: what to know before use.
        family: name of the table the row stands in.

    >>> from garden.presets import find
    >>> find("bert_tiny_en_uncased").hidden_dim
    128
    """

    name: str
    vocabulary_size: int
    num_layers: int
    num_heads: int
    hidden_dim: int
    intermediate_dim: int
    activation: str
    layer_norm_epsilon: float
    tokenizer: str
    lowercase: bool | None
    language: str
    licence: str
    parameters: int
    sources: tuple[str, ...]
    untrained: tuple[str, ...]
    sha256: str
    note: str
    family: str
    max_sequence_length: int | None = None
    num_segments: int | None = None
    embedding_dim: int | None = None
    num_task_types: int | None = None
    bottleneck_dim: int | None = None
    num_feedforwards: int | None = None
    attention_input: str | None = None
    head_dim: int | None = None
    cutoffs: tuple[int, ...] | None = None
    div_val: int | None = None
    tie_projections: tuple[bool, ...] | None = None
    memory_length: int | None = None
    clamp_length: int | None = None
    same_length: bool | None = None
    share_biases: bool | None = None
    key_value_dim: int | None = None
    use_gated_activation: bool | None = None
    tie_embedding_weights: bool | None = None
    conv_kernel_size: int | None = None

    @property
    def backbone_config(self) -> dict[str, int | float | str]:
        """The backbone's constructor arguments.

        >>> from garden.presets import find
        >>> find("rbt3_zh").backbone_config["num_layers"]
        3
        """
        stated = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _ABOUT}
        return {name: value for name, value in stated.items() if value is not None}


# What a row says of a checkpoint; all else are arguments of its backbone.
_ABOUT = {"name", "tokenizer", "lowercase", "language", "licence", "parameters", "sources", "untrained", "sha256"}
_ABOUT |= {"note", "family"}
_TRUTH = {"yes": True, "no": False, "": None}
_PARSE = {
    str: str,
    int: int,
    int | None: lambda cell: int(cell) if cell else None,
    str | None: str,
    float: float,
    bool | None: _TRUTH.__getitem__,
    tuple[str, ...]: lambda cell: tuple(cell.split()),
    tuple[int, ...] | None: lambda cell: tuple(map(int, cell.split())) or None,
    tuple[bool, ...] | None: lambda cell: tuple(_TRUTH[word] for word in cell.split()) or None,
}


def presets(family: str | None = None) -> dict[str, Preset]:
    """Rows by name, in the order of the tables; of one family, or of all.

    Raises:
        ValueError: there is no table of that family.

    >>> from garden.presets import presets
    >>> presets("bert")["bert_base_zh"].vocabulary_size
    21128
    """
    tables = _tables()
    if family is None:
        return {name: row for table in tables.values() for name, row in table.items()}
    if family not in tables:
        raise ValueError(f"There are no presets of a family {family!r}; the families are {', '.join(tables)}")
    return dict(tables[family])


def names() -> list[str]:
    """Every built-in preset name.

    >>> from garden.presets import names
    >>> "bert_base_en" in names()
    True
    """
    return list(presets())


def find(name: str) -> Preset:
    """The row of a built-in preset.

    Raises:
        ValueError: there is none of that name; the message offers the closest ones.

    >>> from garden.presets import find
    >>> find("bert_base_en").lowercase
    False
    """
    known = presets()
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    raise ValueError(f"No preset is named {name!r}; {hint}garden.presets.names() lists all {len(known)}")


@cache
def _tables() -> dict[str, dict[str, Preset]]:
    files = sorted(resources.files(__package__).iterdir(), key=lambda file: file.name)
    tables = {file.name.removesuffix(".tsv"): file for file in files if file.name.endswith(".tsv")}
    return {family: _rows(family, file.read_text("utf-8")) for family, file in tables.items()}


def _rows(family: str, text: str) -> dict[str, Preset]:
    header, *lines = csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    columns = [cell.strip() for cell in header]
    rows = [_row(family, dict(zip(columns, line, strict=True))) for line in lines]
    return {row.name: row for row in rows}


def _row(family: str, cells: dict[str, str]) -> Preset:
    cells = {column: "" if cell.strip() == "-" else cell.strip() for column, cell in cells.items()}
    types = {field.name: field.type for field in fields(Preset)}
    return Preset(family=family, **{column: _PARSE[types[column]](cell) for column, cell in cells.items()})
