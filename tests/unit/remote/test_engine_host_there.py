"""A machine that lies about its engine host is not believed; the connection to it is FAKE."""

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from engine_host.protocol.endpoint.connect import EndedWithHost
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import RemoteMode
from engine_host.remote import engine_host_there
from engine_host.remote.book import KeptHost
from engine_host.remote.engine_host_there import EngineHostLink, EngineHostThere, start_again
from engine_host.remote.run import RemoteOutcome, RemoteScript
from engine_host.remote.ssh.connection import Connection
from engine_host.remote.ssh.folder import HostFolder
from tests.unit.asynchronous import run, until
from tests.unit.cli.start.test_run import HOST

TOKEN = "t" * 43


class FakeConnection:
    """A connection that forwards nothing."""

    def __init__(self, folder: Path, refuses: bool = False) -> None:
        self.host = KeptHost(name="gpu", destination="gpu", mode=RemoteMode.ENGINE_HOST, added_at=1.0)
        self.folder = HostFolder(folder)
        self.forwarded: list[str] = []
        self.refuses_forwards = refuses

    async def forward(self, _local: Path, there: str) -> None:
        self.forwarded.append(there)


def problem_after(
    folder: Path, printed: bytes, code: int | None = 0, *, refuses: bool = False
) -> tuple[Reason, list[str]]:
    """The reason that is told when the machine prints this, and what was forwarded."""
    connection = FakeConnection(folder, refuses)

    async def told(_script: RemoteScript) -> RemoteOutcome:
        return RemoteOutcome(code, printed, "")

    async def work() -> EngineHostThere:
        heard: asyncio.Queue[EngineHostThere] = asyncio.Queue()
        link = EngineHostLink(cast(Connection, connection), told, heard.put_nowait)
        keeping = asyncio.create_task(link.keep())
        try:
            return await heard.get()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    there = run(work())
    assert not there.reachable
    assert there.problem is not None
    return there.problem.reason, connection.forwarded


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"state": "none"}, Reason.HOST_UNREACHABLE),
        ({"state": "starting", "run": "/run"}, Reason.HOST_UNREACHABLE),
        ({"state": "turning", "pid": "7"}, Reason.HOST_UNREACHABLE),
        ({"state": "unreadable", "why": "[Errno 13] Permission denied"}, Reason.HOST_UNREACHABLE),
        ({"state": "ended", "run": "/run"}, Reason.HOST_UNREACHABLE),
        ({"state": "unsafe", "run": "/run"}, Reason.RUN_FOLDER_UNSAFE),
        ({"state": "running", "socket": "relative", "token": TOKEN}, Reason.HOST_UNREACHABLE),
        ({"state": "running", "socket": "/a\n/b", "token": TOKEN}, Reason.HOST_UNREACHABLE),
        ({"state": "running", "socket": "/x/${HF_TOKEN}", "token": TOKEN}, Reason.HOST_UNREACHABLE),
        ({"state": "running", "socket": "/x/%u", "token": TOKEN}, Reason.HOST_UNREACHABLE),
        ({"state": "running", "socket": "/" + "a" * 300, "token": TOKEN}, Reason.HOST_UNREACHABLE),
        ({"state": "running", "socket": "/a", "token": "x\r\nHost: b"}, Reason.HOST_UNREACHABLE),
        ({"state": "running", "socket": "/a", "token": "t" * 9999}, Reason.HOST_UNREACHABLE),
        ({"state": ["running"]}, Reason.HOST_UNREACHABLE),
        ({}, Reason.SSH_FAILED),
    ],
)
def test_what_it_says_is_checked_before_anything_is_forwarded(
    tmp_path: Path, said: dict[str, Any], reason: Reason
) -> None:
    assert problem_after(tmp_path, json.dumps(said).encode()) == (reason, [])


@pytest.mark.parametrize("printed", [b"", b"\xff\x00", b"[1]", b"{" * 100_000, b'{"state": NaN}'])
def test_what_is_no_answer(tmp_path: Path, printed: bytes) -> None:
    assert problem_after(tmp_path, printed) == (Reason.SSH_FAILED, [])


def test_a_program_that_failed_or_hung(tmp_path: Path) -> None:
    assert problem_after(tmp_path, b"", 1)[0] is Reason.SSH_FAILED
    assert problem_after(tmp_path, b"", None)[0] is Reason.SSH_FAILED


def test_one_that_does_not_answer_is_told_and_its_token_is_not_left(tmp_path: Path) -> None:
    said = {"state": "running", "socket": "/run/control.sock", "token": TOKEN}
    reason, forwarded = problem_after(tmp_path, json.dumps(said).encode())
    assert (reason, forwarded) == (Reason.HOST_GONE, ["/run/control.sock"])
    assert not (tmp_path / "control.token").exists()


