"""The watchdog as a process of its own, in front of a small server; `systemctl` is a stand-in with notes."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine_host.deploy import watchdog

PROGRAM = Path(watchdog.__file__).with_name("watchdog_program.py")
_SYSTEMCTL = """#!/bin/sh
echo "$@" >>{notes}
case "$*" in
    *show*) cat {state} ;;
esac
"""


@dataclass
class Engine:
    """What the server in front of the watchdog does."""

    health: int = 200
    answers: bool = True
    tokens: int = 100
    body: dict[str, object] = field(default_factory=lambda: {"choices": [{"text": "a"}]})
    keys: list[str] = field(default_factory=list)
    port: int = 0


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A server on a port of its own."""
    now = Engine()
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def _send(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._send(200, f'vllm:generation_tokens_total{{engine="0"}} {now.tokens}.0\n')
            else:
                self._send(now.health, "")

        def do_POST(self) -> None:
            now.keys.append(self.headers.get("Authorization", ""))
            self.rfile.read(int(self.headers["Content-Length"]))
            if not now.answers:
                released.wait(20)
            else:
                self._send(200, json.dumps(now.body))

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    now.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield now
    released.set()
    server.shutdown()
    server.server_close()
    thread.join()


class Watched:
    """A unit, and checks of it."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder, self.engine = folder, engine
        self.notes, self.state = folder / "notes", folder / "state"
        self.notes.touch()
        program = folder / "systemctl"
        program.write_text(_SYSTEMCTL.format(notes=self.notes, state=self.state), encoding="utf-8")
        program.chmod(0o755)
        self.active()

    def active(self, state: str = "active", seconds_ago: float = 5000) -> None:
        """What the service manager says of the unit."""
        since = round((time.clock_gettime(time.CLOCK_MONOTONIC) - seconds_ago) * 1e6)
        text = f"ActiveState={state}\nActiveEnterTimestampMonotonic={since}\n"
        self.state.write_text(text, encoding="utf-8")

    def check(self, failures: int = 2, **variables: str) -> str:
        """One check; what it said."""
        words = [
            *(sys.executable, str(PROGRAM), "--unit", "sndr-a.service"),
            *("--address", f"http://127.0.0.1:{self.engine.port}", "--health", "/health"),
            *("--path", "/v1/completions", "--body", '{"prompt": "1"}', "--key-variable", "VLLM_API_KEY"),
            *("--start-seconds", "600", "--answer-seconds", "1", "--failures", str(failures)),
        ]
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        variables = {"PATH": path, "XDG_RUNTIME_DIR": str(self.folder), **variables}
        ended = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=60, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout

    @property
    def restarts(self) -> int:
        """How often the unit was restarted."""
        return self.notes.read_text(encoding="utf-8").count("restart sndr-a.service")


@pytest.fixture
def watched(tmp_path: Path, engine: Engine) -> Watched:
    """A unit that has been running for long."""
    return Watched(tmp_path, engine)


def test_an_engine_that_answers_is_left_alone(watched: Watched) -> None:
    assert watched.check() == watched.check() == ""
    assert watched.restarts == 0


def test_an_engine_that_hangs_is_restarted(watched: Watched) -> None:
    watched.engine.answers = False
    assert "(1 of 2)" in watched.check()
    assert watched.restarts == 0
    assert "hangs and is restarted" in watched.check()
    assert watched.restarts == 1
    # It begins to count anew.
    assert "(1 of 2)" in watched.check()


def test_one_answer_between_makes_good(watched: Watched) -> None:
    for answers in (False, True, False):
        watched.engine.answers = answers
        watched.check()
    assert watched.restarts == 0


def test_an_engine_that_computes_is_busy_and_not_hung(watched: Watched) -> None:
    watched.engine.answers = False
    watched.check(failures=2)
    for _ in range(3):
        watched.engine.tokens += 50
        assert "is busy" in watched.check(failures=2)
    assert watched.restarts == 0


def test_empty_answers_and_bad_health_count(watched: Watched) -> None:
    watched.engine.body = {"choices": []}
    assert "its answer is empty" in watched.check(failures=3)
    watched.engine.health = 503
    assert "HTTP 503" in watched.check(failures=3)


def test_an_engine_that_starts_is_waited_for(watched: Watched) -> None:
    watched.active(seconds_ago=100)
    watched.engine.health = 503
    for _ in range(3):
        assert "is still starting" in watched.check()
    assert watched.restarts == 0


def test_a_unit_that_does_not_run_is_not_asked(watched: Watched) -> None:
    for state in ("inactive", "failed", "activating"):
        watched.active(state)
        watched.engine.health = 503
        assert watched.check() == ""
    assert watched.restarts == 0


def test_failures_of_an_earlier_run_do_not_count(watched: Watched) -> None:
    watched.engine.answers = False
    watched.check()
    watched.active(seconds_ago=4000)
    assert "(1 of 2)" in watched.check()


def test_the_key_comes_from_the_environment(watched: Watched) -> None:
    watched.check(VLLM_API_KEY="secret")
    watched.check()
    assert watched.engine.keys == ["Bearer secret", ""]
    watched.check(VLLM_API_KEY="secret\n")
    assert watched.engine.keys[2:] == ["Bearer secret"]
    assert "secret" not in watched.check(VLLM_API_KEY="secret\nx")
