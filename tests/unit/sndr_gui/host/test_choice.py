"""Which engine the window is about: chosen, kept while others start, and replaced when it is gone."""

from dataclasses import replace

from engine_host.protocol.engines import Engine, EnginePage, EngineState
from engine_host.protocol.jobs import JobPage
from engine_host.protocol.models import ModelPage
from sndr_gui.host.snapshot import Snapshot
from sndr_gui.host.state import HostState
from tests.views.samples import host as samples


def engine(name: str, at: float, state: EngineState = EngineState.READY, **changes: object) -> Engine:
    return samples.engine(state, id=f"{name}-{at:.0f}", name=name, created_at=at, **changes)


def snapshot(*engines: Engine) -> Snapshot:
    return Snapshot(
        run_id="run-1",
        seq=0,
        host=samples.host(),
        engines=EnginePage(seq=0, engines=engines),
        jobs=JobPage(seq=0, jobs=()),
        models=ModelPage(seq=0, models=(), folders=()),
        servers=samples.servers(),
        settings=samples.settings(),
        requests=(),
    )


def loaded(*engines: Engine) -> HostState:
    state = HostState()
    state.load(snapshot(*engines))
    return state


def chosen(state: HostState) -> str:
    return state.engine.id if state.engine is not None else ""


def test_the_newest_that_runs_is_chosen_at_first_and_none_where_there_is_none() -> None:
    assert loaded().engine is None
    assert chosen(loaded(engine("a", 1), engine("b", 2), engine("c", 3, EngineState.FAILED))) == "b-2"


def test_another_one_that_starts_takes_nothing_away() -> None:
    state = loaded(engine("a", 1))
    state.set_engine(engine("b", 2, EngineState.STARTING))
    assert chosen(state) == "a-1"
    state.choose(state.engines["b-2"])
    state.set_engine(engine("c", 3))
    assert chosen(state) == "b-2"
    assert [one.id for one in state.live] == ["a-1", "b-2", "c-3"]


def test_a_chosen_one_that_fails_stays_and_one_that_nobody_chose_gives_way() -> None:
    state = loaded(engine("a", 1), engine("b", 2))
    state.set_engine(engine("b", 2, EngineState.FAILED))
    assert chosen(state) == "a-1"
    state.choose(state.engines["a-1"])
    state.set_engine(engine("c", 3))
    state.set_engine(engine("a", 1, EngineState.FAILED))
    assert chosen(state) == "a-1"
    assert state.running is None
    state.set_engine(engine("a", 1, EngineState.UNLOADED))
    assert chosen(state) == "c-3"


def test_the_same_model_started_again_stays_chosen() -> None:
    state = loaded(engine("a", 1), engine("b", 2))
    state.choose(state.engines["a-1"])
    state.set_engine(engine("a", 3, EngineState.STARTING))
    state.set_engine(engine("c", 4))
    state.set_engine(engine("a", 1, EngineState.UNLOADED))
    assert chosen(state) == "a-3"


def test_a_failed_start_that_is_looked_up_is_not_taken_away_by_its_successor() -> None:
    state = loaded(engine("a", 1, EngineState.FAILED), engine("a", 2))
    state.choose(state.engines["a-1"])
    state.set_engine(engine("a", 3))
    assert chosen(state) == "a-1"


def test_the_choice_survives_a_reconnect_and_a_host_that_knows_the_engine_by_another_id() -> None:
    state = loaded(engine("a", 1), engine("b", 2))
    state.choose(state.engines["a-1"])
    state.load(snapshot(engine("a", 1), engine("b", 2)))
    assert chosen(state) == "a-1"
    state.load(snapshot(engine("a", 5), engine("b", 6)))
    assert chosen(state) == "a-5"
    state.load(snapshot(engine("b", 6)))
    assert chosen(state) == "b-6"


def test_a_change_of_the_choice_is_told_and_no_change_is_not() -> None:
    state = loaded(engine("a", 1), engine("b", 2))
    told: list[str] = []
    state.engines_changed.connect(lambda: told.append(chosen(state)))
    state.choose(state.engines["a-1"])
    state.choose(state.engines["a-1"])
    assert told == ["a-1"]


def test_who_stopped_one_is_not_shown_what_failed_before_it() -> None:
    old = engine("old", 1, EngineState.FAILED, ended_at=2.0)
    state = loaded(old, engine("mine", 5, ready_at=6.0))
    assert chosen(state) == "mine-5"
    state.set_engine(engine("mine", 5, EngineState.UNLOADED, ready_at=6.0, ended_at=9.0))
    assert state.engine is None
    assert state.last_ran is not None
    assert state.last_ran.name == "mine"
    state.choose(old)
    assert chosen(state) == "old-1", "it is there to be looked at"
    state.set_engine(engine("next", 10, EngineState.FAILED, ended_at=11.0))
    state.set_engine(engine("old", 1, EngineState.UNLOADED))
    assert chosen(state) == "next-10", "what failed since is news"


def test_an_engine_that_was_stopped_before_the_window_came_has_not_failed() -> None:
    stopped = engine("a", 1, EngineState.UNLOADED, ready_at=2.0, ended_at=3.0)
    state = HostState()
    found = snapshot(stopped, engine("b", 0, EngineState.FAILED, ended_at=1.0))
    state.load(replace(found, engines=found.engines.model_copy(update={"last": stopped})))
    assert state.engine is None
    assert state.last_ran == stopped
