"""The roofline: reached where what was measured is near what the hardware allows, else never told."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine_host.core.diagnosis.slow_causes import causes_of
from engine_host.core.diagnosis.slow_ceilings import beyond, reached
from engine_host.core.diagnosis.work import Measured, busy_of
from engine_host.protocol.bench.diagnosis import SlowCause, SlowReason
from engine_host.protocol.engines import Engine, Readings
from engine_host.protocol.launch.fit import Roofline
from tests.plan_samples import engine_of, plain_plan

Values = Sequence[float | None]


def ceiling(streams: int, depth: int | None, length: float | None) -> Roofline:
    """100 tokens a second a stream that has just begun, 80 with a context behind it."""
    per_step = length or 1.0
    return Roofline(
        decode=100.0 * per_step,
        decode_all_streams=100.0 * streams * per_step,
        all_streams_at_depth=80.0 * streams * per_step,
        prefill=None,
        bytes_per_step=1,
        tokens_per_step=per_step,
    )


def engine(**fields: Any) -> Engine:
    plan = {name: fields.pop(name) for name in ("speculation",) if name in fields}
    return engine_of(plain_plan(streams=4, **plan), id="e", **fields)


def measured(rates: Values, running: Values, **series: Values) -> Measured:
    named = {f"engine.e.{name.replace('__', '.')}": values for name, values in series.items()}
    own = {"engine.e.decode_rate": rates, "engine.e.requests.running": running}
    return Measured(own | named, 1.0, (), ceilings={"e": ceiling})


def found(one: Engine, series: Measured) -> SlowCause | None:
    causes = list(causes_of(busy_of(one, series), series))
    return next((cause for cause in causes if cause.reason is SlowReason.ROOFLINE), None)


def test_an_engine_at_its_ceiling_is_told_with_both_figures() -> None:
    cause = found(engine(), measured([0.0, *[85.0] * 6, *[10.0] * 2], [0.0] + [1.0] * 8))
    assert cause is not None
    assert cause.share == pytest.approx(6 / 8)
    assert cause.evidence["ceiling"] == 100.0
    assert cause.evidence["decode_rate"] == 85.0, "while it was near its ceiling"
    assert "85 tokens a second, 85 % of the 100 that" in cause.sentence
    assert cause.fix is not None
    assert cause.fix.command == "sndr fit m --streams 1"


@pytest.mark.parametrize(
    ("rates", "running"),
    [
        ([70.0] * 9, [1.0] * 9),
        ([85.0] * 4, [1.0] * 4),
        ([85.0] * 9, [2.0] * 9),
        ([None] * 9, [1.0] * 9),
        ([85.0] * 9, [None] * 9),
        ([85.0] * 9, []),
        ([500.0] * 9, [1.0] * 9),
        ([85.0] * 9 + [5.0] * 100, [1.0] * 109),
    ],
    ids=["below", "a moment", "two streams", "no rate", "no streams", "absent", "beyond", "seldom"],
)
def test_what_is_no_roofline(rates: Values, running: Values) -> None:
    assert found(engine(), measured(rates, running)) is None


def test_without_a_ceiling_nothing_is_told() -> None:
    one, series = engine(), measured([85.0] * 9, [1.0] * 9)
    without = Measured(series.series, 1.0)
    assert found(one, without) is None
    assert not beyond(reached(busy_of(one, without), without))


def test_what_cannot_be_is_not_believed() -> None:
    one, series = engine(), measured([130.0] * 9, [1.0] * 9)
    assert beyond(reached(busy_of(one, series), series))


def test_streams_are_judged_by_their_number() -> None:
    cause = found(engine(), measured([30.0] * 5 + [350.0] * 7, [1.0] * 5 + [4.0] * 7))
    assert cause is not None
    assert cause.evidence["streams"] == 4.0
    assert cause.share == pytest.approx(7 / 12)


def test_what_lies_behind_each_stream_lowers_the_ceiling() -> None:
    holds = engine(readings=Readings(at=0.0, kv_capacity=1000))
    series = measured([65.0] * 9, [1.0] * 9, kv__share=[0.5] * 9, kv__cached=[0.2] * 9)
    cause = found(holds, series)
    assert cause is not None
    assert cause.evidence["context"] == 300.0
    assert cause.evidence["ceiling"] == 80.0
    assert found(engine(), series) is None, "how long the context is was not counted"


def test_drafts_count_as_they_are_accepted() -> None:
    rates, running = [250.0] * 9, [1.0] * 9
    drafting = engine(speculation="mtp")
    assert found(drafting, measured(rates, running)) is None, "how many are accepted is not known"
    cause = found(drafting, measured(rates, running, acceptance_length=[3.0] * 9))
    assert cause is not None
    assert cause.evidence["ceiling"] == 300.0
