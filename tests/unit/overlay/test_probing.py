"""Asking processes what is live: answers whole or in parts; who is gone, stuck or strange is left out."""

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine_host.overlay.probing import probe
from tests.unit.asynchronous import run

Say = Callable[[asyncio.StreamWriter], Awaitable[None]]


def says(content: bytes, *, part: int | None = None) -> Say:
    """Sends this, all at once or in parts, and closes."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        size = part or max(1, len(content))
        for start in range(0, len(content), size):
            writer.write(content[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)

    return answer


def report(pid: int, **fields: object) -> bytes:
    one = {"live": True, "why": "", "hits": 3, "symbols": []} | fields
    return json.dumps({"pid": pid, "role": "Worker", "rank": 0, "patches": {"one": one}}).encode()


@asynccontextmanager
async def processes(folder: Path, **answers: Say) -> AsyncIterator[dict[int, str]]:
    """A socket for each `p<pid>`, as a process of vLLM has it."""
    servers = []
    sockets = {}
    for name, say in answers.items():
        path = str(folder / f"{name}.sock")

        async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter, say: Say = say) -> None:
            await say(writer)
            writer.close()

        servers.append(await asyncio.start_unix_server(connected, path))
        sockets[int(name[1:])] = path
    try:
        yield sockets
    finally:
        for server in servers:
            server.close()
            await server.wait_closed()


def test_what_processes_say_is_kept_by_process(tmp_path: Path) -> None:
    async def work() -> None:
        not_live = report(8, live=False, why="another code has taken its place", hits=None)
        async with processes(tmp_path, p7=says(report(7)), p8=says(not_live, part=3)) as sockets:
            before = time.time()
            found = await probe(sockets)
        seven, eight = found[7]["one"], found[8]["one"]
        assert (seven.live, seven.why, seven.hits) == (True, "", 3)
        assert (eight.live, eight.why, eight.hits) == (False, "another code has taken its place", None)
        assert seven.at >= before

    run(work())


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[]", b'{"pid": 7}', b'{"pid": "x", "patches": {}}', report(9)]
)
def test_an_answer_that_is_none_is_left_out(tmp_path: Path, content: bytes) -> None:
    async def work() -> None:
        async with processes(tmp_path, p7=says(content), p8=says(report(8))) as sockets:
            assert set(await probe(sockets)) == {8}

    run(work())


def test_a_process_that_is_gone_is_left_out(tmp_path: Path) -> None:
    async def work() -> None:
        async with processes(tmp_path, p8=says(report(8))) as sockets:
            closed = tmp_path / "closed.sock"
            server = await asyncio.start_unix_server(lambda _r, writer: writer.close(), str(closed))
            server.close()
            await server.wait_closed()
            more = {6: str(tmp_path / "none.sock"), 7: str(closed), 5: str(tmp_path / ("x" * 200))}
            assert set(await probe(sockets | more)) == {8}

    run(work())


def test_a_process_that_is_stuck_holds_nobody_up(tmp_path: Path) -> None:
    async def work() -> None:
        with socket.socket(socket.AF_UNIX) as stuck:
            stuck.bind(str(tmp_path / "stuck.sock"))
            stuck.listen()
            async with processes(tmp_path, p8=says(report(8))) as sockets:
                assert set(await probe({7: str(tmp_path / "stuck.sock")} | sockets, seconds=0.3)) == {8}

    run(work())


def test_nobody_is_asked_when_there_is_nobody() -> None:
    assert run(probe({})) == {}


def test_an_endless_report_is_left_out(tmp_path: Path) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b" " * 65_536)
            await writer.drain()

    async def ask() -> None:
        async with processes(tmp_path, p1=endless, p2=says(report(2))) as sockets:
            began = time.monotonic()
            assert set(await probe(sockets)) == {2}
            assert time.monotonic() - began < 2

    run(ask())


def test_what_is_no_socket_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    os.mkfifo(tmp_path / "pipe")
    paths = {1: str(tmp_path / "file"), 2: str(tmp_path / "pipe"), 3: str(tmp_path / "none"), 4: "/dev/zero"}
    assert run(probe(paths)) == {}


@pytest.mark.parametrize(
    "fields", [{"hits": -1}, {"hits": 10**30}, {"why": "x" * 10_000}, {"live": "perhaps"}], ids=str
)
def test_a_report_that_nobody_could_send_on_is_left_out(tmp_path: Path, fields: dict[str, object]) -> None:
    async def ask() -> None:
        async with processes(tmp_path, p1=says(report(1, **fields))) as sockets:
            assert await probe(sockets) == {}

    run(ask())
