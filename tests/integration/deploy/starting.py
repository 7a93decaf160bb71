"""Starts that were written down for a shell, carried out for real."""

import contextlib
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.integration.host.conftest import free_port, wait_for
from tests.integration.host_process import environment, sndr


def written(preset: str, folder: Path, *options: str) -> Path:
    """A preset written down for a shell of this machine, by the command that a person gives."""
    ended = sndr("launch", preset, "--render", "shell", "--output", str(folder), *options)
    assert ended.code == 0, (ended.out, ended.err)
    return folder / "start.sh"


class Script:
    """A start script that runs; its output is in a file."""

    def __init__(self, script: Path, cache: Path, **changes: str) -> None:
        self.script = script
        self.port = int(changes.get("SNDR_PORT") or free_port())
        self.log = cache / "output.txt"
        cache.mkdir(parents=True, exist_ok=True)
        self.variables = environment(
            **{
                "SNDR_PORT": str(self.port),
                "SNDR_DEPLOY_CACHE": str(cache),
                "HOME": str(cache),
                **changes,
            }
        )
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [script],
                env=self.variables,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """Everything so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def until_said(self, text: str, times: int = 1, seconds: float = 60) -> None:
        """Wait for a text; the end of the script ends the wait."""

        def look() -> bool:
            assert self.process.poll() is None or self.said.count(text) >= times, self.said[-3000:]
            return self.said.count(text) >= times

        wait_for(look, f"{text!r}: {self.said[-2000:]}", seconds)

    def health(self) -> int:
        """What its own question after its health ends with."""
        return subprocess.run(
            [self.script, "health"], env=self.variables, stderr=subprocess.DEVNULL, check=False
        ).returncode

    def ask(self, path: str, body: dict[str, Any] | None = None, key: str = "") -> dict[str, Any]:
        """An answer of the engine. Raises urllib.error.HTTPError."""
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)
        assert isinstance(found, dict)
        return found

    def engine(self) -> psutil.Process:
        """The engine's first process: the leader of its own group."""
        found = [
            one
            for one in psutil.Process(self.process.pid).children(recursive=True)
            if os.getpgid(one.pid) == one.pid
        ]
        assert len(found) == 1, found
        return found[0]

    def end(self, number: signal.Signals) -> int:
        """Signal the script as a service manager or a terminal does, and wait for its end."""
        if number is signal.SIGINT:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        return self.process.wait(90)


@contextlib.contextmanager
def running(script: Path, cache: Path, **changes: str) -> Iterator[Script]:
    """A script that is ended by force when the test did not end it."""
    started = Script(script, cache, **changes)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            for one in psutil.Process(started.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            started.process.kill()
            started.process.wait(20)


def refused(call: Any) -> int:
    """The HTTP status of a request that is refused."""
    try:
        call()
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    raise AssertionError("it was answered")
