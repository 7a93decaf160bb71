"""A real host in a process of its own with a real endpoint; only the engine behind it is a FAKE."""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from engine_host.client.sync import ControlClient
from engine_host.core.package_data import resources
from engine_host.core.paths import Folders
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.launch.plans import LaunchRequest, ServerChoice, StartRequest
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from tests.waiting import pause

ROOT = Path(__file__).resolve().parents[3]
FAKE_SERVER = Path(__file__).with_name("fake_llama_server.py")
MODEL = next((resources() / "models").rglob("*.gguf"))
_PATIENCE = 60.0


@dataclass(frozen=True)
class Look:
    """What the host holds at a moment: bytes of memory, descriptors, threads, tasks of its loop.

    `kept` are the bytes of the newest events and lines, which are kept on purpose up to a bound.
    """

    memory: int
    kept: int
    descriptors: int
    threads: int
    tasks: int


class WatchedHost:
    """`sndr serve` with a FAKE llama-server, and what it holds."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        """`root` is the checkout whose host it is."""
        self.folders = Folders.resolve()
        self._looks = folder / "look.json"
        self._server = folder / "llama-server"
        command = shlex.join([sys.executable, "-I", str(FAKE_SERVER)])
        self._server.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        self._server.chmod(0o755)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        module = [sys.executable, "-m", "tests.hostile.rig.watched_host", str(self._looks)]
        self.process = subprocess.Popen(
            [*module, "serve", "--json", "--port", str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=root,
        )
        self._watched = psutil.Process(self.process.pid)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert b'"serving"' in said, said + self.process.stdout.read()
        self.client = ControlClient(self.folders)
        self.client.connect()

    @property
    def alive(self) -> bool:
        """Tell whether the host still runs."""
        return self.process.poll() is None

    def start_engine(self, streams: int = 8, waiting: int = 64) -> Engine:
        """Start the FAKE engine in place of what runs, and wait until it is ready."""
        values = {"engine.own_server": str(self._server), "endpoint.queue_limit": waiting}
        self.client.call(ops.CHANGE_SETTINGS, SettingsChange(values=values))
        request = LaunchRequest(
            model=str(MODEL), server=ServerChoice.OWN, overrides=Overrides(context=256, streams=streams)
        )
        plan = self.client.call(ops.PLAN, request)
        engine = self.client.call(ops.START, StartRequest(plan=plan.id))
        return self.wait_for(engine.id, EngineState.READY, EngineState.BUSY)

    def wait_for(self, engine_id: str, *states: EngineState) -> Engine:
        """Wait until an engine is in one of these states."""
        began = time.monotonic()
        while (engine := self.client.call(ops.ENGINE, id=engine_id)).state not in states:
            assert engine.state is not EngineState.FAILED, engine.problem
            assert time.monotonic() < began + _PATIENCE, f"{engine.state} instead of one of {states}"
            pause(began)
        return engine

    def look(self) -> Look:
        """Read what the host holds now."""
        found = self.inside(signal.SIGUSR2)
        with self._watched.oneshot():
            memory = self._watched.memory_info().rss
            held = self._watched.num_fds(), self._watched.num_threads()
        return Look(memory, int(found["kept"]), *held, int(found["tasks"]))

    def inside(self, number: signal.Signals = signal.SIGUSR1) -> dict[str, Any]:
        """Ask the host for its tasks and its objects by kind (SIGUSR1), or for the tasks alone (SIGUSR2)."""
        self._looks.unlink(missing_ok=True)
        self.process.send_signal(number)
        end = time.monotonic() + _PATIENCE
        while not self._looks.exists():
            assert self.alive, "the host ended"
            assert time.monotonic() < end, "the host does not answer a signal"
            time.sleep(0.005)
        found = json.loads(self._looks.read_bytes())
        assert isinstance(found, dict)
        return found

    def log(self) -> str:
        """Return all of host.log."""
        return (self.folders.logs / "host.log").read_text(encoding="utf-8", errors="replace")

    def end(self) -> int:
        """End the host in order; its exit code."""
        self.client.close()
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            return self.process.wait(30)
        finally:
            if self.alive:
                self.process.kill()
            assert self.process.stdout is not None
            self.process.stdout.close()


@contextlib.contextmanager
def watched_host(folder: Path) -> Iterator[WatchedHost]:
    """A host that serves, ended in order."""
    host = WatchedHost(folder)
    try:
        yield host
    finally:
        code = host.end()
    assert code == 0, os.strerror(code) if code > 0 else f"signal {-code}"
