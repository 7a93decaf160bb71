"""Engines live and die with their host, however it ends, unless they are kept."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from engine_host.core.paths import Folders
from engine_host.protocol.base import Severity
from engine_host.protocol.engines import EngineState, StopEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import EngineStateEvent
from engine_host.protocol.host import HostStay
from engine_host.protocol.jobs import JobState
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.logs import LogQuery
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import DEMO, SMALL, RunningHost, alive, files_below, wait_for

NewHost = Callable[..., RunningHost]


def reapers_of(host: RunningHost) -> list[int]:
    """The process ids of a host's reapers."""
    found = []
    for child in psutil.Process(host.process.pid).children():
        with contextlib.suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            if "reaper_main.py" in " ".join(child.cmdline()):
                found.append(child.pid)
    return found


def test_start_is_verified_and_stop_leaves_nothing(host: RunningHost) -> None:
    engine = host.start()
    assert engine.verified is not None
    assert engine.verified.model_listed
    assert engine.verified.token_generated
    assert engine.stages[0].name == "Start process"
    assert all(stage.ended_at is not None for stage in engine.stages)
    assert engine.buffers, "the engine's own buffer sizes are shown"
    assert engine.pid is not None

    host.client.call(ops.STOP, StopEngine(), id=engine.id)
    ended = host.until(engine.id, EngineState.UNLOADED)

    assert not alive(engine.pid)
    assert ended.pid is None
    assert not [name for name in files_below(host.folders.run) if name.startswith("plan-")]


def test_an_engine_listens_on_no_port(host: RunningHost) -> None:
    engine = host.start()
    assert engine.pid is not None
    of_engine = psutil.Process(engine.pid)
    processes = [of_engine, *of_engine.children(recursive=True)]
    assert [line for one in processes for line in one.net_connections("inet")] == []
    assert [line.laddr.ip for line in psutil.Process(host.process.pid).net_connections("inet")] == [
        "127.0.0.1"
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_end_of_the_host_ends_its_engine(host: RunningHost, number: signal.Signals) -> None:
    engine = host.start()
    assert engine.pid is not None

    code = host.end(number)

    assert code == (0 if number is not signal.SIGKILL else -signal.SIGKILL)
    wait_for(lambda: not alive(engine.pid or 0), "the engine's end", 10)
    wait_for(lambda: not host.folders.run.exists() or not files_below(host.folders.run), "empty folder", 10)


def test_killed_together_with_its_reaper_the_kernel_ends_the_engine(host: RunningHost) -> None:
    engine = host.start()
    assert engine.pid is not None
    (reaper,) = reapers_of(host)

    # A host that is stopped cannot start another reaper.
    host.process.send_signal(signal.SIGSTOP)
    os.kill(reaper, signal.SIGKILL)
    host.end(signal.SIGKILL)

    wait_for(lambda: not alive(engine.pid or 0), "the engine's end", 10)
    for name in ("control.sock", "token", "host.lock"):
        (host.folders.run / name).unlink(missing_ok=True)
    for path in host.folders.run.glob("plan-*.sock"):
        path.unlink()


def test_a_killed_reaper_is_replaced_and_cleans_up(host: RunningHost) -> None:
    engine = host.start()
    (first,) = reapers_of(host)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: any(pid != first for pid in reapers_of(host)), "another reaper", 10)

    host.end(signal.SIGKILL)

    wait_for(lambda: not alive(engine.pid or 0), "the engine's end", 10)
    wait_for(lambda: not host.folders.run.exists() or not files_below(host.folders.run), "empty folder", 10)


