"""The offset of another machine's clock, from whole seconds that may be a second old."""

import json
from email.utils import formatdate

import pytest

from engine_host.client.exchange import answer_of, event_of, query_of, request_of
from engine_host.core.outside.host_clock import HostClock
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import EnergyQuery, TelemetryQuery

NOW = 1_800_000_000.25


def heard(clock: HostClock, ahead: float, took: float = 0.1) -> float:
    """What a clock says after an answer of a host that is so many seconds ahead."""
    clock.hear(formatdate(NOW + ahead - 0.5, usegmt=True), NOW, NOW + took)
    return clock.ahead


@pytest.mark.parametrize("ahead", [7200.0, -7200.0, 10.0, -10.0, 86_400.0 * 400])
def test_a_clock_that_is_off_is_measured_within_two_seconds_and_may_jump(ahead: float) -> None:
    clock = HostClock()
    first = heard(clock, ahead)
    assert first == pytest.approx(ahead, abs=2.0)
    assert heard(clock, ahead + 0.9) == first, "what was shown stays where it is"
    assert heard(clock, ahead + 3600.0) == pytest.approx(ahead + 3600.0, abs=2.0)
    assert heard(clock, 0.0) == 0.0


@pytest.mark.parametrize("ahead", [0.0, 1.5, -1.5])
def test_clocks_that_agree_are_left_alone(ahead: float) -> None:
    assert heard(HostClock(), ahead) == 0.0


def test_what_tells_nothing_is_no_offset() -> None:
    clock = HostClock()
    for date in (None, "", "soon", "Thu, 99 Jan 1970", formatdate(0), formatdate(250_000_000_000)):
        clock.hear(date, NOW, NOW + 0.1)
        assert clock.ahead == 0.0
    assert heard(clock, 7200.0, took=30.0) == 0.0, "nobody knows when that was written"
    assert heard(clock, 7200.0, took=-3600.0) == 0.0, "the clock here was set meanwhile"


def test_times_are_by_the_clock_of_who_reads_them_and_asks() -> None:
    line = {"source": "host", "number": 1, "at": NOW + 7200.0, "severity": "info", "text": "x"}
    event = '{"kind": "log.line", "seq": 1, "at": %f, "lines": [%s]}'
    page = '{"seq": 1, "step": 1.0, "series": [{"name": "a", "unit": "", "title": "", "source": "", '
    page += f'"at": [{NOW + 7200.0}, {NOW + 7201.0}], "values": [1.0, 2.0]}}]}}'
    told = answer_of(ops.TELEMETRY, page.encode(), 7200.0).series[0]
    assert told.at == (NOW, NOW + 1.0)
    assert answer_of(ops.TELEMETRY, page.encode()).series[0].at[0] == NOW + 7200.0
    read = event_of(event % (NOW + 7200.0, json.dumps(line)), 7200.0)
    assert read is not None
    assert read.at == pytest.approx(NOW)
    assert read.lines[0].at == pytest.approx(NOW)  # type: ignore[union-attr]
    asked = TelemetryQuery(names=("a",), since=NOW, step=5.0)
    assert query_of(asked, 7200.0) == {"names": "a", "since": NOW + 7200.0, "step": 5.0}
    assert request_of(ops.ENERGY, EnergyQuery(since=NOW), {}, -60.0).query == {"since": NOW - 60.0}
    early = answer_of(ops.TELEMETRY, page.encode(), 1e9).series[0]
    assert early.at[0] < NOW
