"""The sampler, the machine's readings, and the list of series."""

import asyncio
import time
from typing import Any

import pytest

from engine_host.protocol.engines import Latency, Readings, Request, RequestState
from engine_host.protocol.events import TelemetryEvent
from engine_host.protocol.host import Gpu, PcieLink, ThrottleReason
from engine_host.telemetry import Gpus, History, MachineMonitor, MachineReading, Sampler
from engine_host.telemetry.sampler import engine_values, gpu_values, machine_values
from engine_host.telemetry.series import describe

UNITS = {
    *("bytes", "bytes/s", "share", "tokens", "tokens/s", "requests", "seconds"),
    *("celsius", "watts", "megahertz", "number"),
}


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
    reading = Gpu(
        index=12,
        uuid="GPU-x",
        name="a card",
        memory_total=2,
        memory_used=1,
        utilization=0.5,
        temperature=40,
        power=30.0,
        memory_utilization=0.5,
        memory_temperature=41,
        power_limit=350.0,
        clock=1395,
        memory_clock=9501,
        throttled_by=(ThrottleReason.IDLE,),
        pcie=PcieLink(generation=4, width=16),
        ecc_errors=0,
    )
    gpu = gpu_values((reading,))
    assert len(gpu) == 14
    assert gpu["gpu.12.throttled"] == 0.0, "idle is not slowed down"
    machine = machine_values(MachineReading(2, 1, 0.5, 1.0, 2.0, 3.0, 4.0))
    assert len(machine) == 7
    for name in (*values, *gpu, *machine):
        kind = describe(name)
        assert kind.unit in UNITS
        assert kind.title
        assert kind.source
    assert describe("gpu.12.power").title == "GPU 12 power"
    for wrong in ("gpu.x.power", "engine..memory", "ram.usedx", "xram.used"):
        with pytest.raises(KeyError):
            describe(wrong)


def test_what_happened_since_the_last_sample_is_of_it_alone() -> None:
    before = Readings(
        at=0,
        prefix_queries_total=1000,
        prefix_hits_total=100,
        preemptions_total=1,
        latencies=(Latency(name="TTFT", count=10, mean=1.0), Latency(name="ITL", count=5, mean=0.5)),
    )
    now = Readings(
        at=1,
        prefix_queries_total=1200,
        prefix_hits_total=250,
        preemptions_total=3,
        acceptance_by_position=(0.8, 0.5),
        latencies=(Latency(name="TTFT", count=12, mean=1.5), Latency(name="ITL", count=5, mean=0.5)),
    )
    assert engine_values("e", now, before) == {
        "engine.e.prefix_hits": 0.75,
        "engine.e.preemptions": 2.0,
        "engine.e.ttft": pytest.approx(4.0),
        "engine.e.acceptance.1": 0.8,
        "engine.e.acceptance.2": 0.5,
    }
    for name in engine_values("e", now, before):
        assert describe(name).unit in UNITS
    assert describe("engine.e.acceptance.2").title == "Draft acceptance at position 2"
    # An engine that was started anew counts from nothing.
    assert engine_values("e", before, now) == {}
    assert engine_values("e", now, now) == {
        "engine.e.preemptions": 0.0,
        "engine.e.acceptance.1": 0.8,
        "engine.e.acceptance.2": 0.5,
    }


def test_an_engine_that_times_nothing_has_the_clock_of_the_endpoint() -> None:
    async def go() -> None:
        readings = {"e1": Readings(at=time.time(), slots_busy=0)}
        sampler = Sampler(MachineMonitor(), Gpus(None), History(), lambda _event: None, lambda: readings)

        def asked(state: RequestState, **measured: float) -> Request:
            return Request(
                id="r", engine="e1", model="m", route="chat", state=state, created_at=1.0, **measured
            )

        sampler.add_request(asked(RequestState.DECODE, ttft=9.0))
        sampler.add_request(asked(RequestState.FAILED, ttft=9.0))
        sampler.add_request(asked(RequestState.DONE, ttft=0.25, decode_rate=50.0))
        sampler.add_request(asked(RequestState.DONE, ttft=0.75))
        values = (await sampler.sample()).values
        assert values["engine.e1.ttft"] == 0.5
        assert values["engine.e1.itl"] == 0.02
        assert "engine.e1.ttft" not in (await sampler.sample()).values
        said = Latency(name="TTFT", count=1, mean=1.0)
        for count in (1, 2):
            latency = said.model_copy(update={"count": count})
            readings["e1"] = Readings(at=time.time(), slots_busy=0, latencies=(latency,))
            sampler.add_request(asked(RequestState.DONE, ttft=0.25))
            values = (await sampler.sample()).values
        assert values["engine.e1.ttft"] == 1.0, "the engine's own goes before"

    asyncio.run(go())


def test_the_machine() -> None:
    machine = MachineMonitor()
    assert machine.facts.cpu_name
    assert machine.facts.os
    assert machine.facts.cpu_threads >= machine.facts.cpu_cores >= 1
    assert machine.read().cpu_share is None
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass
    reading = machine.read()
    share = reading.cpu_share
    assert share is not None
    rates = (reading.disk_read, reading.disk_written, reading.network_received, reading.network_sent)
    assert all(rate is not None and rate >= 0 for rate in rates)
    assert 0 < share <= 1