def test_what_the_host_writes_is_for_its_user_alone(home: Path, new_host: NewHost) -> None:
    (home / "data").mkdir(mode=0o755)
    (home / "data" / "sndr.sqlite").touch(mode=0o644)
    host = new_host().connect()
    assert host.end(signal.SIGTERM) == 0
    written = [path for path in host.folders.data.rglob("*") if path.is_file()]
    assert written
    for path in written:
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_host_starts_over_what_a_killed_one_left(host: RunningHost, new_host: NewHost) -> None:
    (reaper,) = reapers_of(host)
    host.process.send_signal(signal.SIGSTOP)
    os.kill(reaper, signal.SIGKILL)
    host.end(signal.SIGKILL)
    assert "control.sock" in files_below(host.folders.run)

    again = new_host().connect()

    assert again.client.call(ops.ENGINES).engines == ()


def test_owner_that_goes_takes_the_host_along(new_host: NewHost) -> None:
    host = new_host("--owner-stdin").connect()
    engine = host.start()
    assert engine.pid is not None
    assert host.process.stdin is not None

    host.process.stdin.close()

    assert host.process.wait(20) == 0
    assert not alive(engine.pid)
    assert not host.folders.run.exists() or not files_below(host.folders.run)


def test_a_host_that_was_handed_over_stays_with_its_engine_when_the_owner_goes(new_host: NewHost) -> None:
    host = new_host("--owner-stdin", "--owner", "the window").connect()
    engine = host.start()
    assert host.client.call(ops.HOST).owner == "the window"

    handed = host.client.call(ops.STAY_HOST, HostStay())
    assert (handed.ends_with_window, handed.owner) == (False, "")
    assert host.process.stdin is not None
    host.process.stdin.close()
    wait_for(lambda: "is gone" in (host.folders.logs / "host.log").read_text(), "the owner's end noticed", 10)

    assert host.engine(engine.id).state is EngineState.READY
    # Nobody is there to end with any more.
    back = host.client.call(ops.STAY_HOST, HostStay(stays=False))
    assert not back.ends_with_window
    assert host.end() == 0


def test_a_host_that_is_given_back_ends_with_its_owner(new_host: NewHost) -> None:
    host = new_host("--owner-stdin").connect()
    host.client.call(ops.STAY_HOST, HostStay())
    assert host.client.call(ops.STAY_HOST, HostStay(stays=False)).ends_with_window
    assert host.process.stdin is not None
    host.process.stdin.close()
    assert host.process.wait(20) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_kept_engine_outlives_its_host_and_is_found_again(
    host: RunningHost, new_host: NewHost, number: signal.Signals
) -> None:
    engine = host.start(keep=True)
    assert engine.pid is not None
    host.end(number)
    wait_for(lambda: not host.folders.socket.exists(), "the control socket's end", 10)
    assert alive(engine.pid)

    again = new_host().connect()
    found = again.until(engine.id, EngineState.READY)

    assert found.adopted
    assert found.pid == engine.pid
    again.client.call(ops.STOP, StopEngine(), id=engine.id)
    again.until(engine.id, EngineState.UNLOADED)
    assert not alive(engine.pid)


def listed(host: RunningHost) -> list[dict[str, object]]:
    """What the endpoint tells editors of its models."""
    found = httpx.get(f"http://127.0.0.1:{host.port}/v1/models", trust_env=False).json()
    return list(found["data"])


@pytest.mark.parametrize("there", [True, False], ids=["model there", "model gone"])
def test_kept_engine_offers_what_it_offered_before(
    host: RunningHost, new_host: NewHost, home: Path, there: bool
) -> None:
    model = home / "copy.gguf"
    shutil.copy(DEMO, model)
    engine = host.launch(LaunchRequest(model=str(model), overrides=SMALL, keep=True))
    before = listed(host)
    assert "architecture" in str(before[0]["meta"])
    assert host.end() == 0
    if not there:
        model.unlink()

    again = new_host().connect()
    again.until(engine.id, EngineState.READY)

    if there:
        assert listed(again) == before
    else:
        assert [one["id"] for one in listed(again)] == [one["id"] for one in before]
        assert "copy.gguf" in (again.folders.logs / "host.log").read_text(encoding="utf-8")
    again.client.call(ops.STOP, StopEngine(), id=engine.id)
    again.until(engine.id, EngineState.UNLOADED)


