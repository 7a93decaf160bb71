"""A client that was closed: what is under way is told that the host is gone."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Reason
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import TelemetryQuery


@pytest.mark.parametrize(
    "ask",
    [
        AsyncControlClient.version,
        lambda client: client.call(ops.QUIT_HOST),
        lambda client: client.call(ops.TELEMETRY, TelemetryQuery(since=0.0, step=1.0)),
    ],
)
def test_a_closed_client_says_that_the_host_is_gone(
    tmp_path: Path, ask: Callable[[AsyncControlClient], Awaitable[object]]
) -> None:
    async def go() -> None:
        client = AsyncControlClient(str(tmp_path / "nothing"), "token", "test")
        await client.close()
        with pytest.raises(HostError) as caught:
            await ask(client)
        assert caught.value.reason is Reason.HOST_GONE

    asyncio.run(go())


def test_a_command_between_its_two_tries_is_not_cut_off_with_a_defect(tmp_path: Path) -> None:
    async def go() -> None:
        client = AsyncControlClient(str(tmp_path / "nothing"), "token", "test")
        asked = asyncio.create_task(client.call(ops.QUIT_HOST))
        await asyncio.sleep(0.1)
        await client.close()
        with pytest.raises(HostError):
            await asked

    asyncio.run(go())
