"""The engine that ran last is known over restarts of the host, and nothing else takes its place."""

from pathlib import Path

import pytest

from engine_host.core.store import Store
from engine_host.engines.last_ran import LastRan
from engine_host.protocol.engines import EngineState
from engine_host.protocol.events import EngineStateEvent
from engine_host.protocol.jobs import Job, JobKind, JobState
from tests.views.samples import host as samples

READY, STOPPED, FAILED = EngineState.READY, EngineState.UNLOADED, EngineState.FAILED


def told(name: str, at: float, state: EngineState, **changes: object) -> EngineStateEvent:
    found = {"id": name, "name": name, "created_at": at, "ready_at": at + 1, "last_lines": ("a", "b")}
    return EngineStateEvent(engine=samples.engine(state, **(found | changes)))


class Kept:
    """A store over several runs of a host."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "store.db"
        self.jobs: list[Job] = []
        self.writes = 0

    def run(self, *events: EngineStateEvent) -> tuple[str, EngineState] | None:
        store = Store(self._path)
        put, last = store.put, LastRan(store, lambda: self.jobs)

        def counted(kind: str, identifier: str, at: float, body: str) -> None:
            self.writes += 1
            put(kind, identifier, at, body)

        store.put = counted  # type: ignore[method-assign]
        for event in events:
            last.take(event)
        store.close()
        return (last.engine.name, last.engine.state) if last.engine is not None else None


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_it_is_known_after_a_restart_with_how_it_ended(kept: Kept) -> None:
    assert kept.run() is None
    assert kept.run(told("a", 1, READY)) == ("a", READY)
    assert kept.run() == ("a", STOPPED), "the host was killed: nothing runs"
    assert kept.run(told("a", 1, FAILED)) == ("a", FAILED)
    assert kept.run() == ("a", FAILED)


def test_requests_that_come_and_go_write_nothing(kept: Kept) -> None:
    kept.run(told("a", 1, READY), *(told("a", 1, EngineState.BUSY), told("a", 1, READY)) * 50)
    assert kept.writes == 1


def test_a_start_that_came_to_nothing_and_an_older_one_beside_it_do_not_count(kept: Kept) -> None:
    assert kept.run(told("a", 1, READY), told("b", 2, FAILED, ready_at=None)) == ("a", READY)
    assert kept.run(told("old", 3, READY), told("new", 4, READY), told("old", 3, STOPPED)) == ("new", READY)
    ended = (told("old", 3, READY), told("new", 4, READY), told("new", 4, STOPPED), told("old", 3, STOPPED))
    assert kept.run(*ended) == ("old", STOPPED), "it ran longest"


@pytest.mark.parametrize("kind", [JobKind.PATCH_BISECT, JobKind.BENCH_SWEEP])
def test_what_a_trial_starts_was_chosen_by_nobody(kept: Kept, kind: JobKind) -> None:
    kept.run(told("mine", 1, READY))
    kept.jobs = [samples.job(kind, JobState.RUNNING)]
    assert kept.run(told("trial", 2, READY), told("trial", 2, STOPPED)) == ("mine", STOPPED)


def test_what_another_version_wrote_stops_nothing(kept: Kept, tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db")
    store.put("last engine", "last", 1.0, '{"id": "x"}')
    store.close()
    assert kept.run() is None
    assert kept.run(told("a", 1, READY)) == ("a", READY)
