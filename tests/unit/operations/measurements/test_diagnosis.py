"""Diagnoses: what counts as not measured, and what only did not happen yet; the roofline from the history."""

import time
from dataclasses import replace

from engine_host.core.diagnosis.work import Ceiling, Measured
from engine_host.core.event_log import EventLog
from engine_host.fit.roofline import roofline
from engine_host.gateway.inspection.prefix_lens import PrefixLens
from engine_host.operations.measurements.diagnosis import DiagnosisOperations, _instead, _not_measured
from engine_host.protocol.bench.diagnosis import DiagnosisQuery, SlowReason
from engine_host.protocol.engines import Attention, Engine, EngineState, Readings
from engine_host.protocol.launch.fit import Roofline
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.history import History
from tests.plan_samples import engine_of, plain_plan
from tests.unit.asynchronous import run
from tests.unit.fit.test_report import model, start


def ceiling(streams: int, depth: int | None, length: float | None) -> Roofline:
    """The ceiling of a dense model on an RTX 3090."""
    return roofline(model("dense"), replace(start(), streams=streams, context=depth or 4096), length)


def test_prefix_hits_that_an_engine_counts_are_measured_before_anything_was_looked_up() -> None:
    ready = engine_of(plain_plan(), EngineState.READY)
    counts = ready.model_copy(update={"readings": Readings(at=0.0, prefix_queries_total=0)})
    silent = ready.model_copy(update={"readings": Readings(at=0.0)})
    nothing = Measured({}, 1.0, (), {})
    assert "prefix hits" in _not_measured([silent], nothing)[0]
    assert "prefix hits" not in _not_measured([counts], nothing)[0]


def test_a_bandwidth_that_is_not_known_is_said() -> None:
    ready = engine_of(plain_plan(), EngineState.READY)
    unknown = Measured({}, 1.0, ())
    assert "the bandwidth of its memory" in _not_measured([ready], unknown)[0]
    fix = _instead([ready], unknown)
    assert fix is not None, "what nobody can measure leads on to what can be"
    assert fix.command == f"sndr bench run quick --engine {ready.name}"
    known = Measured({}, 1.0, (), ceilings={ready.id: ceiling})
    assert "the bandwidth of its memory" not in _not_measured([ready], known)[0]
    assert _instead([ready], known) is None


def test_the_roofline_is_read_from_the_history_and_what_costs_nobody_knows_comes_last() -> None:
    plain = Attention(backend="no flash attention", asked=True)
    engine = engine_of(plain_plan(streams=4), EngineState.READY, attention=plain)
    most = ceiling(2, None, None).decode_all_streams
    assert most is not None
    history, now = History(), time.time()
    for second in range(20):
        values = {"requests.running": 2.0, "decode_rate": 0.8 * most, "requests.waiting": float(second > 14)}
        history.add(now - 20 + second, {f"engine.{engine.id}.{name}": one for name, one in values.items()})

    async def known(_engine: Engine) -> Ceiling:
        return ceiling

    events = EventLog()
    diagnosis = DiagnosisOperations(
        lambda: [engine], lambda _: engine, history, PrefixLens(), Gpus(None), events, known
    )
    found = run(diagnosis.diagnose(DiagnosisQuery()))
    events.close()
    assert [one.reason for one in found.causes] == [
        SlowReason.ROOFLINE, SlowReason.QUEUED, SlowReason.ATTENTION_BACKEND
    ]  # fmt: skip
    assert "80 % of the" in found.causes[0].sentence


def test_an_engine_that_was_not_ready_all_the_time_says_since_when_it_was() -> None:
    now = time.time()
    young = engine_of(plain_plan(), EngineState.READY, id="young", name="young", ready_at=now - 30)
    old = engine_of(plain_plan(), EngineState.READY, id="old", name="old", ready_at=now - 3600)

    async def unknown(_engine: Engine) -> Ceiling | None:
        return None

    events = EventLog()
    diagnosis = DiagnosisOperations(
        lambda: [young, old], lambda _: young, History(), PrefixLens(), Gpus(None), events, unknown
    )
    found = run(diagnosis.diagnose(DiagnosisQuery()))
    events.close()
    assert list(found.since_ready) == ["young"]
    assert 30 <= found.since_ready["young"] < 600
