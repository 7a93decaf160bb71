"""The sampler, the machine's readings, and the list of series."""

import asyncio
import time
from typing import Any

import pytest

from engine_host.protocol.engines import Readings
from engine_host.protocol.events import TelemetryEvent
from engine_host.telemetry import Gpus, History, MachineMonitor, Sampler
from engine_host.telemetry.sampler import engine_values
from engine_host.telemetry.series import describe

UNITS = {"bytes", "share", "tokens", "tokens/s", "requests", "celsius", "watts"}


def test_a_sample_is_remembered_and_published() -> None:
    async def go() -> None:
        events: list[Any] = []
        history = History()
        readings = {"e1": Readings(at=time.time(), slots_busy=1, kv_tokens=50, kv_capacity=200)}
        readings["old"] = Readings(at=time.time() - 60, slots_busy=1)
        sampler = Sampler(MachineMonitor(), Gpus(None), history, events.append, lambda: readings)
        sample = await sampler.sample()
        assert sampler.latest is sample
        assert isinstance(events[0], TelemetryEvent)
        assert events[0].sample == sample
        assert sample.values["engine.e1.kv.share"] == 0.25
        assert sample.values["engine.e1.requests.running"] == 1
        assert 0 < sample.values["ram.used"] < sample.values["ram.total"]
        # Not measured is absent: no rate was told, no GPU is there, the old readings are stale.
        assert "engine.e1.decode_rate" not in sample.values
        assert not [name for name in sample.values if name.startswith(("gpu.", "engine.old"))]
        assert {one.name for one in (await history.page()).series} == set(sample.values)

    asyncio.run(go())


def test_a_sample_has_the_highest_rate_of_all_readings_since_the_last() -> None:
    async def go() -> None:
        readings: dict[str, Readings] = {}
        now = [0.0]
        sampler = Sampler(
            MachineMonitor(),
            Gpus(None),
            History(),
            lambda _event: None,
            lambda: readings,
            clock=lambda: now[0],
        )

        async def sampled(*told: tuple[float, int, float | None]) -> float | None:
            for at, busy, rate in told:
                readings["e1"] = Readings(
                    at=at, slots_busy=busy, decode_rate=rate, generated_tokens_total=1, memory=7
                )
                sampler.add_reading("e1", readings["e1"])
            now[0] += 0.5
            values = (await sampler.sample()).values
            assert values["engine.e1.memory"] == 7
            assert "engine.e1.prefill_rate" not in values, "it counts no prompts"
            return values.get("engine.e1.decode_rate")

        assert await sampled((-1.0, 0, None)) is None
        assert await sampled((0.1, 1, 0.0), (0.6, 0, 760.0), (1.1, 0, 0.0)) == 760.0
        assert await sampled() == 0.0, "idle, and not read again"
        assert await sampled((1.6, 1, 50.0)) == 50.0
        assert await sampled() == 50.0, "at work, and its next reading is late"

    asyncio.run(go())


def test_an_idle_engine_has_no_gaps() -> None:
    async def go() -> None:
        readings = {"e1": Readings(at=time.time() - 25, slots_busy=0, kv_tokens=5, kv_capacity=10)}
        sampler = Sampler(MachineMonitor(), Gpus(None), History(), lambda _event: None, lambda: readings)
        assert (await sampler.sample()).values["engine.e1.kv.share"] == 0.5

    asyncio.run(go())


def test_it_samples_faster_while_an_engine_is_busy_and_stops() -> None:
    async def go() -> None:
        events: list[Any] = []
        busy = {"e1": Readings(at=time.time(), slots_busy=0)}
        sampler = Sampler(
            MachineMonitor(),
            Gpus(None),
            History(),
            events.append,
            lambda: busy,
            interval=30,
            busy_interval=0.01,
        )
        sampler.start()
        sampler.start()
        await asyncio.sleep(0.15)
        assert len(events) == 1
        await sampler.aclose()
        busy["e1"] = Readings(at=time.time(), slots_busy=1)
        sampler.start()
        await asyncio.sleep(0.3)
        await sampler.aclose()
        count = len(events)
        assert count > 3
        await asyncio.sleep(0.05)
        assert len(events) == count

    asyncio.run(go())


def test_every_series_is_described() -> None:
    readings = Readings(
        at=0,
        slots_busy=1,
        requests_waiting=2,
        kv_tokens=3,
        kv_capacity=4,
        prefill_rate=5,
        decode_rate=6,
        acceptance_length=7,
        memory=8,
    )
    values = engine_values("llamacpp-1.a", readings)
    assert len(values) == 8
    gpu = [
        f"gpu.12.{name}" for name in ("memory.used", "memory.total", "utilization", "temperature", "power")
    ]
    for name in (*values, *gpu, "ram.used", "ram.total", "cpu.share"):
        kind = describe(name)
        assert kind.unit in UNITS
        assert kind.title
        assert kind.source
    assert describe("gpu.12.power").title == "GPU 12 power"
    for wrong in ("gpu.x.power", "engine..memory", "ram.usedx", "xram.used"):
        with pytest.raises(KeyError):
            describe(wrong)


def test_the_machine() -> None:
    machine = MachineMonitor()
    assert machine.facts.cpu_name
    assert machine.facts.os
    assert machine.facts.cpu_threads >= machine.facts.cpu_cores >= 1
    assert machine.read().cpu_share is None
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass
    share = machine.read().cpu_share
    assert share is not None
    assert 0 < share <= 1
