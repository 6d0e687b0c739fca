"""download: one fetch per URL, resumed, retried a bounded number of times and checked."""

import hashlib
import time
from http.server import BaseHTTPRequestHandler

import pytest
from web import File, send, serve

from garden.presets import CheckpointError
from garden.presets import download as module
from garden.presets.download import download, garden_cache

CONTENT = bytes(range(256)) * 40
HALF = len(CONTENT) // 2


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def fetch(file: File, cache, path: str = "/bert.zip", sha256: str | None = None) -> bytes:
    with serve(file) as site:
        return download(site + path, sha256, cache).read_bytes()


def test_a_file_is_fetched_once(tmp_path):
    file = File(CONTENT)
    with serve(file) as site:
        first, second = (download(f"{site}/models/bert.zip", cache=tmp_path) for _ in range(2))
    assert first == second and first.name == "bert.zip" and first.read_bytes() == CONTENT
    assert file.asked == [None]


def test_the_environment_names_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("GARDEN_CACHE", str(tmp_path / "here"))
    with serve(File(CONTENT)) as site:
        assert download(f"{site}/bert.zip").is_relative_to(tmp_path / "here")
    monkeypatch.delenv("GARDEN_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert garden_cache() == tmp_path / ".cache" / "garden"


def test_archives_of_one_name_stay_apart(tmp_path):
    with serve(File(CONTENT)) as site:
        urls = [f"{site}/{version}/albert_base.tar.gz" for version in ("v1", "v2", "zh")]
        assert len({download(url, cache=tmp_path) for url in urls}) == 3


def test_a_query_or_a_strange_path_makes_a_plain_file_name(tmp_path):
    with serve(File(CONTENT)) as site:
        names = [download(site + path, cache=tmp_path).name for path in ("/a/..%2f..%2fb.zip?x=1", "/", "/%2e%2e")]
    assert names == ["b.zip", "file", "file"]


def test_a_broken_connection_is_taken_up_where_it_broke(tmp_path):
    file = File(CONTENT, cuts=(HALF, 100))
    assert fetch(file, tmp_path) == CONTENT
    assert file.asked == [None, f"bytes={HALF}-", f"bytes={HALF + 100}-"]


def test_a_later_call_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    file = File(CONTENT, cuts=(HALF,))
    with serve(file) as site:
        with pytest.raises(FileNotFoundError, match=f"broke after {HALF:,} of {len(CONTENT):,} bytes"):
            download(f"{site}/bert.zip", cache=tmp_path)
        assert download(f"{site}/bert.zip", cache=tmp_path).read_bytes() == CONTENT
    assert file.asked == [None, f"bytes={HALF}-"]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [".lock", "bert.zip"]


def test_a_server_without_ranges_sends_all_again(tmp_path):
    file = File(CONTENT, cuts=(HALF,), ranges=False)
    assert fetch(file, tmp_path) == CONTENT
    assert len(file.asked) == 2


def test_without_a_validator_all_is_asked_again(tmp_path):
    file = File(CONTENT, cuts=(HALF,), validator="")
    assert fetch(file, tmp_path) == CONTENT
    assert file.asked == [None, None]


def test_the_halves_of_two_different_files_are_never_joined(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    file = File(CONTENT, cuts=(HALF,))
    with serve(file) as site:
        with pytest.raises(FileNotFoundError):
            download(f"{site}/bert.zip", cache=tmp_path)
        file.content, file.validator = CONTENT[::-1], '"two"'
        assert download(f"{site}/bert.zip", cache=tmp_path).read_bytes() == CONTENT[::-1]


def test_a_range_beyond_the_end_starts_again(monkeypatch, tmp_path):
    file = File(CONTENT, cuts=(HALF,))
    with serve(file) as site:
        monkeypatch.setattr(module, "ATTEMPTS", 1)
        with pytest.raises(FileNotFoundError):
            download(f"{site}/bert.zip", cache=tmp_path)
        monkeypatch.setattr(module, "ATTEMPTS", 2)
        file.content = CONTENT[: HALF // 2]
        assert download(f"{site}/bert.zip", cache=tmp_path).read_bytes() == CONTENT[: HALF // 2]
    assert file.asked == [None, f"bytes={HALF}-", None]


def test_another_range_than_asked_is_not_appended(tmp_path):
    asked = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.headers["Range"])
        if request.headers["Range"]:
            return send(request, CONTENT[10:], 206, Content_Range=f"bytes 10-{len(CONTENT) - 1}/{len(CONTENT)}")
        send(request, CONTENT, cut=HALF if len(asked) == 1 else None, ETag='"one"')

    with serve(answer) as site:
        assert download(f"{site}/bert.zip", cache=tmp_path).read_bytes() == CONTENT
    assert asked == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_missing_file_is_not_asked_for_twice(code, tmp_path):
    asked = []
    with serve(lambda request: (asked.append(request.path), send(request, code=code))) as site:
        with pytest.raises(FileNotFoundError, match=rf"^{site}/bert.zip cannot be downloaded: it answers {code} \w+"):
            download(f"{site}/bert.zip", cache=tmp_path)
    assert asked == ["/bert.zip"]


def test_a_busy_server_is_asked_a_bounded_number_of_times(tmp_path):
    codes = [503, 429, 200]
    with serve(lambda request: send(request, CONTENT, codes.pop(0))) as site:
        assert download(f"{site}/bert.zip", cache=tmp_path).read_bytes() == CONTENT
    asked = []
    with serve(lambda request: (asked.append(request.path), send(request, code=500))) as site:
        with pytest.raises(FileNotFoundError, match="in 5 attempts: HTTP Error 500"):
            download(f"{site}/bert.zip", cache=tmp_path)
    assert len(asked) == 5


def test_a_silent_server_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "TIMEOUT", 0.05)
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    with (
        serve(lambda request: time.sleep(0.3)) as site,
        pytest.raises(FileNotFoundError, match="2 attempts.*timed out"),
    ):
        download(f"{site}/bert.zip", cache=tmp_path)


def test_no_server(tmp_path):
    with serve(File(CONTENT)) as site:
        pass
    with pytest.raises(FileNotFoundError, match="refused"):
        download(f"{site}/bert.zip", cache=tmp_path)


def test_a_file_of_another_checksum_is_deleted(tmp_path):
    expected = hashlib.sha256(CONTENT).hexdigest()
    with pytest.raises(CheckpointError, match=f"bert.zip is damaged or another file: .* expected {expected}"):
        fetch(File(CONTENT[1:]), tmp_path, sha256=expected)
    assert not list(tmp_path.rglob("bert*"))
    assert fetch(File(CONTENT), tmp_path, sha256=expected.upper()) == CONTENT