def test_one_of_an_older_version_is_used_without_what_it_cannot_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {
        "/v1/version": {"major": 1, "minor": 0, "program": "sndr 0.1.0", "run_id": "r", "seq": 0},
        "/v1/host": HOST,
    }

    async def fetch(_target: object, path: str, *_: object) -> tuple[int, bytes]:
        return (200, json.dumps(answers[path]).encode()) if path in answers else (404, b"{}")

    async def running(_script: RemoteScript) -> RemoteOutcome:
        said = {"state": "running", "socket": "/run/control.sock", "token": TOKEN}
        return RemoteOutcome(0, json.dumps(said).encode(), "")

    async def work() -> EngineHostThere:
        heard: asyncio.Queue[EngineHostThere] = asyncio.Queue()
        link = EngineHostLink(cast(Connection, FakeConnection(tmp_path)), running, heard.put_nowait)
        keeping = asyncio.create_task(link.keep())
        try:
            return await heard.get()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    monkeypatch.setattr(engine_host_there, "_told", fetch)
    monkeypatch.setattr(engine_host_there, "fetch", fetch)
    there = run(work())
    assert (there.reachable, there.version, there.models) == (True, "sndr 0.1.0", ())


def test_a_defect_of_ours_is_told_and_ends_no_later_look(tmp_path: Path) -> None:
    looks: list[RemoteScript] = []

    async def broken(script: RemoteScript) -> RemoteOutcome:
        looks.append(script)
        raise KeyError("os")

    async def work() -> list[EngineHostThere]:
        heard: asyncio.Queue[EngineHostThere] = asyncio.Queue()
        link = EngineHostLink(cast(Connection, FakeConnection(tmp_path)), broken, heard.put_nowait)
        keeping = asyncio.create_task(link.keep())
        try:
            first = await heard.get()
            await asyncio.sleep(0)
            link.look()
            return [first, await heard.get()]
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    told = run(work())
    assert [there.problem and there.problem.reason for there in told] == [Reason.INTERNAL] * 2
    assert len(looks) == 2


def test_a_look_that_is_asked_for_during_another_one_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_host_there, "_PAUSES", (3600.0,))
    monkeypatch.setattr(engine_host_there, "_SOONEST", 0.0)

    async def found(_script: RemoteScript) -> RemoteOutcome:
        if heard.empty():
            # As an update over there that ends between this look and its answer.
            link.look()
        return RemoteOutcome(0, b'{"state": "installed"}', "")

    async def work() -> None:
        keeping = asyncio.create_task(link.keep())
        try:
            await until(lambda: heard.qsize() == 2)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    heard: asyncio.Queue[EngineHostThere] = asyncio.Queue()
    link = EngineHostLink(cast(Connection, FakeConnection(tmp_path)), found, heard.put_nowait)
    run(work())


def test_what_its_shell_prints_before_is_no_part_of_the_answer(tmp_path: Path) -> None:
    said = json.dumps({"state": "unsafe", "run": "/run"}).encode()
    assert problem_after(tmp_path, b'Welcome to {"gpu"}!\n\n' + said + b"\n\n")[0] is Reason.RUN_FOLDER_UNSAFE
    assert problem_after(tmp_path, said + b"\nbye\n")[0] is Reason.SSH_FAILED


def test_one_behind_a_machine_that_forwards_nothing(tmp_path: Path) -> None:
    said = {"state": "running", "socket": "/run/control.sock", "token": TOKEN}
    reason, _ = problem_after(tmp_path, json.dumps(said).encode(), refuses=True)
    assert reason is Reason.SSH_FORWARD_REFUSED


@pytest.mark.parametrize(
    ("told", "typed"),
    [
        ("sndr launch big --override context=4096", "sndr --host gpu launch big --override context=4096"),
        ("sndr run '/srv/my model.gguf'", "sndr --host gpu run '/srv/my model.gguf'"),
        ("sndr run x; rm -rf ~", "sndr --host gpu run 'x;' rm -rf '~'"),
        ("sndr run $(reboot)", "sndr --host gpu run '$(reboot)'"),
        ("rm -rf ~", "sndr --host gpu run big"),
        ("sndr run 'unclosed", "sndr --host gpu run big"),
    ],
)
def test_a_start_that_another_machine_tells_stays_one_command_of_ours(told: str, typed: str) -> None:
    assert start_again("gpu", EndedWithHost(name="big", command=told)) == typed
