"""A real host in a process of its own, with the real llama.cpp and the bundled model."""

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from engine_host.client.sync import ControlClient
from engine_host.core.package_data import resources
from engine_host.core.paths import Folders
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.launch.plans import LaunchRequest, StartRequest
from engine_host.protocol.operations import table as ops
from tests.conftest import processes_of
from tests.waiting import pause

T = TypeVar("T")
PATIENCE = 60.0
DEMO = next((resources() / "models").rglob("*.gguf"))
SMALL = Overrides(context=1024, streams=2)


def free_port() -> int:
    """A TCP port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: Callable[[], T | None], why: str, seconds: float = PATIENCE) -> T:
    """The first answer that is neither None nor False."""
    began = time.monotonic()
    while True:
        found = what()
        if found is not None and found is not False:
            return found
        assert time.monotonic() < began + seconds, f"waited {seconds:.0f} s in vain: {why}"
        pause(began)


class RunningHost:
    """`sndr serve` as a process, and a client of it."""

    def __init__(self, *arguments: str, program: Sequence[str] = ("-m", "engine_host")) -> None:
        self.folders = Folders.resolve()
        self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, *program, "serve", "--json", "--port", str(self.port), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline().decode()
        self.client = ControlClient(self.folders)

    @property
    def serving(self) -> bool:
        """Whether it came up."""
        with contextlib.suppress(ValueError):
            return bool(json.loads(self.first_line).get("event") == "serving")
        return False

    def connect(self) -> "RunningHost":
        """Reach it."""
        assert self.serving, self.first_line
        self.client.connect()
        return self

    def start(self, *, keep: bool = False, wait: bool = True, overrides: Overrides = SMALL) -> Engine:
        """Start the bundled model."""
        request = LaunchRequest(model=str(DEMO), overrides=overrides, keep=keep)
        plan = self.client.call(ops.PLAN, request)
        engine = self.client.call(ops.START, StartRequest(plan=plan.id))
        return self.until(engine.id, EngineState.READY) if wait else engine

    def launch(self, request: LaunchRequest, seconds: float = PATIENCE) -> Engine:
        """Plan, start, and wait until it is ready."""
        plan = self.client.call(ops.PLAN, request)
        engine = self.client.call(ops.START, StartRequest(plan=plan.id))
        return self.until(engine.id, EngineState.READY, seconds=seconds)

    def engine(self, engine_id: str) -> Engine:
        """One engine now."""
        return self.client.call(ops.ENGINE, id=engine_id)

    def until(self, engine_id: str, *states: EngineState, seconds: float = PATIENCE) -> Engine:
        """Wait for one of these states; a failure that was not waited for ends the wait."""

        def look() -> Engine | None:
            engine = self.engine(engine_id)
            if engine.state is EngineState.FAILED and EngineState.FAILED not in states:
                raise AssertionError((engine.problem, engine.last_lines[-60:]))
            return engine if engine.state in states else None

        return wait_for(look, f"engine in {states}", seconds)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal the host and wait for its end."""
        self.client.close()
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        try:
            return self.process.wait(20)
        finally:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.close()
            self.process.stdout.close()


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def home_left_empty(prefix: str) -> Iterator[Path]:
    """A folder with a short name, for sockets; no process may be at work in it in the end."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    yield folder
    # The writer of an engine's log ends by itself, after the engine's last line.
    end = time.monotonic() + PATIENCE
    while (left := processes_of(folder)) and time.monotonic() < end:
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)
    assert not left


def files_below(folder: Path) -> list[str]:
    """Every file and socket below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def trained_for_more(content: bytes) -> bytes:
    """The bundled model's file, saying that it was trained for 8 million tokens."""
    key = b".context_length"
    value = content.index(key) + len(key) + 4
    return content[:value] + struct.pack("<I", 8_000_000) + content[value + 4 :]


@pytest.fixture
def new_host() -> Iterator[Callable[..., RunningHost]]:
    """Makes hosts; each is ended with the test."""
    hosts: list[RunningHost] = []

    def make(*arguments: str, program: Sequence[str] = ("-m", "engine_host")) -> RunningHost:
        hosts.append(RunningHost(*arguments, program=program))
        return hosts[-1]

    yield make
    for one in hosts:
        one.end(signal.SIGKILL if one.process.poll() is None else signal.SIGTERM)


@pytest.fixture
def host(new_host: Callable[..., RunningHost]) -> RunningHost:
    """A host that serves."""
    return new_host().connect()
