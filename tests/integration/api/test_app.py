"""The control API over an engine that runs."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from engine_host.protocol.engines import Engine, EnginePage, EngineState
from tests.unit.api.door import Door, door
from tests.unit.asynchronous import run

pytestmark = pytest.mark.usefixtures("home")


def through(work: Callable[[Door], Coroutine[Any, Any, None]]) -> None:
    async def act() -> None:
        async with door() as opened:
            await work(opened)

    run(act())


def test_an_engine_is_listed_read_by_name_and_stopped() -> None:
    async def work(door: Door) -> None:
        engine = await door.rig.ready("one")
        page = EnginePage.model_validate_json((await door.client.get("/v1/engines")).content)
        assert [one.id for one in page.engines] == [engine.id]
        one = Engine.model_validate_json((await door.client.get("/v1/engines/one")).content)
        assert one.state is EngineState.READY
        assert (await door.client.get("/v1/requests?engine=one")).json()["requests"] == []
        answer = await door.client.delete("/v1/engines/one?now=1")
        assert answer.status_code == 202
        await door.rig.reached(engine, EngineState.UNLOADED)
        assert door.rig.drained == []

    through(work)
