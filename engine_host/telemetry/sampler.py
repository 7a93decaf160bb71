"""Once a second, twice while an engine works: read everything, tell it, keep it."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

from engine_host.core.errors import HostError
from engine_host.protocol.engines import Readings, Request, RequestState
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import EventBase, TelemetryEvent
from engine_host.protocol.host import SLOWED_BY, Gpu
from engine_host.protocol.telemetry import RECORDED_PREFIX, Sample
from engine_host.telemetry.gpus import GpuReading, Gpus
from engine_host.telemetry.history import History
from engine_host.telemetry.machine import MachineMonitor, MachineReading
from engine_host.telemetry.playback import TracePlayer

_log = logging.getLogger(__name__)

_STALE = 5.0
"""Seconds after which the readings of an engine at work no longer count as measured now."""
_SAVED_BUSY, _SAVED_IDLE = 10.0, 600.0
"""Seconds between two writes of what was measured: with an engine, and without, so that a disk can sleep.

A host that is killed loses no more of its graphs than that.
"""
_RATES = {"decode_rate": "generated_tokens_total", "prefill_rate": "prompt_tokens_total"}
"""The rates, each with the counter that says whether the engine counts such tokens at all."""
_LATENCIES = {"TTFT": "ttft", "ITL": "itl", "queue": "queued"}
"""The engine's own histograms that are series, by their names in the readings."""


class Sampler:
    """Samples from `start` to `aclose`; `engine_readings` gives the newest readings of each engine by id."""

    def __init__(
        self,
        machine: MachineMonitor,
        gpus: Gpus,
        history: History,
        publish: Callable[[EventBase], None],
        engine_readings: Callable[[], Mapping[str, Readings]],
        *,
        interval: float = 1.0,
        busy_interval: float = 0.5,
        clock: Callable[[], float] = time.time,
        player: TracePlayer | None = None,
    ) -> None:
        self._player = player
        self._machine = machine
        self._gpus = gpus
        self._history = history
        self._publish = publish
        self._engine_readings = engine_readings
        self._interval = interval
        self._busy_interval = busy_interval
        self._clock = clock
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._unsaved: Reason | None = None
        self._received: dict[str, list[Readings]] = {}
        self._sampled: dict[str, float] = {}
        self._before: dict[str, Readings] = {}
        self._answered: dict[str, list[Request]] = {}
        self.latest: Sample | None = None

    def add_reading(self, engine: str, readings: Readings) -> None:
        """Keep a reading for the next sample, so that short-lived values are not missed."""
        self._received.setdefault(engine, []).append(readings)

    def add_request(self, request: Request) -> None:
        """Keep what the endpoint measured of a request that was answered, for the next sample."""
        if request.state is RequestState.DONE and request.engine and request.ttft is not None:
            self._answered.setdefault(request.engine, []).append(request)

    def start(self) -> None:
        """Begin; needs a running event loop."""
        if not self._tasks:
            self._tasks = (
                asyncio.create_task(self._run(), name="telemetry"),
                asyncio.create_task(self._save_now_and_then(), name="telemetry saving"),
            )

    async def aclose(self) -> None:
        """Stop, save what was measured, and let go of the driver."""
        tasks, self._tasks = self._tasks, ()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._save()
        # It waits for whoever reads them now.
        await asyncio.to_thread(self._gpus.close)
        if self._player is not None:
            await asyncio.to_thread(self._player.close)

    async def sample(self) -> Sample:
        """Take one sample now: remembered, published, returned."""
        # A driver in trouble can hold a call for seconds; the event loop must not wait for it.
        machine, gpus, recorded = await asyncio.to_thread(self._read)
        at = self._clock()
        values = {**machine_values(machine), **gpu_values(gpus.gpus)}
        if recorded:
            played = gpu_values(recorded)
            values |= {RECORDED_PREFIX + name: value for name, value in played.items()}
        known = self._engine_readings()
        received, self._received = self._received, {}
        self._sampled = {engine: at for engine, at in self._sampled.items() if engine in known}
        for engine, readings in known.items():
            if readings.slots_busy == 0 or at - readings.at <= _STALE:
                rated = self._rated(engine, readings, received.get(engine, ()))
                values |= engine_values(engine, rated, self._before.get(engine))
        self._before = dict(known)
        answered, self._answered = self._answered, {}
        for engine in known.keys() & answered.keys():
            # What the engine itself says goes before the endpoint's clock.
            values = request_values(engine, answered[engine]) | values
        sample = Sample(at=at, values=values)
        self.latest = sample
        self._history.add(at, values)
        self._publish(TelemetryEvent(at=at, sample=sample))
        return sample

    def _rated(self, engine: str, newest: Readings, received: Sequence[Readings]) -> Readings:
        """The newest readings with the highest rates of those since the last sample.

        An engine that works on nothing stays as it was last read: it does nothing until it is read again.
        """
        fresh = [*received, newest] if newest.at > self._sampled.get(engine, -math.inf) else [*received]
        self._sampled[engine] = newest.at
        if fresh:
            return newest.model_copy(update={name: _highest(fresh, name) for name in _RATES})
        if newest.slots_busy == 0:
            return newest.model_copy(
                update={name: 0.0 for name, counter in _RATES.items() if getattr(newest, counter) is not None}
            )
        return newest

    def _read(self) -> tuple[MachineReading, GpuReading, tuple[Gpu, ...]]:
        return self._machine.read(), self._gpus.read(), self._player.read() if self._player else ()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self.sample()
            busy = any(readings.slots_busy for readings in self._engine_readings().values())
            # Counted from when it was due, so that the steps do not drift; a late one is not caught up.
            due = max(due + (self._busy_interval if busy else self._interval), loop.time())
            await asyncio.sleep(due - loop.time())

    async def _save_now_and_then(self) -> None:
        waited = 0.0
        while True:
            await asyncio.sleep(_SAVED_BUSY)
            waited += _SAVED_BUSY
            if self._engine_readings() or waited >= _SAVED_IDLE:
                await self._save()
                waited = 0.0

    async def _save(self) -> None:
        try:
            await self._history.save()
        except HostError as error:
            # Said once: what was measured stays in memory, and is written as soon as it can be.
            if self._unsaved is not error.reason:
                _log.warning("The graphs of the past are not kept on the disk: %s", error)
            self._unsaved = error.reason
        else:
            self._unsaved = None


