"""unpack: published archives unpack; damaged and hostile ones are refused and leave nothing behind."""

import gzip
import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from garden.presets import CheckpointError, archive
from garden.presets.archive import staged, unpack

FILES = {"albert_base/albert_config.json": b"{}", "albert_base/vocab_chinese.txt": b"[PAD]\n[UNK]\n"}


def zip_of(path: Path, members: dict[str, bytes], **attributes: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            for attribute, value in attributes.items():
                setattr(info, attribute, value)
            file.writestr(info, content, zipfile.ZIP_DEFLATED)
    return path


def tar_of(path: Path, members: dict[str, bytes], **attributes: object) -> Path:
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for attribute, value in attributes.items():
                setattr(info, attribute, value)
            file.addfile(info, io.BytesIO(content))
    return path


def refused(path: Path, reason: str) -> None:
    """Unpacking raises, in a sentence that names the archive, and writes nothing."""
    folder = path.parent / "out" / "folder"
    with pytest.raises(CheckpointError, match=reason) as error:
        unpack(path, folder)
    assert str(path) in str(error.value)
    assert not folder.parent.exists() or not list(folder.parent.iterdir())
    assert {file.name for file in path.parent.iterdir()} <= {path.name, "out"}


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.whl", "no_suffix"])
def test_an_archive_unpacks(name, tmp_path):
    path = (zip_of if name in ("a.zip", "a.whl") else tar_of)(tmp_path / name, FILES)
    folder = unpack(path, tmp_path / "new" / "folder")
    assert {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.*")} == FILES


def test_folders_are_members_too(tmp_path):
    path = tar_of(tmp_path / "a.tgz", {"bert": b""}, type=tarfile.DIRTYPE)
    assert (unpack(path, tmp_path / "tar") / "bert").is_dir()
    path = zip_of(tmp_path / "a.zip", {"bert/": b""}, external_attr=(stat.S_IFDIR | 0o755) << 16)
    assert (unpack(path, tmp_path / "zip") / "bert").is_dir()


def test_a_tar_that_ends_with_a_zip(tmp_path):
    inner = zip_of(tmp_path / "inner.zip", {"inner.txt": b""}).read_bytes()
    path = tar_of(tmp_path / "a.tar", {"PK.txt": b"", "inner.zip": inner})
    assert {file.name for file in unpack(path, tmp_path / "folder").iterdir()} == {"PK.txt", "inner.zip"}


@pytest.mark.parametrize("name", ["/etc/passwd", "../up.txt", "a/../../up.txt", "..\\up.txt", "C:\\up.txt", "C:up.txt"])
@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_a_path_out_of_the_folder(make, name, tmp_path):
    refused(make(tmp_path / ("a.zip" if make is zip_of else "a.tgz"), {"a.txt": b"", name: b"x"}), "lies outside")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_a_link_or_device_in_a_tar(kind, tmp_path):
    refused(tar_of(tmp_path / "a.tar", {"a.txt": b""}, type=kind, linkname="a.txt"), "is a link, a device or encrypted")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_a_link_or_device_in_a_zip(kind, tmp_path):
    path = zip_of(tmp_path / "a.zip", {"a.txt": b"/etc/passwd"}, external_attr=(kind | 0o777) << 16)
    refused(path, "is a link, a device or encrypted")


def test_an_encrypted_zip(tmp_path):
    path = zip_of(tmp_path / "a.zip", {"a.txt": b"secret"})
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    refused(path, "is a link, a device or encrypted")


@pytest.mark.parametrize("make, name", [(zip_of, "a.zip"), (tar_of, "a.tgz")])
def test_the_unpacked_size_is_bounded(make, name, monkeypatch, tmp_path):
    path = make(tmp_path / name, {"a": bytes(60_000), "b": bytes(60_000)})
    monkeypatch.setattr(archive, "MAX_BYTES", 119_999)
    refused(path, "unpacks to more than 119,999 bytes")
    monkeypatch.setattr(archive, "MAX_BYTES", 120_000)
    assert len(list(unpack(path, tmp_path / "folder").iterdir())) == 2


@pytest.mark.parametrize("make, name", [(zip_of, "a.zip"), (tar_of, "a.tgz")])
def test_the_number_of_members_is_bounded(make, name, monkeypatch, tmp_path):
    monkeypatch.setattr(archive, "MAX_MEMBERS", 2)
    refused(make(tmp_path / name, dict.fromkeys("abc", b"")), "more than 2 members")


def test_a_zip_member_longer_than_it_declares(tmp_path):
    path = zip_of(tmp_path / "a.zip", {"a.txt": bytes(100_000)})
    content = path.read_bytes()
    path.write_bytes(content.replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    refused(path, "is damaged, .*: Bad CRC-32")


def test_a_tar_header_that_claims_the_memory(tmp_path):
    header = tarfile.TarInfo("a.txt")
    header.type, header.size = tarfile.XHDTYPE, 2**33
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb") as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        file.write(bytes(2**20))
    refused(path, "holds more bytes than its members declare")


@pytest.mark.parametrize("make, name", [(zip_of, "a.zip"), (tar_of, "a.tgz"), (tar_of, "a.tar")])
@pytest.mark.parametrize("part", [0.05, 0.5, 0.9])
def test_a_truncated_archive(make, name, part, tmp_path):
    path = make(tmp_path / name, {f"{i}.bin": bytes(range(256)) * i for i in range(40)})
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    refused(path, "is damaged, or no zip or tar archive: ")


@pytest.mark.parametrize("content", [b"", b"<html>moved</html>", b"\x1f\x8b", b"PK\x03\x04"])
def test_a_file_that_is_no_archive(content, tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(content)
    refused(path, "is damaged, or no zip or tar archive: ")


def test_an_exception_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), staged(tmp_path / "folder") as stage:
        (stage / "half.bin").write_bytes(b"1")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_the_first_of_two_processes_wins(tmp_path):
    with staged(tmp_path / "folder") as slow:
        (slow / "slow.txt").touch()
        with staged(tmp_path / "folder") as quick:
            (quick / "quick.txt").touch()
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["folder", "folder/quick.txt"]
