"""Facts are read now and then, whatever becomes of the clock; the connection is FAKE."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

from engine_host.protocol.remote.hosts import RemoteFacts
from engine_host.remote.hosts import RemoteHosts


def test_a_clock_that_was_set_back_asks_once() -> None:
    asyncio.run(_asks_once())


async def _asks_once() -> None:
    asked: list[str] = []
    # A part that cannot be read any more keeps the time of before.
    facts = RemoteFacts(host="gpu", read_at={"containers": time.time() + 3600})

    async def probe(name: str) -> None:
        asked.append(name)
        await asyncio.sleep(0)

    hosts: Any = SimpleNamespace(
        book=SimpleNamespace(facts=lambda _name: facts), _reading=asyncio.Lock(), probe=probe
    )
    connection: Any = SimpleNamespace(host=SimpleNamespace(name="gpu"))
    reading = asyncio.create_task(RemoteHosts._read_now_and_then(cast(RemoteHosts, hosts), connection))
    for _ in range(100):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert asked == ["gpu"]
