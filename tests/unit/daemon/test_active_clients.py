"""Commands that are at work when the host is asked to end."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from engine_host.daemon import active_clients
from engine_host.daemon.active_clients import ActiveClients
from engine_host.daemon.http_protocol import IS_OPEN
from engine_host.protocol.base import CALLER


class Rig:
    """An application that answers when it is told to; a fake, for the counting alone."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.connected = True
        self.callers = ActiveClients(self._answer)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/v1/host/quit":
            await self.go.wait()

    async def ask(self, path: str, caller: str = "") -> None:
        headers = [(CALLER.encode(), caller.encode())] if caller else []

        async def receive() -> Message:
            return {"type": "http.request"}

        async def send(_message: Message) -> None:
            return None

        extensions = {IS_OPEN: lambda: self.connected}
        scope = {"type": "http", "path": path, "headers": headers, "extensions": extensions}
        await self.callers(scope, receive, send)


async def ended(task: "asyncio.Task[None]") -> bool:
    await asyncio.sleep(0.05)
    return task.done()


def test_the_end_waits_for_another_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active_clients, "_PAUSE", 0.5)

    async def check() -> None:
        rig = Rig()
        work = asyncio.create_task(rig.ask("/v1/fit", "other"))
        await asyncio.sleep(0)
        await rig.ask("/v1/host/quit", "owner")
        end = asyncio.create_task(rig.callers.finish(30))
        assert not await ended(end)
        rig.go.set()
        await work
        assert not await ended(end), "its next request may be on its way"
        await asyncio.wait_for(end, 10)

    asyncio.run(check())


def test_a_command_that_is_gone_is_not_waited_for() -> None:
    async def check() -> None:
        rig = Rig()
        rig.go.set()
        await rig.ask("/v1/fit", "other")
        end = asyncio.create_task(rig.callers.finish(30))
        assert not await ended(end)
        rig.connected = False
        await asyncio.wait_for(end, 0.5)

    asyncio.run(check())


def test_nobody_waits_for_the_one_that_ends_it_nor_for_windows_and_followers() -> None:
    async def check() -> None:
        rig = Rig()
        open_ones = [
            asyncio.create_task(rig.ask(path, caller))
            for path, caller in (
                ("/v1/fit", "owner"),
                ("/v1/events", "other"),
                ("/openai/v1/chat/completions", "other"),
                ("/v1/fit", ""),
            )
        ]
        await asyncio.sleep(0)
        await rig.ask("/v1/host/quit", "owner")
        await asyncio.wait_for(rig.callers.finish(30), 0.2)
        rig.go.set()
        await asyncio.gather(*open_ones)

    asyncio.run(check())


def test_patience_has_an_end() -> None:
    async def check() -> None:
        rig = Rig()
        work = asyncio.create_task(rig.ask("/v1/fit", "other"))
        await asyncio.sleep(0)
        await asyncio.wait_for(rig.callers.finish(0.05), 10)
        assert not work.done()
        rig.go.set()
        await work

    asyncio.run(check())
