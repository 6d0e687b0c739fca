"""locate: every way to name a preset ends at its files, or in one sentence that says what to do."""

import dataclasses
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from kagglesdk import kaggle_env
from web import File, HuggingFace, Kaggle, send, serve

from garden.presets import CheckpointError, download, find
from garden.presets import location as module
from garden.presets.location import locate

FILES = {"bert_config.json": b"{}", "bert_model.ckpt.index": b"index", "vocab.txt": b"[PAD]\n"}


@pytest.fixture(autouse=True)
def _own_caches(monkeypatch, tmp_path):
    monkeypatch.setenv("GARDEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "FIRST_PAUSE", 0)


def zipped(path: Path, top: str = "", files: dict[str, bytes] = FILES) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in files.items():
            file.writestr(top + name, content)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def written(folder: Path, files: dict[str, bytes] = FILES) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_folder(monkeypatch, tmp_path):
    folder = written(tmp_path / "bert")
    assert locate(folder) == locate(str(folder)) == folder
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locate("~/bert") == folder


def test_a_folder_around_the_folder(tmp_path):
    folder = written(tmp_path / "unzipped" / "uncased_L-2_H-128_A-2")
    (tmp_path / "unzipped" / "__MACOSX").mkdir()
    (tmp_path / "unzipped" / ".DS_Store").touch()
    assert locate(tmp_path / "unzipped") == folder


def test_a_folder_goes_before_a_built_in_name(monkeypatch, tmp_path):
    written(tmp_path / "rbt3_zh")
    monkeypatch.chdir(tmp_path)
    assert contents(locate("rbt3_zh")) == FILES


def test_one_weights_file_or_tensorflow_prefix(tmp_path):
    folder = written(tmp_path / "bert", FILES | {"model.safetensors": b"", "pytorch_model.bin": b"PK\x03\x04"})
    index = folder / "bert_model.ckpt.index"
    assert locate(folder / "bert_model.ckpt") == locate(index) == index
    assert locate(folder / "model.safetensors") == folder / "model.safetensors"
    assert locate(folder / "pytorch_model.bin") == folder / "pytorch_model.bin"


@pytest.mark.parametrize("top", ["", "chinese_L-12_H-768_A-12/"])
def test_an_archive(top, tmp_path):
    path = zipped(tmp_path / "bert.zip", top)
    folder = locate(path)
    assert contents(folder) == FILES and folder.is_relative_to(tmp_path / "cache")
    assert locate(path) == folder


def test_a_changed_archive_is_unpacked_anew(tmp_path):
    path = zipped(tmp_path / "bert.zip")
    locate(path)
    zipped(path, files={"vocab.txt": b"other"})
    assert contents(locate(path)) == {"vocab.txt": b"other"}


def test_a_tar_archive(tmp_path):
    written(tmp_path / "made" / "albert_base")
    path = shutil.make_archive(str(tmp_path / "albert_base_v2"), "gztar", tmp_path / "made")
    assert contents(locate(path)) == FILES


def test_the_url_of_an_archive(tmp_path):
    file = File(zipped(tmp_path / "made.zip", "uncased_L-2_H-128_A-2/").read_bytes(), cuts=(100,))
    with serve(file) as site:
        folder = locate(f"{site}/uncased_L-2_H-128_A-2.zip")
        assert locate(f"{site}/uncased_L-2_H-128_A-2.zip") == folder
    assert contents(folder) == FILES and file.asked == [None, "bytes=100-"]
    assert not list((tmp_path / "cache").rglob("*.zip"))


def test_a_url_of_something_else_is_asked_for_again_after_the_error():
    file = File(b"<html>please log in</html>")
    with serve(file) as site:
        for _ in range(2):
            with pytest.raises(CheckpointError, match="bert.zip is damaged, or no zip or tar archive"):
                locate(f"{site}/bert.zip")
    assert len(file.asked) == 2


def hub(preset: str, site: str, home: Path) -> subprocess.CompletedProcess:
    """`locate` in a process of its own, as the client reads HF_ENDPOINT when it is imported."""
    code = "import sys; from garden.presets.location import locate; print(locate(sys.argv[1]))"
    env = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    env |= {"HF_ENDPOINT": site, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-c", code, preset]
    return subprocess.run(command, env=env, capture_output=True, text=True, cwd=Path(__file__).parents[1])


SMALL = ["config.json", "tokenizer.json", "vocab.txt", "1_Pooling/config.json"]
FOREIGN = ["tf_model.h5", "flax_model.msgpack", "onnx/model.onnx", "onnx/model.safetensors", "README.md"]


@pytest.mark.parametrize(
    "offered, wanted",
    [
        (["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (["pytorch_model.bin"], ["pytorch_model.bin"]),
        (
            ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"],
            ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"],
        ),
        (
            ["model.weights.h5", "assets/tokenizer/vocabulary.txt"],
            ["model.weights.h5", "assets/tokenizer/vocabulary.txt"],
        ),
    ],
)
def test_hugging_face(offered, wanted, tmp_path):
    repository = HuggingFace("hfl/rbt3", {name: name.encode() for name in SMALL + FOREIGN + offered})
    with serve(repository) as site:
        run = hub("hf://hfl/rbt3", site, tmp_path)
    assert sorted(repository.fetched) == sorted(SMALL + wanted), run.stderr
    folder = Path(run.stdout.strip())
    assert all((folder / name).read_bytes() == name.encode() for name in SMALL + wanted)


def test_what_was_fetched_from_hugging_face_needs_no_network(tmp_path):
    repository = HuggingFace("hfl/rbt3", {"config.json": b"{}", "pytorch_model.bin": b"PK"})
    with serve(repository) as site:
        folder = hub("rbt3_zh", site, tmp_path).stdout
    assert hub(f"hf://hfl/rbt3@{HuggingFace.COMMIT}", site, tmp_path).stdout == folder
    assert hub("rbt3_zh", site, tmp_path).stdout == folder and len(repository.fetched) == 2


@pytest.mark.parametrize(
    "preset, reason",
    [
        ("hf://hfl/rbt33", "FileNotFoundError: hf://hfl/rbt33 does not exist or is closed to you: check its name, and"),
        ("hf://hfl/rbt3@v2", "FileNotFoundError: hf://hfl/rbt3@v2 does not exist or is closed to you"),
        ("hf://a/b/c", "FileNotFoundError: hf://a/b/c cannot be fetched: Repo id must be"),
    ],
)
def test_what_hugging_face_does_not_have(preset, reason, tmp_path):
    with serve(HuggingFace("hfl/rbt3", {})) as site:
        error = hub(preset, site, tmp_path).stderr.strip().splitlines()[-1]
    assert error.startswith(reason)


def test_a_built_in_name_without_a_network(tmp_path):
    with serve(HuggingFace("hfl/rbt3", {})) as site:
        pass
    error = hub("rbt3_zh", site, tmp_path).stderr.strip().splitlines()[-1]
    assert error.startswith("FileNotFoundError: No source of rbt3_zh can be used: hf://hfl/rbt3 cannot be fetched: ")
    assert error.endswith("Bring its files here in some other way and give their folder in place of the name")


@pytest.fixture
def kaggle(monkeypatch, tmp_path):
    """A local Kaggle, where its client looks for one when told that it runs beside the server."""
    files = {"config.json": b"{}", "model.weights.h5": b"weights", "assets/tokenizer/vocabulary.txt": b"[PAD]"}
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("KAGGLE_API_ENVIRONMENT", "LOCALHOST")
    with serve(Kaggle(files)) as site:
        monkeypatch.setitem(kaggle_env._env_to_endpoint, kaggle_env.KaggleEnv.LOCAL, site)
        yield files


@pytest.mark.parametrize("version", ["", "/3"])
def test_kaggle(version, kaggle):
    folder = locate(f"kaggle://keras/bert/keras/bert_tiny_en_uncased{version}")
    assert {name: (folder / name).read_bytes() for name in kaggle} == kaggle and folder.name == "3"


def test_what_kaggle_does_not_have(kaggle):
    with pytest.raises(FileNotFoundError, match="^kaggle://keras/bart/keras/x cannot be fetched: 404 Client Error"):
        locate("kaggle://keras/bart/keras/x")
    with pytest.raises(FileNotFoundError, match="kaggle://keras/bert cannot be fetched: Invalid model handle"):
        locate("kaggle://keras/bert")


def test_sources_are_tried_in_turn(monkeypatch, tmp_path):
    content = zipped(tmp_path / "made.zip").read_bytes()

    def answer(request):
        send(request, content, 404 if "gone" in request.path else 200)

    with serve(answer) as site:
        row = dataclasses.replace(find("rbt3_zh"), sources=(f"{site}/gone.zip", f"{site}/bert.zip"))
        monkeypatch.setattr(module, "find", lambda name: row)
        assert contents(locate("rbt3_zh")) == FILES


def test_each_failure_is_told(monkeypatch, tmp_path):
    content = zipped(tmp_path / "made.zip", files={"model.safetensors": b"other"}).read_bytes()

    def answer(request):
        send(request, content, 404 if "gone" in request.path else 200)

    with serve(answer) as site:
        row = dataclasses.replace(find("rbt3_zh"), sources=(f"{site}/gone.zip", f"{site}/bert.zip"), sha256="0" * 64)
        monkeypatch.setattr(module, "find", lambda name: row)
        with pytest.raises(
            FileNotFoundError, match="it answers 404 Not Found; .*safetensors is damaged or another file"
        ):
            locate("rbt3_zh")


@pytest.mark.parametrize(
    "preset, error, reason",
    [
        ("bert_base_enn", ValueError, r"No preset is named 'bert_base_enn'; did you mean bert_base_en "),
        ("mini_lm_l6_h768_en_uncased", ValueError, "never published: use load_weights=False"),
        (
            "modelscope://a/b",
            ValueError,
            "modelscope://a/b has an unknown scheme; known are hf, kaggle, https, http, pip",
        ),
        ("", ValueError, "No preset is named ''"),
        ("./bert", FileNotFoundError, r"There is no file or folder \./bert$"),
        ("bert.zip", FileNotFoundError, "There is no file or folder bert.zip"),
        ("hfl/rbt3", FileNotFoundError, "folder hfl/rbt3; on Hugging Face it would be hf://hfl/rbt3"),
        ("pip:tiny-bert", ValueError, "named by NAME==VERSION, not 'tiny-bert'"),
    ],
)
def test_what_cannot_be_located(preset, error, reason):
    with pytest.raises(error, match=reason):
        locate(preset)
