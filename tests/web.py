"""Small web servers on this machine, for the tests of everything that downloads."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serve(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The address of a server that lives as long as the block and hands every request to `answer`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer(self)

        do_HEAD = do_POST = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send(request: BaseHTTPRequestHandler, body: bytes = b"", code: int = 200, cut: int | None = None, **headers: str):
    """Answers a request; with `cut`, the connection breaks after so many bytes."""
    request.send_response(code)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body[:cut])


def send_json(request: BaseHTTPRequestHandler, value: object) -> None:
    send(request, json.dumps(value).encode(), Content_Type="application/json")


class File:
    """One file behind every path; it understands Range and If-Range and writes down what it was asked.

    `cuts` holds, for each request in turn, the number of bytes after which the connection breaks.
    """

    def __init__(self, content: bytes, cuts: tuple[int, ...] = (), ranges: bool = True, validator: str = '"one"'):
        self.content, self.cuts, self.ranges, self.validator = content, list(cuts), ranges, validator
        self.asked: list[str | None] = []

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers["Range"]
        self.asked.append(wanted)
        cut = self.cuts.pop(0) if self.cuts else None
        validator = {"ETag": self.validator} if self.validator else {}
        if not (wanted and self.ranges and request.headers["If-Range"] == self.validator):
            return send(request, self.content, cut=cut, **validator)
        start, size = int(wanted.removeprefix("bytes=").rstrip("-")), len(self.content)
        if start >= size:
            return send(request, code=416, Content_Range=f"bytes */{size}")
        where = f"bytes {start}-{size - 1}/{size}"
        send(request, self.content[start:], 206, cut, Content_Range=where, **validator)


class HuggingFace:
    """The three endpoints of the Hugging Face hub that its client needs for one model repository."""

    COMMIT = "c0ffee" + 34 * "0"

    def __init__(self, name: str, files: dict[str, bytes]):
        self.name, self.files = name, files
        self.fetched: list[str] = []

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        if path in (f"/api/models/{self.name}/revision/main", f"/api/models/{self.name}"):
            send_json(
                request, {"id": self.name, "sha": self.COMMIT, "siblings": [{"rfilename": f} for f in self.files]}
            )
        elif path == f"/api/models/{self.name}/tree/{self.COMMIT}":
            send_json(request, [self._entry(file) for file in self.files])
        elif path.startswith(f"/{self.name}/resolve/{self.COMMIT}/"):
            self._file(request, path.removeprefix(f"/{self.name}/resolve/{self.COMMIT}/"))
        else:
            known = path.startswith(f"/api/models/{self.name}/")
            send(request, b"{}", 404, X_Error_Code="RevisionNotFound" if known else "RepoNotFound")

    def _entry(self, file: str) -> dict[str, object]:
        content = self.files[file]
        return {"type": "file", "path": file, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}

    def _file(self, request: BaseHTTPRequestHandler, file: str) -> None:
        if request.command == "GET":
            self.fetched.append(file)
        etag = hashlib.sha1(self.files[file]).hexdigest()
        send(request, self.files[file], ETag=f'"{etag}"', X_Repo_Commit=self.COMMIT)


class Kaggle:
    """The three calls of the Kaggle API that its client needs for one model."""

    def __init__(self, files: dict[str, bytes]):
        self.files = files

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        asked = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        call = request.path.rpartition("/")[2]
        if asked["modelSlug"] != "bert":
            send(request, b'{"code": 404, "message": "not found"}', 404, Content_Type="application/json")
        elif call == "GetModelInstance":
            send_json(request, {"versionNumber": 3})
        elif call == "ListModelInstanceVersionFiles":
            send_json(request, {"files": [{"name": name} for name in self.files]})
        elif call == "DownloadModelInstanceVersion":
            send(request, self.files[asked["path"]], Content_Type="application/octet-stream")
