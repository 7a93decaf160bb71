"""Settings as they are changed: what takes effect, and what is left as it is."""

import asyncio
import socket
from pathlib import Path

import pytest

from engine_host.core.event_log import EventLog
from engine_host.core.settings import SettingsFile
from engine_host.operations.settings import SettingOperations
from engine_host.protocol.host import Endpoint, Reach
from engine_host.protocol.settings import SettingsChange


@pytest.mark.parametrize("moved", [False, True])
def test_a_port_that_gave_way_is_tried_when_it_is_set_again(moved: bool, tmp_path: Path) -> None:
    """One on which the endpoint is already stays, with all of its streams."""
    taken: list[str] = []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        wanted = int(probe.getsockname()[1])
    settings = SettingsFile(tmp_path / "settings.toml")
    settings.change({"endpoint.port": wanted})

    async def changed(names: tuple[str, ...]) -> None:
        taken.extend(names)

    async def go() -> None:
        where = Endpoint(
            url=None, local_url=None, host="127.0.0.1", port=wanted + moved, wanted_port=wanted,
            reach=Reach.THIS_MACHINE, key_required=False,
        )  # fmt: skip
        operations = SettingOperations(settings, EventLog(), lambda: where, changed)
        await operations.change(SettingsChange(values={"endpoint.port": wanted}))

    asyncio.run(go())
    assert taken == (["endpoint.port"] if moved else [])
