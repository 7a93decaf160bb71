"""The window's client after the link closed it: what is under way is told that the host is gone."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sndr_gui.host.client import HostClient
from sndr_gui.host.errors import HostError, HostGone


@pytest.mark.parametrize(
    "ask", [HostClient.version, HostClient.quit, lambda client: client.telemetry((), 0.0, 1.0)]
)
def test_a_closed_client_says_that_the_host_is_gone(
    tmp_path: Path, ask: Callable[[HostClient], Awaitable[object]]
) -> None:
    async def go() -> None:
        client = HostClient(str(tmp_path / "nothing"), "token")
        await client.close()
        with pytest.raises(HostGone):
            await ask(client)

    asyncio.run(go())


def test_a_command_between_its_two_tries_is_not_cut_off_with_a_defect(tmp_path: Path) -> None:
    async def go() -> None:
        client = HostClient(str(tmp_path / "nothing"), "token")
        asked = asyncio.create_task(client.quit())
        await asyncio.sleep(0.1)
        await client.close()
        with pytest.raises(HostError):
            await asked

    asyncio.run(go())
