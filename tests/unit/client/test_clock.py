"""Both clients of a host on another machine, whose clock is FAKE, show its times by the clock here."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.client.address import RemoteAddress
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.sync import ControlClient
from engine_host.protocol.host import HostInfo
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import EnergyQuery
from tests.unit.cli.fake_host import TOKEN, FakeHost, fake_host
from tests.unit.cli.start.test_run import HOST


@pytest.fixture
def host(home: Path) -> Iterator[FakeHost]:
    """A host with a clock of its own."""
    with fake_host(home) as found:
        yield found


async def asked(host: FakeHost, name: str) -> list[HostInfo]:
    """What the window's client is told, before and after the clock there was set back by as much again."""
    client = AsyncControlClient(str(host.folders.socket), TOKEN, "test", host=name)
    try:
        await client.version()
        first = await client.call(ops.HOST)
        host.ahead *= -1
        await client.version()
        return [first, await client.call(ops.HOST)]
    finally:
        await client.close()


@pytest.mark.parametrize("ahead", [7200.0, -7200.0])
def test_times_of_another_machine_are_by_the_clock_here(host: FakeHost, ahead: float) -> None:
    now = time.time()
    host.answers["GET /v1/host"] = lambda: (200, {**HOST, "started_at": now + host.ahead})
    address = RemoteAddress("gpu", Path(host.folders.socket), Path(host.folders.token))
    host.ahead = ahead
    with ControlClient(address) as client:
        assert client.call(ops.HOST).started_at == pytest.approx(now, abs=3.0)
        energy = {"seq": 1, "since": now + ahead, "until": now + ahead, "gpus": []}
        energy |= {"joules": None, "generated_tokens": None, "per_thousand": None}
        host.answers["GET /v1/telemetry/energy"] = (200, energy)
        assert client.call(ops.ENERGY, EnergyQuery(since=now)).since == pytest.approx(now, abs=3.0)
    (path,) = [one for one, _, _ in host.received if "energy" in one]
    assert float(path.rpartition("=")[2]) == pytest.approx(now + ahead, abs=3.0)
    for told in asyncio.run(asked(host, "gpu")):
        assert told.started_at == pytest.approx(now, abs=3.0)


def test_the_clock_of_this_machine_is_its_own(host: FakeHost) -> None:
    host.answers["GET /v1/host"] = (200, {**HOST, "started_at": 7.0})
    host.ahead = 7200.0
    with ControlClient(host.folders) as client:
        assert client.call(ops.HOST).started_at == 7.0
    assert asyncio.run(asked(host, ""))[0].started_at == 7.0
