"""The request log of a host: many changes are one event, and each end is told."""

import asyncio

from engine_host.gateway import request_log
from engine_host.gateway.directory import Target
from engine_host.gateway.meter import Figures
from engine_host.gateway.request_log import Entry, RequestLog
from engine_host.protocol.engines import RequestState
from engine_host.protocol.events import EngineRequestEvent, EventBase
from tests.unit.asynchronous import run


class Told:
    """What a log published, and the log."""

    def __init__(self, together: bool) -> None:
        self.events: list[EngineRequestEvent] = []
        self.log = RequestLog(self._take, lambda _: 0, lambda _: 0)
        self.log.together = together

    def _take(self, event: EventBase) -> None:
        assert isinstance(event, EngineRequestEvent)
        self.events.append(event)

    @property
    def states(self) -> list[tuple[str, RequestState]]:
        return [(event.request.id, event.request.state) for event in self.events]

    def open(self, name: str) -> Entry:
        target = Target("e1", "m", 1, 0, 0.0, socket="/s")
        entry = self.log.open(name, target, route="/v1/completions", client="", stream=True)
        entry.admitted()
        return entry


def test_states_within_a_moment_are_one_event_and_each_request_has_its_own() -> None:
    async def go() -> None:
        told = Told(together=True)
        for name in ("a", "b"):
            entry = told.open(name)
            entry.first_content()
            entry.done(Figures(generated_tokens=2))
        told.open("c")
        assert told.events == [], "a list that is asked for has them at once"
        assert [one.state for one in told.log.requests()][1:] == [RequestState.DONE] * 2
        await asyncio.sleep(request_log._TOGETHER * 2)
        assert told.states == [
            ("a", RequestState.DONE),
            ("b", RequestState.DONE),
            ("c", RequestState.PREFILL),
        ]
        assert told.events[0].request.generated_tokens == 2
        told.log.cancel("c")
        told.log.tell()
        assert told.states[3:] == [("c", RequestState.CANCELLED)]
        await asyncio.sleep(request_log._TOGETHER * 2)
        assert len(told.events) == 4, "nothing is told twice"

    run(go())


def test_without_it_each_state_is_told_at_once() -> None:
    async def go() -> None:
        told = Told(together=False)
        told.open("a").done(Figures())
        assert [state for _, state in told.states] == [RequestState.PREFILL, RequestState.DONE]

    run(go())
