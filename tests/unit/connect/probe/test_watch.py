"""A cancelled request is watched until the engine's counter stands still, by a FAKE host's words."""

import asyncio
from collections.abc import Sequence

import pytest

from engine_host.connect.probe import watch
from engine_host.protocol.endpoint.connect import ProbeOutcome
from engine_host.protocol.engines import Engine, Readings, Request, RequestState
from tests.plan_samples import engine_of, plain_plan

AGENT = "sndr-connect/x"


class _FakeHost:
    """A FAKE host: each look at the engines shows the next reading, and the request as it is told to be."""

    def __init__(self, counts: Sequence[int | None], state: RequestState, agent: str = AGENT) -> None:
        self._counts, self._state, self._agent, self._look = list(counts), state, agent, 0
        self.others = False

    async def engines(self) -> tuple[Engine, ...]:
        """One engine."""
        count = self._counts[min(self._look, len(self._counts) - 1)]
        self._look += 1
        readings = Readings(at=100.0 + self._look, generated_tokens_total=count)
        return (engine_of(plain_plan(), readings=readings),)

    async def requests(self) -> tuple[Request, ...]:
        """The request, and perhaps another."""
        mine = Request(
            id="1", engine="engine-1", model="m", route="r", client=self._agent, state=self._state,
            created_at=90.0, ended_at=100.0,
        )  # fmt: skip
        other = mine.model_copy(update={"id": "2", "client": "curl", "state": RequestState.DECODE})
        return (mine, other) if self.others else (mine,)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_LOOK", 0.001)
    monkeypatch.setattr(watch, "_PATIENCE", 0.3)


def outcome(host: _FakeHost) -> watch.Stopped:
    """The outcome for a connection closed at 99.99."""
    return asyncio.run(watch.wait_until_stopped(host, AGENT, 99.99))


def test_a_counter_that_stands_still() -> None:
    stopped = outcome(_FakeHost([5, 7, 9, 9], RequestState.CANCELLED))
    assert stopped.outcome is ProbeOutcome.PASSED
    assert stopped.detail.startswith("Cancelled 10 ms after the connection was closed")
    assert stopped.detail.endswith("stopped generating, at 9 tokens.")


def test_a_counter_that_goes_on() -> None:
    host = _FakeHost(range(100_000), RequestState.CANCELLED)
    assert outcome(host).outcome is ProbeOutcome.FAILED
    host.others = True
    assert outcome(host).outcome is ProbeOutcome.UNCLEAR


def test_what_cannot_be_told() -> None:
    assert outcome(_FakeHost([None], RequestState.CANCELLED)).outcome is ProbeOutcome.UNCLEAR
    assert outcome(_FakeHost([1], RequestState.CANCELLED, "curl")).outcome is ProbeOutcome.UNCLEAR
    assert outcome(_FakeHost([1], RequestState.DONE)).too_late
    assert outcome(_FakeHost([1], RequestState.DECODE)).outcome is ProbeOutcome.FAILED
