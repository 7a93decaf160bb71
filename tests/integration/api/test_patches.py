"""The patches of an engine that runs."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from engine_host.protocol.patches import EnginePatches
from tests.unit.api.door import Door, door
from tests.unit.asynchronous import run

pytestmark = pytest.mark.usefixtures("home")


def through(work: Callable[[Door], Coroutine[Any, Any, None]]) -> None:
    async def act() -> None:
        async with door() as opened:
            await work(opened)

    run(act())


def test_an_engine_without_the_overlay_has_nothing_to_say() -> None:
    async def work(door: Door) -> None:
        engine = await door.rig.ready("one")
        for answer in (
            await door.client.get(f"/v1/engines/{engine.id}/patches"),
            await door.client.post(f"/v1/engines/{engine.id}/patches/probe"),
        ):
            said = EnginePatches.model_validate_json(answer.content)
            assert (said.engine, said.planned, said.processes) == (engine.id, None, ())

    through(work)
