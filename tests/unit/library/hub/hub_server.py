"""A FAKE hub that serves files on real local sockets: its API, its redirects to another host, its faults."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 100
"""Bytes from which on a file has a SHA-256, as one in LFS has."""


def git_id(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


@dataclass
class Served:
    """A repository: its files, the rows of its list, and what goes wrong with it."""

    files: dict[str, bytes]
    commit: str = COMMIT
    gated: bool = False
    more: dict[str, Any] = field(default_factory=dict)
    rows: list[Any] | None = None
    sent: dict[str, bytes] = field(default_factory=dict)
    breaks: list[int] = field(default_factory=list)
    status: int = 0
    code: str = ""
    ranges: bool = True
    commit_of_files: str = ""

    def listed(self) -> dict[str, Any]:
        rows = self.rows if self.rows is not None else [_row(*one) for one in self.files.items()]
        return {"sha": self.commit, "gated": self.gated and "auto", "siblings": rows, **self.more}


def _row(name: str, content: bytes) -> dict[str, Any]:
    row: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": git_id(content)}
    if len(content) >= LARGE:
        row["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return row


class HubServer(ThreadingHTTPServer):
    """The API and, as another origin, what it redirects to."""

    daemon_threads = True

    def __init__(self, files_of: "HubServer | None" = None) -> None:
        super().__init__(("127.0.0.1", 0), _Files if files_of is not None else _Api)
        self.repositories: dict[str, Served] = {} if files_of is None else files_of.repositories
        self.elsewhere: HubServer | None = None
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.going: threading.Event = threading.Event()
        self.waiting: threading.Event = threading.Event()
        self.trickles = False
        self.found: Any = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _headers in self.requests]


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    @property
    def hub(self) -> HubServer:
        return cast(HubServer, self.server)

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def noted(self) -> None:
        self.hub.requests.append((self.path, {name.lower(): text for name, text in self.headers.items()}))


class _Api(_Handler):
    def do_GET(self) -> None:
        self.noted()
        parts = urlsplit(self.path)
        words = unquote(parts.path).strip("/").split("/")
        if words[:2] == ["api", "models"] and len(words) == 2:
            asked = parse_qs(parts.query).get("search", [""])[0]
            rows = [
                {"id": name, "downloads": 5, "likes": 1, "tags": ["gguf"], "lastModified": "2026-01-02T03"}
                for name in self.hub.repositories
                if asked.lower() in name.lower()
            ]
            self.answer(200, json.dumps(rows if self.hub.found is None else self.hub.found).encode())
            return
        name = "/".join(words[2:4] if words[0] == "api" else words[:2])
        one = self.hub.repositories.get(name)
        if one is None:
            self.answer(401, b"no", {"X-Error-Code": "RepoNotFound"})
        elif one.status:
            self.answer(one.status, b"no", {"X-Error-Code": one.code} if one.code else {"Retry-After": "7"})
        elif words[0] == "api":
            if words[5] not in {"main", one.commit}:
                self.answer(404, b"no", {"X-Error-Code": "RevisionNotFound"})
            else:
                self.answer(200, json.dumps(one.listed()).encode())
        else:
            assert self.hub.elsewhere is not None
            there = f"{self.hub.elsewhere.endpoint}{self.path}?signature=secret"
            self.answer(302, b"x", {"Location": there, "X-Repo-Commit": one.commit_of_files or one.commit})


class _Files(_Handler):
    def do_GET(self) -> None:
        self.noted()
        words = unquote(urlsplit(self.path).path).strip("/").split("/")
        one = self.hub.repositories["/".join(words[:2])]
        name = "/".join(words[4:])
        content = one.sent.get(name, one.files.get(name, b""))
        begin = 0
        if one.ranges and (asked := self.headers.get("Range")):
            begin = int(asked.removeprefix("bytes=").rstrip("-"))
        body = content[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if one.breaks:
            self.wfile.write(body[: one.breaks.pop(0)])
            self.wfile.flush()
            if self.hub.trickles:
                self.hub.waiting.set()
                self.hub.going.wait(30)
            self.close_connection = True
            return
        self.wfile.write(body)


@contextmanager
def hub_server() -> Iterator[HubServer]:
    """A FAKE hub that listens, with the other host that its files come from."""
    api = HubServer()
    api.elsewhere = HubServer(api)
    threads = [
        threading.Thread(target=one.serve_forever, args=(0.02,), name="FAKE hub")
        for one in (api, api.elsewhere)
    ]
    for thread in threads:
        thread.start()
    try:
        yield api
    finally:
        for one in (api, api.elsewhere):
            one.going.set()
            one.shutdown()
        for thread in threads:
            thread.join()
        for one in (api, api.elsewhere):
            one.server_close()
