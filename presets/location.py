"""From what a user calls a preset to its files on this machine."""

import os
import re
from pathlib import Path

from filelock import FileLock

from .archive import unpack
from .download import check_sha256, download, garden_cache, short_hash
from .family import families
from .hubs import hugging_face, kaggle, paddle_nlp
from .packages import package_folder
from .table import Preset, find, presets

_SCHEMES = ("hf", "kaggle", "https", "http", "pip")
_NETWORK = re.compile("#(generator)$")
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


def locate(preset: str | os.PathLike) -> Path:
    """The folder that holds a preset's files, fetched and unpacked where necessary.

    Args:
        preset: one of

            - a folder, or an archive of one (`.zip`, `.tar`, `.tar.gz`, `.tgz`);
            - one weights file, or the prefix of a TensorFlow 1 checkpoint (`.../bert_model.ckpt`). Only here a file is
              returned instead of a folder: the weights file, or the checkpoint's `.index`;
            - `hf://ORG/NAME`, `hf://ORG/NAME@REVISION` or `kaggle://ORG/MODEL/FRAMEWORK/VARIANT`;
            - the URL of an archive;
            - a folder inside a Python package, `pip:NAME==VERSION:FOLDER`;
            - a built-in name (`garden.presets.names()`), unless a file or folder here is called the same.

            Behind an archive of ELECTRA, `#generator` means the generator in it, not the discriminator.

    Raises:
        FileNotFoundError: a path that does not exist, or a source that cannot be fetched.
        ValueError: an unknown name or scheme, or a preset whose weights were never published.
        CheckpointError: a damaged, hostile or exchanged file.

    >>> import tempfile
    >>> from garden.presets.location import locate
    >>> folder = tempfile.mkdtemp()
    >>> str(locate(folder)) == folder
    True
    """
    preset = _NETWORK.sub("", os.fspath(preset))
    if preset.partition(":")[0] in _SCHEMES:
        return _fetch(preset)
    local = _local(Path(preset).expanduser()) if preset else None
    if local:
        return local
    if "://" in preset:
        raise ValueError(f"{preset} has an unknown scheme; known are {', '.join(_SCHEMES)}")
    if re.search(r"[/\\.]", preset):
        hint = f"; on Hugging Face it would be hf://{preset}" if re.fullmatch(r"\w[\w.-]*/[\w.-]+", preset) else ""
        raise FileNotFoundError(f"There is no file or folder {preset}{hint}")
    return _built_in(preset)


def network(preset: str | os.PathLike) -> str:
    """The network that is meant where an archive holds several, "" for the family's own.

    >>> from garden.presets.location import network
    >>> network("electra_small.zip#generator"), network("electra_small.zip")
    ('generator', '')
    """
    row = presets().get(os.fspath(preset))
    found = [_NETWORK.search(source) for source in (row.sources if row else [os.fspath(preset)])]
    return next((match[1] for match in found if match), "")


def _local(path: Path) -> Path | None:
    if path.is_dir():
        return _innermost(path)
    if path.is_file() and path.name.endswith(_ARCHIVES):
        return _archive_file(path)
    index = path.with_name(f"{path.name}.index")
    return next((file for file in (path, index) if file.is_file()), None)


def _archive_file(path: Path) -> Path:
    state = path.stat()
    folder = garden_cache() / "unpacked" / short_hash(path.resolve(), state.st_size, state.st_mtime_ns)
    if not folder.is_dir():
        unpack(path, folder)
    return _innermost(folder)


def _archive_url(url: str) -> Path:
    folder = garden_cache() / "unpacked" / short_hash(url)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            archive = download(url)
            try:
                unpack(archive, folder)
            finally:
                archive.unlink()
    return _innermost(folder)


def _innermost(folder: Path) -> Path:
    """Archives differ in whether their files lie in a folder of their own; Finder adds `__MACOSX`."""
    inside = [path for path in folder.iterdir() if not path.name.startswith((".", "__MACOSX"))]
    return _innermost(inside[0]) if len(inside) == 1 and inside[0].is_dir() else folder


def _built_in(name: str) -> Path:
    row = find(name)
    if not row.sources:
        raise ValueError(f"The weights of {name} were never published: use load_weights=False, or a folder of your own")
    failures = []
    for source in row.sources:
        try:
            if source.startswith("paddle://"):
                return paddle_nlp(source.removeprefix("paddle://"), _configuration(row))
            return _fetch(_NETWORK.sub("", source), row.sha256)
        except (OSError, ValueError) as error:
            failures.append(str(error))
    raise FileNotFoundError(
        f"No source of {name} can be used: {'; '.join(failures)}. "
        "Bring its files here in some other way and give their folder in place of the name"
    )


def _configuration(row: Preset) -> dict:
    """The configuration that would have been published with a row's weights."""
    family, arguments = families()[row.family], row.backbone_config
    config = {theirs: arguments[ours] for ours, theirs in family.config.items() if ours in arguments}
    return {"model_type": family.model_type, **family.write_config(config)}


def _fetch(source: str, sha256: str = "") -> Path:
    """`sha256` is the checksum of the source's `model.safetensors`, where it is known."""
    scheme, _, rest = source.partition(":")
    handle = rest.removeprefix("//")
    match scheme:
        case "pip":
            requirement, _, inside = handle.partition(":")
            folder = package_folder(requirement, inside, sha256)
        case "hf":
            folder = hugging_face(handle)
        case "kaggle":
            folder = kaggle(handle)
        case _:
            folder = _archive_url(source)
    if sha256:
        check_sha256(folder / "model.safetensors", sha256)
    return folder
