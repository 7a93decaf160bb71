"""A host that a command ended, and the next one that a person asks for."""

import asyncio

import pytest

from engine_host.protocol.events import HostStateEvent
from sndr_gui.host.connection import Phase
from sndr_gui.host.process import Address
from tests.views.conftest import Stage


async def test_a_host_that_is_started_again_is_said_to_start(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = stage.state.host
    assert host is not None
    # One that lives for a window or a command ends with it, unasked.
    stage.state.host = host.model_copy(update={"ends_with_window": False})
    stage.host.publish(HostStateEvent(state="closing", endpoint=host.endpoint, asked=True))
    await stage.until(lambda: stage.state.closing_asked)
    await stage.host.stop()
    await stage.until(lambda: stage.connection.phase is Phase.ENDED)
    begun = asyncio.Event()
    find_or_start = stage.process.find_or_start

    async def slowly() -> Address:
        await begun.wait()
        return await find_or_start()

    monkeypatch.setattr(stage.process, "find_or_start", slowly)
    stage.connection.retry()
    await stage.until(lambda: stage.connection.phase is Phase.STARTING)
    assert stage.connection.sentence == "Starting the engine host…"
    await stage.host.start()
    begun.set()
    await stage.until(lambda: stage.connection.connected)
