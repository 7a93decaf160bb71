"""Sessions of one user: cron, `su -` and ssh may have another run folder than the desktop, not other data."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.client.sync import connected
from engine_host.core.paths import Folders
from engine_host.protocol.engines import EngineState, StopEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.operations import table as ops
from sndr_gui.host.process import HostProcess
from tests.integration.host.conftest import RunningHost, alive

NewHost = Callable[..., RunningHost]
Enter = Callable[[str], None]


@pytest.fixture
def enter(home: Path, monkeypatch: pytest.MonkeyPatch) -> Enter:
    """Goes on in the session of this name."""
    monkeypatch.setenv("SNDR_HOME", "")
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))

    def enter(session: str) -> None:
        (home / session).mkdir(mode=0o700, exist_ok=True)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / session))
        assert Folders.resolve().run == home / session / "sndr"

    enter("desktop")
    return enter


def sndr(*words: str) -> "subprocess.CompletedProcess[str]":
    """A command of this session."""
    command = [sys.executable, "-m", "engine_host", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


def test_the_host_of_the_other_session_is_used_and_its_engine_left_alone(
    enter: Enter, new_host: NewHost
) -> None:
    host = new_host().connect()
    engine = host.start()
    enter("cron")

    listed = sndr("presets", "list")

    assert listed.returncode == 0, listed.stderr
    assert json.loads(sndr("status", "--json").stdout)["host"]["pid"] == host.process.pid
    assert not Folders.resolve().run.exists(), "no host was started here"
    address = asyncio.run(HostProcess(Folders.resolve(), ["/bin/false"]).find_or_start())
    assert (address.socket, address.owned) == (str(host.folders.socket), False)

    second = new_host()
    assert second.process.wait(30) == 6
    assert Reason.SECOND_INSTANCE.value in second.first_line
    assert str(host.process.pid) in second.first_line
    assert str(host.folders.run) in second.first_line

    assert host.engine(engine.id).state is EngineState.READY
    ended = sndr("quit")
    assert ended.returncode == 0, ended.stderr
    assert host.process.wait(20) == 0


def test_a_host_that_ends_in_one_session_is_waited_for_in_the_other(enter: Enter, new_host: NewHost) -> None:
    first = new_host().connect()
    first.start()
    first.client.call(ops.QUIT_HOST)
    enter("cron")
    with_host = sndr("models")
    assert with_host.returncode == 0, with_host.stderr
    assert first.process.wait(20) == 0


def test_a_kept_engine_is_found_where_it_listens(enter: Enter, new_host: NewHost) -> None:
    host = new_host().connect()
    engine = host.start(keep=True)
    assert engine.pid is not None
    assert host.end() == 0
    enter("cron")

    again = new_host().connect()

    found = again.until(engine.id, EngineState.READY)
    assert (found.adopted, found.pid) == (True, engine.pid)
    again.client.call(ops.STOP, StopEngine(), id=engine.id)
    again.until(engine.id, EngineState.UNLOADED)
    assert not alive(engine.pid)
    assert not list((host.folders.run).glob("plan-*"))
    with connected() as client:
        assert client.call(ops.HOST).pid == again.process.pid
