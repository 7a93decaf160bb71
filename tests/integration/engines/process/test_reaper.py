"""The reaper cleans up after a host that was killed, and never touches what is not ours."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from engine_host.engines.process import reaper_main
from engine_host.engines.process.reaper import Reaper
from tests.unit.asynchronous import run, until

FAMILY = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; exec sleep 300' & wait; wait"
HOST = """
import sys, time
from pathlib import Path
from engine_host.engines.process.reaper import Reaper
reaper = Reaper("test")
for group in sys.argv[1].split(","):
    reaper.watch(int(group), Path(sys.argv[2]).with_name(f"{group}.sock"))
for path in sys.argv[2:]:
    reaper.remove_with_host(Path(path))
print(reaper.pid, flush=True)
time.sleep(300)
"""


@contextmanager
def group(script: str = "exec sleep 300") -> Iterator["subprocess.Popen[str]"]:
    """A process group of its own."""
    child = subprocess.Popen(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate(timeout=10)


@contextmanager
def reaper_process() -> Iterator["subprocess.Popen[str]"]:
    """The reaper alone, spoken to by hand."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(reaper_main.__file__)], stdin=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    try:
        yield child
    finally:
        child.stdin.close()
        child.wait(timeout=15)


def said(*commands: object) -> str:
    return "".join(
        f"{command if isinstance(command, str) else json.dumps(command)}\n" for command in commands
    )


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_killed_host_takes_its_groups_and_files_along(home: Path) -> None:
    files = [home / "socket", home / "token", home / "host.lock"]
    for path in files:
        path.write_text("", encoding="utf-8")
    with group(FAMILY) as engine:
        assert engine.stdout is not None
        listens_at = home / f"{engine.pid}.sock"
        listens_at.write_text("", encoding="utf-8")
        grandchild = int(engine.stdout.readline())
        host = subprocess.Popen(
            [sys.executable, "-c", HOST, str(engine.pid), *map(str, files)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert host.stdout is not None
        reaper = int(host.stdout.readline())
        host.send_signal(signal.SIGKILL)
        host.communicate(timeout=10)
        assert engine.wait(timeout=15) == -signal.SIGKILL, "it ignores SIGTERM"
        run(until(lambda: not runs(grandchild)))
        run(until(lambda: not runs(reaper)))
    assert not any(path.exists() for path in (*files, listens_at))


def test_a_process_that_has_ended_and_waits_to_be_collected_is_not_waited_for(home: Path) -> None:
    with group() as engine:
        watch = {"watch": engine.pid, "started": reaper_main.start_ticks(engine.pid), "socket": "none"}
        with reaper_process() as reaper:
            begun = time.monotonic()
            reaper.communicate(said(watch), timeout=15)
            # Nobody has waited for the engine, and each of the three ways to end it has two seconds.
            assert time.monotonic() - begun < 2
        assert not runs(engine.pid)
        assert engine.wait(timeout=5) == -signal.SIGTERM


def test_the_files_of_a_host_started_since_are_left_alone(home: Path) -> None:
    files = [home / "token", home / "host.lock"]
    for path in files:
        path.write_text("new", encoding="utf-8")
    lock = os.open(files[1], os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with reaper_process() as reaper:
        reaper.communicate(said(*({"file": str(path)} for path in files)), timeout=15)
    os.close(lock)
    assert all(path.exists() for path in files)
    files[1].unlink()


def test_a_number_given_to_another_process_since_is_left_alone() -> None:
    with group() as stranger:
        started = reaper_main.start_ticks(stranger.pid)
        assert started is not None
        with reaper_process() as reaper:
            reaper.communicate(
                said({"watch": stranger.pid, "started": started - 1, "socket": "/nowhere"}), timeout=15
            )
        assert runs(stranger.pid)


def test_what_is_forgotten_or_released_is_left_alone(home: Path) -> None:
    (home / "file").write_text("", encoding="utf-8")
    with group() as one:
        watch = {"watch": one.pid, "started": reaper_main.start_ticks(one.pid), "socket": "/nowhere"}
        with reaper_process() as reaper:
            reaper.communicate(said(watch, {"forget": one.pid}, {"forget": 999_999_999}), timeout=15)
        assert runs(one.pid)
        with reaper_process() as reaper:
            reaper.communicate(said(watch, {"file": str(home / "file")}, {"release": True}), timeout=15)
        assert runs(one.pid)
    assert (home / "file").exists()


def test_a_line_cut_off_by_the_kill_does_not_stop_the_cleaning() -> None:
    with group() as one:
        watch = {"watch": one.pid, "started": reaper_main.start_ticks(one.pid), "socket": "/nowhere"}
        with reaper_process() as reaper:
            reaper.communicate(said(watch) + '{"watch": 12', timeout=15)
        assert one.wait(timeout=10) == -signal.SIGTERM


def test_signals_meant_for_the_host_do_not_end_it() -> None:
    reaper = Reaper("test")
    reaper.ensure()
    pid = reaper.pid
    assert pid is not None
    # It has said nothing yet, so wait until it listens to no signal.
    mask = (1 << (signal.SIGTERM - 1)) | (1 << (signal.SIGINT - 1))

    def deaf() -> bool:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
        return int(line.split()[1], 16) & mask == mask

    run(until(deaf))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(pid, number)
    reaper.ensure()
    assert reaper.pid == pid
    reaper.close()
    assert not runs(pid)


def test_one_that_was_killed_is_replaced_and_learns_everything_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with group() as one, group() as two:
        reaper = Reaper("test")
        reaper.watch(one.pid, Path("/nowhere"))
        first = reaper.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        run(until(lambda: not runs(first)))
        reaper.watch(two.pid, Path("/nowhere"))
        assert reaper.pid not in {None, first}
        assert "ended from outside" in caplog.text
        # Its stdin closes as it would if the host were killed.
        process, commands = reaper._process, reaper._commands
        assert process is not None
        assert commands is not None
        commands.close()
        assert one.wait(timeout=10) == -signal.SIGTERM
        assert two.wait(timeout=10) == -signal.SIGTERM
        process.wait(timeout=10)


def test_an_orderly_end_touches_nothing(home: Path) -> None:
    (home / "file").write_text("", encoding="utf-8")
    with group() as one:
        reaper = Reaper("test")
        reaper.watch(one.pid, Path("/nowhere"))
        reaper.remove_with_host(home / "file")
        pid = reaper.pid
        reaper.close()
        reaper.close()
        assert pid is not None
        assert not runs(pid)
        assert runs(one.pid)
    assert (home / "file").exists()


def test_closing_one_that_never_ran_is_nothing() -> None:
    Reaper("test").close()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system does not show environments")
def test_a_killed_host_takes_along_what_left_its_groups() -> None:
    environment = {**os.environ, reaper_main.OWNER_VARIABLE: "mine"}
    others = {**os.environ, reaper_main.OWNER_VARIABLE: "mine-too"}
    command = ["/bin/sh", "-c", "exec sleep 300"]
    compiler = subprocess.Popen(command, env=environment, start_new_session=True)
    stranger = subprocess.Popen(command, env=others, start_new_session=True)
    try:
        with reaper_process() as child:
            assert child.stdin is not None
            child.stdin.write(said({"owner": "mine"}))
        run(until(lambda: compiler.poll() is not None))
        assert compiler.returncode == -signal.SIGKILL
        assert stranger.poll() is None
    finally:
        for one in (compiler, stranger):
            one.kill()
            one.wait(10)
