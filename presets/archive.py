"""Unpacking a foreign archive without trusting it."""

import gzip
import os
import secrets
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import BinaryIO, NoReturn

from .errors import CheckpointError

MAX_BYTES = 32 * 2**30  # twenty times the largest published archive
MAX_MEMBERS = 10_000
_HEADER_BYTES = 2**16


def unpack(archive: str | os.PathLike, folder: str | os.PathLike) -> Path:
    """Unpacks a zip, tar or gzipped tar file to `folder`, wholly or not at all, and returns the folder.

    Raises:
        CheckpointError: the file is no such archive, is damaged, would unpack to more than 32 GiB or 10,000
            members, or holds a path that leaves the folder, a link, a device or an encrypted file.

    >>> import tempfile, zipfile
    >>> from garden.presets.archive import unpack
    >>> folder = tempfile.mkdtemp()
    >>> with zipfile.ZipFile(f"{folder}/bert.zip", "w") as file:
    ...     file.writestr("vocab.txt", "[PAD]")
    >>> (unpack(f"{folder}/bert.zip", f"{folder}/bert") / "vocab.txt").read_text()
    '[PAD]'
    """
    archive, folder = Path(archive), Path(folder)
    # Its beginning tells: zipfile would also recognise a tar file that ends with a zip file.
    with open(archive, "rb") as file:
        extract = _unzip if file.read(4) in (b"PK\x03\x04", b"PK\x05\x06") else _untar
    try:
        with staged(folder) as stage:
            extract(archive, stage)
    # zipfile raises NotImplementedError for a compression that it does not know, as damaged headers ask for.
    except (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise CheckpointError(f"{archive} is damaged, or no zip or tar archive: {error}") from error
    return folder


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A fresh folder beside `folder` to write into: it becomes `folder` at the end, or vanishes with an exception.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from garden.presets.archive import staged
    >>> folder = Path(tempfile.mkdtemp()) / "bert"
    >>> with staged(folder) as stage:
    ...     _ = (stage / "vocab.txt").write_text("[PAD]")
    >>> [file.name for file in folder.iterdir()]
    ['vocab.txt']
    """
    stage = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    stage.mkdir(parents=True)
    try:
        yield stage
        settle(stage, folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def settle(made: Path, folder: Path) -> None:
    """Renames the finished folder `made` to `folder`; where another process was first, that one's stays.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from garden.presets.archive import settle
    >>> made = Path(tempfile.mkdtemp())
    >>> settle(made, made.with_name(f"{made.name}-done"))
    >>> made.exists()
    False
    """
    try:
        os.replace(made, folder)
    except OSError:
        if not folder.is_dir():
            raise


class _Gate:
    """Lets an archive's members through one by one and refuses the first that could do harm."""

    def __init__(self, archive: Path):
        self.archive, self.members, self.bytes = archive, 0, 0

    def admit(self, name: str, plain: bool, size: int) -> None:
        # Read as a Windows path, a name shows every kind of root and separator.
        path = PureWindowsPath(name)
        if path.anchor or ".." in path.parts:
            self.refuse(f"its member {name!r} lies outside of the folder")
        if not plain:
            self.refuse(f"its member {name!r} is a link, a device or encrypted")
        self.members, self.bytes = self.members + 1, self.bytes + size
        if size < 0 or self.bytes > MAX_BYTES:
            self.refuse(f"it unpacks to more than {MAX_BYTES:,} bytes")
        if self.members > MAX_MEMBERS:
            self.refuse(f"it has more than {MAX_MEMBERS:,} members")

    def refuse(self, reason: str) -> NoReturn:
        raise CheckpointError(f"{self.archive} is refused: {reason}")


def _unzip(archive: Path, folder: Path) -> None:
    gate = _Gate(archive)
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            plain = kind in (0, stat.S_IFREG, stat.S_IFDIR) and not member.flag_bits & 1
            gate.admit(member.filename, plain, member.file_size)
        # A member that inflates to more than it declares is cut there by zipfile and fails its checksum.
        file.extractall(folder)


def _untar(archive: Path, folder: Path) -> None:
    gate = _Gate(archive)
    with open(archive, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    with (gzip.open if zipped else open)(archive, "rb") as file:
        stream = _Metered(file, gate)
        with tarfile.open(fileobj=stream, mode="r|") as members:
            for member in members:
                gate.admit(member.name, member.isreg() or member.isdir(), member.size)
                stream.granted += member.size + _HEADER_BYTES
                members.extract(member, folder, filter="data")


class _Metered:
    """A stream that yields only what was granted: a header that claims gigabytes ends here and not in memory."""

    def __init__(self, stream: BinaryIO, gate: _Gate):
        self.stream, self.gate, self.granted = stream, gate, _HEADER_BYTES

    def read(self, size: int) -> bytes:
        self.granted -= size
        if self.granted < 0:
            self.gate.refuse("it holds more bytes than its members declare")
        return self.stream.read(size)
