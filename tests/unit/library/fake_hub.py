"""A FAKE of huggingface.co on a real local socket: it answers with what a test gave it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub(ThreadingHTTPServer):
    """Models by name: a config with sizes of files, or a status with the hub's error code."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.models: dict[str, tuple[dict[str, Any], dict[str, int]]] = {}
        self.errors: dict[str, tuple[int, str]] = {}
        self.bodies: dict[str, bytes] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.redirects: dict[str, str] = {}
        self.requests: list[tuple[str, str]] = []

    @property
    def endpoint(self) -> str:
        """Its address, for HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for."""
        return [path for path, _token in self.requests]


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        hub = cast(FakeHub, self.server)
        hub.requests.append((self.path, self.headers.get("authorization", "")))
        words = self.path.partition("?")[0].strip("/").split("/")
        name = "/".join(words[2:4] if words[0] == "api" else words[:2])
        if name in hub.errors:
            status, code = hub.errors[name]
            self._send(status, b"no", {"X-Error-Code": code} if code else {})
        elif name in hub.redirects:
            self._send(302, b"x" * 100_000, {"Location": hub.redirects[name]})
        elif name in hub.bodies:
            self._send(200, hub.bodies[name], hub.headers.get(name, {}))
        elif name not in hub.models:
            self._send(401, b"no", {"X-Error-Code": "RepoNotFound"})
        else:
            config, sizes = hub.models[name]
            files = [{"rfilename": file, "size": size} for file, size in sizes.items()]
            body = {"sha": COMMIT, "siblings": files} if words[0] == "api" else config
            self._send(200, json.dumps(body).encode(), {"X-Repo-Commit": COMMIT})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A fake hub that listens."""
    hub = FakeHub()
    thread = threading.Thread(target=hub.serve_forever, args=(0.02,), name="fake hub")
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()