def machine_values(reading: MachineReading) -> dict[str, float]:
    """The machine's series."""
    values = {"ram.used": float(reading.ram_used), "ram.total": float(reading.ram_total)}
    return values | _present(
        {
            "cpu.share": reading.cpu_share,
            "disk.read": reading.disk_read,
            "disk.written": reading.disk_written,
            "network.received": reading.network_received,
            "network.sent": reading.network_sent,
        }
    )


def gpu_values(gpus: Sequence[Gpu]) -> dict[str, float]:
    """The GPUs' series; empty without one."""
    values: dict[str, float] = {}
    for gpu in gpus:
        name = f"gpu.{gpu.index}."
        values |= _present(
            {
                name + "memory.used": gpu.memory_used,
                name + "memory.total": gpu.memory_total,
                name + "utilization": gpu.utilization,
                name + "temperature": gpu.temperature,
                name + "power": gpu.power,
                name + "power.limit": gpu.power_limit,
                name + "memory.utilization": gpu.memory_utilization,
                name + "memory.temperature": gpu.memory_temperature,
                name + "clock": gpu.clock,
                name + "memory.clock": gpu.memory_clock,
                name + "throttled": None
                if gpu.throttled_by is None
                else float(not SLOWED_BY.isdisjoint(gpu.throttled_by)),
                name + "pcie.generation": gpu.pcie.generation if gpu.pcie else None,
                name + "pcie.width": gpu.pcie.width if gpu.pcie else None,
                name + "ecc.errors": gpu.ecc_errors,
                name + "energy": gpu.energy,
            }
        )
    return values


def engine_values(engine: str, readings: Readings, before: Readings | None = None) -> dict[str, float]:
    """One engine's series, some of them since the readings before; what it did not measure is absent."""
    share, kept = readings.kv_usage, None
    if readings.kv_tokens is not None and readings.kv_capacity:
        share = readings.kv_tokens / readings.kv_capacity
        kept = None if readings.kv_cached is None else readings.kv_cached / readings.kv_capacity
    name = f"engine.{engine}."
    return _present(
        {
            name + "memory": readings.memory,
            name + "kv.tokens": readings.kv_tokens,
            name + "kv.share": share,
            name + "kv.cached": kept,
            name + "generated": readings.generated_tokens_total,
            name + "decode_rate": readings.decode_rate,
            name + "prefill_rate": readings.prefill_rate,
            name + "requests.running": readings.slots_busy,
            name + "requests.waiting": readings.requests_waiting,
            name + "acceptance_length": readings.acceptance_length,
            **{
                f"{name}acceptance.{place}": share
                for place, share in enumerate(readings.acceptance_by_position, start=1)
            },
            **({} if before is None else _since(name, before, readings)),
        }
    )


def request_values(engine: str, requests: Sequence[Request]) -> dict[str, float]:
    """The waits of requests that were answered since the last sample, in the mean; the endpoint's clock."""
    ttft = [request.ttft for request in requests if request.ttft is not None]
    itl = [1 / request.decode_rate for request in requests if request.decode_rate]
    name = f"engine.{engine}."
    return {
        name + series: sum(seconds) / len(seconds)
        for series, seconds in (("ttft", ttft), ("itl", itl))
        if seconds
    }


def _since(name: str, before: Readings, now: Readings) -> dict[str, float | None]:
    """Return what was measured of the requests between two readings; without such requests it is absent."""
    looked_up = _more(before.prefix_queries_total, now.prefix_queries_total)
    found = _more(before.prefix_hits_total, now.prefix_hits_total)
    values: dict[str, float | None] = {
        name + "prefix_hits": found / looked_up if looked_up and found is not None else None,
        name + "preemptions": _more(before.preemptions_total, now.preemptions_total),
    }
    earlier = {latency.name: latency for latency in before.latencies}
    for latency in now.latencies:
        old = earlier.get(latency.name)
        series = _LATENCIES.get(latency.name)
        if series is None or old is None or latency.mean is None or latency.count <= old.count:
            continue
        seconds = latency.mean * latency.count - (old.mean or 0.0) * old.count
        values[name + series] = max(0.0, seconds / (latency.count - old.count))
    return values


def _more(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None or now < before else now - before


def _highest(readings: Sequence[Readings], name: str) -> float | None:
    return max((rate for one in readings if (rate := getattr(one, name)) is not None), default=None)


def _present(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}