def test_engine_that_is_killed_is_a_failure_with_its_last_lines(host: RunningHost) -> None:
    engine = host.start()
    assert engine.pid is not None

    os.kill(engine.pid, signal.SIGKILL)
    failed = host.until(engine.id, EngineState.FAILED)

    assert failed.problem is not None
    assert failed.problem.reason in {Reason.OUT_OF_MEMORY, Reason.ENGINE_KILLED}
    assert failed.problem.fix is not None
    assert failed.last_lines
    lines = host.client.call(ops.LOGS, LogQuery(source=engine.id, limit=5)).lines
    assert [line.text for line in lines] == list(failed.last_lines[-5:])
    assert host.start().state is EngineState.READY


def test_start_that_is_cancelled_leaves_no_process(host: RunningHost) -> None:
    engine = host.start(wait=False)
    job_id = engine.job
    assert job_id is not None
    starting = wait_for(
        lambda: one if (one := host.engine(engine.id)).pid else None, "the engine's process", 20
    )
    assert starting.pid is not None

    host.client.call(ops.CANCEL_JOB, id=job_id)

    job = wait_for(lambda: one if (one := host.client.call(ops.JOB, id=job_id)).ended else None, "job", 20)
    assert job.state is JobState.CANCELLED
    assert job.undone
    assert host.engine(engine.id).state is EngineState.UNLOADED
    assert not alive(starting.pid)


def test_start_replaces_what_runs(host: RunningHost) -> None:
    first = host.start()
    second = host.start()

    assert first.pid is not None
    assert not alive(first.pid)
    assert host.engine(first.id).state is EngineState.UNLOADED
    assert second.state is EngineState.READY


def test_second_host_says_who_runs(host: RunningHost, new_host: NewHost) -> None:
    second = new_host()

    assert not second.serving
    assert second.process.wait(10) == 6
    assert Reason.SECOND_INSTANCE.value in second.first_line
    assert str(host.process.pid) in second.first_line


def test_commands_that_start_and_end_hosts_side_by_side_all_do_their_work(home: Path) -> None:
    """Each finds a host that starts, works or ends, and starts its own where there is none."""
    commands = []
    for arguments in (["models"], ["fit", str(DEMO), "--cpu"], ["engine", "list"]) * 3:
        commands.append(
            subprocess.Popen(
                [sys.executable, "-m", "engine_host", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        time.sleep(0.3)
    said = [(command.communicate(timeout=100)[0], command.returncode) for command in commands]
    assert [one for one in said if one[1] != 0] == []
    assert not Folders.resolve().run.exists()


def test_events_resume_without_a_gap(host: RunningHost) -> None:
    seen: list[int] = []
    ready = threading.Event()

    def follow(after: int) -> None:
        with_client = type(host.client)(host.folders)
        with_client.connect()
        try:
            for event in with_client.events(after):
                if event.seq:
                    seen.append(event.seq)
                if isinstance(event, EngineStateEvent) and event.engine.state is EngineState.READY:
                    ready.set()
                if len(seen) % 7 == 0 and seen:
                    break
        finally:
            with_client.close()

    engine = host.start(wait=False)
    while not ready.is_set():
        follow(seen[-1] if seen else 0)

    assert seen == list(range(1, len(seen) + 1)), "every event once, in order, over many connections"
    host.until(engine.id, EngineState.READY, EngineState.BUSY)


def test_log_levels_are_told_apart(host: RunningHost) -> None:
    engine = host.start()
    everything = host.client.call(ops.LOGS, LogQuery(source=engine.id))
    errors = host.client.call(ops.LOGS, LogQuery(source=engine.id, severity=Severity.ERROR))

    assert len(everything.lines) > len(errors.lines)
    assert all(line.severity is Severity.ERROR for line in errors.lines)
