"""A control API of canned answers on a real socket, for the tests of its clients.

Answers and requests are held to the table of operations: a test in which one could not be fails at its end.
"""

import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from engine_host import __version__
from engine_host.core.paths import Folders
from engine_host.protocol.engines import EngineState
from tests.plan_samples import engine_of, plain_plan
from tests.wire_contract import WireContract

TOKEN = "the-token"
Answer = tuple[int, Any]
VERSION = {"major": 1, "minor": 0, "program": __version__, "run_id": "r", "seq": 0}


class FakeHost(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers by method and path; a list is sent as server-sent events, a callable is asked.

    `lies` lets a test send what no host of this version sends. Its clock, which is FAKE, is `ahead` seconds
    ahead of the real one.
    """

    daemon_threads = True
    block_on_close = True

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        folders.make_run_folder()
        folders.token.write_text(TOKEN, encoding="utf-8")
        super().__init__(str(folders.socket), _Handler)
        self.answers: dict[str, Any] = {
            "GET /v1/version": (200, VERSION),
            "GET /v1/on-demand": (200, {"seq": 0, "models": []}),
            "GET /v1/endpoint/models": (200, {"seq": 0, "models": []}),
            "POST /v1/engines/refused": (200, REFUSED.model_dump(mode="json")),
        }
        self.contract = WireContract()
        self.lies = False
        self.ahead = 0.0
        self.faults: list[str] = []
        self.received: list[tuple[str, dict[str, str], Any]] = []

    def note(self, fault: str) -> None:
        """Keep a fault for the end of the test."""
        if fault and not self.lies:
            self.faults.append(fault)


REFUSED = engine_of(plain_plan(), EngineState.FAILED)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        """A local socket's peer has no address."""
        return "local"

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the date of an answer, by the clock of this host."""
        told = time.time() + cast(FakeHost, self.server).ahead if timestamp is None else timestamp
        return super().date_time_string(told)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._do()

    do_POST = do_PUT = do_DELETE = do_OPTIONS = do_GET  # noqa: N815  # http.server calls them so.

    def _do(self) -> None:
        host = cast(FakeHost, self.server)
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        path = self.path.split("?")[0]
        host.received.append(
            (f"{self.command} {self.path}", {k.lower(): v for k, v in self.headers.items()}, body)
        )
        operation = host.contract.operation(self.command, path)
        if operation is not None:
            query = dict(parse_qsl(urlsplit(self.path).query))
            host.note(host.contract.request_fault(operation, query, body))
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            self._json(401, {"error": {"reason": "unauthorized", "message": "Wrong token."}})
            return
        found = host.answers.get(f"{self.command} {path}")
        if callable(found):
            found = cast(Callable[[], Any], found)()
        if found is None:
            missing = {"error": {"reason": "not_found", "message": f"No {path}."}}
            if operation is not None:
                host.note(host.contract.answer_fault(operation, 404, missing))
            self._json(404, missing)
        elif isinstance(found, list):
            self._events(found)
        else:
            status, answer = found
            if operation is not None and not isinstance(answer, bytes):
                host.note(host.contract.answer_fault(operation, status, answer))
            self._json(status, answer)

    def _json(self, status: int, answer: Any) -> None:
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _events(self, lines: list[Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for line in lines:
            text = line if isinstance(line, str) else json.dumps(line)
            self.wfile.write(f"data: {text}\n\n".encode())
            self.wfile.flush()


@contextmanager
def fake_host(home: Path) -> Iterator[FakeHost]:
    """A fake host in the folders of a test."""
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    host = FakeHost(folders)
    thread = threading.Thread(target=host.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield host
        assert not host.faults, "\n".join(dict.fromkeys(host.faults))
    finally:
        host.shutdown()
        host.server_close()
        thread.join()
        folders.socket.unlink(missing_ok=True)
