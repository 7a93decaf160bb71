"""A host that sends whatever its protocol lets through: every page opens, and the window goes on."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from engine_host.protocol.endpoint.routes import RouteTargets, TargetState
from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.events import (
    EngineReadingsEvent,
    EngineRequestEvent,
    EngineStateEvent,
    EventBase,
    FindingEvent,
    JobDoneEvent,
    LogLineEvent,
    PatchSummaryEvent,
    TelemetryEvent,
)
from engine_host.protocol.host import Gpu, GpuHolder
from engine_host.protocol.jobs import JobKind, JobState
from engine_host.protocol.telemetry import Sample
from tests.hostile.making.models import spoiler
from tests.views.conftest import Stage
from tests.views.samples import engines, presets, routes
from tests.views.samples import host as samples
from tests.views.window.test_main import NAMES

GPUS = tuple(
    Gpu(
        index=place,
        uuid=f"u{place}",
        name="RTX 3090",
        memory_total=24 * samples.GIB,
        memory_used=2 * samples.GIB,
        holders=(GpuHolder(pid=4711, name="other", memory=samples.GIB),),
    )
    for place in range(2)
)
# Whatever it shows, a window that works longer than this for a page is stuck; in seconds of the processor.
PATIENCE = 5.0


def events(change: Callable[[Any], Any]) -> list[EventBase]:
    """One of each kind of event that carries something to show."""
    return [
        EngineStateEvent(engine=change(samples.engine(EngineState.READY))),
        EngineReadingsEvent(engine="engine-1", readings=change(engines.readings())),
        EngineRequestEvent(request=change(samples.request(RequestState.DECODE))),
        TelemetryEvent(sample=change(Sample(at=time.time(), values={"ram.used": 1.0, "gpu0.power": 2.0}))),
        JobDoneEvent(job=change(samples.job(JobKind.ENGINE_BUILD, JobState.FAILED))),
        PatchSummaryEvent(patches=change(samples.applies())),
        LogLineEvent(lines=tuple(change(line) for line in samples.log_lines())),
        FindingEvent(finding=change(presets.missing())),
    ]


@pytest.mark.parametrize("turn", range(3))
async def test_every_page_opens_whatever_the_host_says(stage: Stage, turn: int) -> None:
    change = spoiler(turn * 7)
    host = stage.host
    if turn % 3 == 0:
        host.host = samples.host(gpus=GPUS)
    for part in ("host", "models", "servers", "settings", "installations", "patches", "patch", "applies"):
        setattr(host, part, change(getattr(host, part)))
    host.telemetry, host.presets, host.verdicts = map(change, (host.telemetry, host.presets, host.verdicts))
    told = RouteTargets(engines=("a", "b"), provider=routes.PROVIDER)
    host.routes = {
        "r": change(routes.route("r", told, TargetState.UNKNOWN)),
        "s": change(routes.route("s", told, before=told)),
    }
    host.plan = change(samples.vllm_plan() if turn % 2 else samples.plan())
    for event in events(change):
        host.publish(event)
    await stage.until(lambda: stage.state.engines and stage.state.requests and stage.state.jobs)
    stage.state.outdated.emit("models")
    for name in NAMES:
        began = time.process_time()
        stage.window.go(name)
        stage.window.grab()
        await asyncio.sleep(0.1)
        stage.window.grab()
        assert time.process_time() - began < PATIENCE, name
    # It still hears its host.
    host.publish(LogLineEvent(lines=tuple(samples.log_lines())))
    host.set_engine(samples.engine(EngineState.UNLOADED))
    await stage.until(lambda: all(one.state is EngineState.UNLOADED for one in stage.state.engines.values()))
    assert stage.connection.connected
