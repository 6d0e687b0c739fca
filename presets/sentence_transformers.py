"""What a sentence-transformers folder says beside the weights: how tokens are pooled, and how many of them."""

import json
from pathlib import Path

from .errors import CheckpointError

_MODES = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}


def read_pooling(folder: Path, max_sequence_length: int | None) -> dict:
    """The arguments of `TextEmbedder` and its preprocessor that a folder states; none without a `modules.json`.

    Args:
        folder: holds `modules.json`, the folders it names, and maybe `sentence_bert_config.json`.
        max_sequence_length: the backbone's, or None.

    Raises:
        CheckpointError: a file is damaged, or asks for a step that garden does not have.

    >>> import pathlib, tempfile
    >>> from garden.presets.sentence_transformers import read_pooling, write_pooling
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_pooling(folder, "cls", True, hidden_dim=8, sequence_length=128)
    >>> read_pooling(folder, 512)
    {'pooling_mode': 'cls', 'normalize': True, 'sequence_length': 128}
    """
    if not (folder / "modules.json").exists():
        return {}
    steps = {step["type"].rsplit(".", 1)[-1]: folder / step["path"] for step in _json(folder / "modules.json")}
    unknown = sorted(steps.keys() - {"Transformer", "Pooling", "Normalize"})
    if unknown or "Pooling" not in steps:
        found = ", ".join(unknown) or "no Pooling"
        raise CheckpointError(f"{folder / 'modules.json'} has {found}, which garden's TextEmbedder cannot follow.")
    arguments = {"pooling_mode": _mode(steps["Pooling"] / "config.json"), "normalize": "Normalize" in steps}
    limits = sorted(folder.glob("sentence_*_config.json"))  # between stands the family: bert, roberta, xlm-roberta, ...
    length = _json(limits[0]).get("max_seq_length") if limits else None
    return {**arguments, "sequence_length": min(length, max_sequence_length or length)} if length else arguments


def write_pooling(folder: Path, pooling_mode: str, normalize: bool, hidden_dim: int, sequence_length: int) -> None:
    """The inverse of `read_pooling`: writes the files into a folder of weights, for sentence-transformers to load."""
    names = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(names)
    ]
    modes = {f"pooling_mode_{published}": mode == pooling_mode for published, mode in _MODES.items()}
    (folder / "1_Pooling").mkdir()
    for file, content in {
        "modules.json": modules,
        "1_Pooling/config.json": {"word_embedding_dimension": hidden_dim, **modes},
        "sentence_bert_config.json": {"max_seq_length": sequence_length, "do_lower_case": False},
    }.items():
        (folder / file).write_text(json.dumps(content, indent=2) + "\n", "utf-8")


def _mode(file):
    config = _json(file)
    if isinstance(config.get("pooling_mode"), str):
        modes = [config["pooling_mode"]]
    else:
        # A folder that does not mention the mean means it.
        flags = {"pooling_mode_mean_tokens": True, **config}
        modes = [name.removeprefix("pooling_mode_") for name, on in flags.items() if on is True and "mode_" in name]
        modes = [_MODES.get(mode, mode) for mode in modes]
    if len(modes) != 1 or modes[0] not in _MODES.values():
        raise CheckpointError(f"{file} pools by {' and '.join(modes)}; garden has one of {', '.join(_MODES.values())}.")
    return modes[0]


def _json(file):
    try:
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}.") from None
