"""One window for each display: who is first, what the second hands over, and what is left by a crash."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from engine_host.client import Folders
from engine_host.daemon.run_lock import RunLock
from sndr_gui.kit.single_window import Answered, Claim, Handover, Hung, claim, socket_path

DEEP = b"[" * 60_000 + b"\n"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such sockets")


def folders() -> Folders:
    return Folders.resolve()


def first() -> Claim:
    made = claim(folders(), [])
    assert isinstance(made, Claim)
    return made


def path() -> Path:
    return socket_path(folders(), os.environ)


def test_the_second_hands_its_arguments_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        taken: list[Handover] = []
        mine = first()
        await mine.listen(taken.append)
        assert stat.S_IMODE(path().stat().st_mode) == 0o600
        monkeypatch.setenv("XDG_ACTIVATION_TOKEN", "token_1=/a")
        asked = ["sndr://chat", "two words", "ü\n"]
        assert await asyncio.to_thread(claim, folders(), asked) == Answered()
        assert taken == [Handover(tuple(asked), "token_1=/a")]
        await mine.close()
        assert not list(folders().run.glob("window*"))

    asyncio.run(run())


def test_a_start_while_the_first_one_starts_waits_for_it() -> None:
    async def run() -> None:
        taken: list[Handover] = []
        mine = first()
        later = asyncio.create_task(asyncio.to_thread(claim, folders(), ["sndr://chat"]))
        await mine.listen(taken.append)
        assert await later == Answered()
        assert [one.arguments for one in taken] == [("sndr://chat",)]
        await mine.close()

    asyncio.run(run())


def test_what_a_killed_window_left_is_replaced() -> None:
    died = (
        "import os, socket\n"
        "from engine_host.client import Folders\n"
        "from sndr_gui.kit.single_window import claim, socket_path\n"
        "one = claim(Folders.resolve(), [])\n"
        "left = socket.socket(socket.AF_UNIX)\n"
        "left.bind(str(socket_path(Folders.resolve(), os.environ)))\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", died], check=False, timeout=60)
    assert path().exists()

    async def again() -> None:
        taken: list[Handover] = []
        mine = first()
        await mine.listen(taken.append)
        assert await asyncio.to_thread(claim, folders(), []) == Answered()
        assert len(taken) == 1
        await mine.close()

    asyncio.run(again())


def test_a_host_that_ends_removes_what_a_killed_window_left_and_no_more() -> None:
    mine = first()
    path().touch()
    folders().make_run_folder()
    left = folders().window_socket("killed")
    left.touch()
    left.with_suffix(".lock").touch()
    host = RunLock(folders())
    host.claim()
    host.release()
    assert sorted(folders().run.iterdir()) == [path().with_suffix(".lock"), path()]
    path().unlink()
    mine.release()
    assert not folders().run.exists()


def test_one_that_does_not_answer_is_told_with_its_process() -> None:
    mine = first()
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(path()))
        deaf.listen()
        assert claim(folders(), [], patience=0.2) == Hung(os.getpid())
    path().unlink()
    mine.release()


def test_on_another_display_there_is_another_window(monkeypatch: pytest.MonkeyPatch) -> None:
    one = first()
    monkeypatch.setenv("DISPLAY", ":77")
    other = first()
    other.release()
    one_of = os.environ | {"WAYLAND_DISPLAY": "wayland-0"}
    assert len({socket_path(folders(), of) for of in (os.environ, one_of, {"DISPLAY": ":78"})}) == 3
    monkeypatch.undo()
    one.release()


def test_a_run_folder_that_others_may_enter_is_not_used() -> None:
    folders().run.mkdir(parents=True)
    folders().run.chmod(0o755)
    assert claim(folders(), []) is None
    folders().run.chmod(0o700)


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    folders().run.mkdir(mode=0o700, parents=True)
    other = tmp_path / "precious"
    other.write_text("mine")
    path().with_suffix(".lock").symlink_to(other)
    assert claim(folders(), []) is None
    assert other.read_text() == "mine"
    path().with_suffix(".lock").unlink()


def test_garbage_gets_no_answer_and_the_next_start_does() -> None:
    async def run() -> None:
        taken: list[Handover] = []
        mine = first()
        await mine.listen(taken.append)
        for sent in (b"\n", b"{}\n", b"[" * 200_000, b'{"arguments": [1]}\n', b"\xff\n", DEEP, b""):
            reader, writer = await asyncio.open_unix_connection(path())
            writer.write(sent)
            try:
                writer.write_eof()
                assert await reader.read() == b""
            except OSError:
                """It was closed before all of it was sent."""
            writer.close()
        assert not taken
        assert await asyncio.to_thread(claim, folders(), ["x" * 100_000] * 50) == Answered()
        assert [len(taken[0].arguments), len(taken[0].arguments[0])] == [20, 4096]
        await mine.close()

    asyncio.run(run())


def test_a_permission_that_is_none_is_left_out() -> None:
    for activation in ("a b", "x" * 201, "\n", 5, None):
        line = json.dumps({"arguments": [], "activation": activation}).encode()
        assert Handover.parse(line).activation == ""
