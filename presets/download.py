"""Files from the web, kept in a cache: resumed, retried and checked."""

import hashlib
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit

from filelock import FileLock
from tqdm.auto import tqdm

from .errors import CheckpointError

ATTEMPTS = 5
FIRST_PAUSE = 0.5  # seconds; each further pause is twice as long
TIMEOUT = 30  # seconds without a byte
_CHUNK = 2**20
_WORTH_A_RETRY = (408, 416, 425, 429)


def garden_cache() -> Path:
    """The folder of everything fetched: the environment variable `GARDEN_CACHE`, else `~/.cache/garden`.

    >>> from garden.presets.download import garden_cache
    >>> garden_cache().is_absolute()
    True
    """
    return Path(os.environ.get("GARDEN_CACHE") or "~/.cache/garden").expanduser().absolute()


def short_hash(*parts: object) -> str:
    """16 hexadecimal digits that tell one cache entry from another.

    >>> from garden.presets.download import short_hash
    >>> short_hash("albert_base_v1.tar.gz") == short_hash("albert_base_v2.tar.gz")
    False
    """
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def check_sha256(path: Path, sha256: str) -> None:
    """Raises `CheckpointError` where the file is not the one of that checksum.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from garden.presets.download import check_sha256
    >>> empty = Path(tempfile.mkdtemp()) / "vocab.txt"
    >>> empty.touch()
    >>> check_sha256(empty, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    """
    with open(path, "rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != sha256.lower():
        raise CheckpointError(f"{path} is damaged or another file: its sha256 is {actual}, expected {sha256}")


def download(url: str, sha256: str | None = None, cache: str | os.PathLike | None = None) -> Path:
    """The file behind an http(s) URL, fetched once and kept.

    A broken connection is taken up where it broke, within this call or in a later one, as long as the server still
    holds the same file (RFC 9110, If-Range).

    Args:
        url: where the file is.
        sha256: its checksum; a file with another one is deleted.
        cache: folder to keep it in, instead of `garden_cache()`.

    Raises:
        FileNotFoundError: the server does not have the file, or cannot be reached.
        CheckpointError: the checksum differs.

    ```python
    from garden.presets.download import download
    path = download("https://storage.googleapis.com/bert_models/2020_02_20/uncased_L-2_H-128_A-2.zip")
    ```
    """
    name = re.sub(r"[^\w.-]", "_", unquote(urlsplit(url).path).rpartition("/")[2]).strip(".") or "file"
    folder = Path(cache or garden_cache()) / "downloads" / short_hash(url)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    with FileLock(folder / ".lock"):
        if not target.exists():
            os.replace(_fetched(url, folder / f"{name}.part"), target)
        if sha256:
            _check_or_delete(target, sha256)
    return target


def _check_or_delete(path: Path, sha256: str) -> None:
    try:
        check_sha256(path, sha256)
    except CheckpointError:
        path.unlink()
        raise


def _fetched(url: str, part: Path) -> Path:
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(FIRST_PAUSE * 2 ** (attempt - 1))
        try:
            _continue(url, part)
            return part
        except urllib.error.HTTPError as error:
            failure = error
            if error.code < 500 and error.code not in _WORTH_A_RETRY:
                raise FileNotFoundError(f"{url} cannot be downloaded: it answers {error.code} {error.reason}") from None
            if error.code == 416:
                part.unlink(missing_ok=True)
        except (OSError, http.client.HTTPException) as error:
            failure = error
    raise FileNotFoundError(f"{url} could not be downloaded in {ATTEMPTS} attempts: {failure}") from failure


def _continue(url: str, part: Path) -> None:
    """Fetches what `part` still lacks; beside it lies the validator of the file it was begun from."""
    begun_from = part.with_name(part.name + ".validator")
    headers = {"User-Agent": "keras-garden", "Accept-Encoding": "identity"}
    have = part.stat().st_size if part.exists() and begun_from.exists() else 0
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": begun_from.read_text()}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as response:
        if response.status != 206:
            have = 0
            part.unlink(missing_ok=True)
            _keep(begun_from, _validator(response.headers))
        elif not (response.headers["Content-Range"] or "").startswith(f"bytes {have}-"):
            part.unlink()
            raise ConnectionError("the server resumed at another place than asked")
        total = have + int(response.headers["Content-Length"]) if response.headers["Content-Length"] else None
        _copy(response, part, have, total)
    if total and part.stat().st_size < total:
        raise ConnectionError(f"the connection broke after {part.stat().st_size:,} of {total:,} bytes")
    begun_from.unlink(missing_ok=True)


def _validator(headers: http.client.HTTPMessage) -> str | None:
    etag = headers["ETag"]
    return etag if etag and not etag.startswith("W/") else headers["Last-Modified"]


def _keep(path: Path, text: str | None) -> None:
    if text:
        path.write_text(text)
    else:
        path.unlink(missing_ok=True)


def _copy(response: http.client.HTTPResponse, part: Path, have: int, total: int | None) -> None:
    bar = tqdm(desc=part.stem, total=total, initial=have, unit="B", unit_scale=True, delay=1, mininterval=0.5)
    with open(part, "ab" if have else "wb") as file, bar:
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            bar.update(len(chunk))
