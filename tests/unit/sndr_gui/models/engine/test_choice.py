"""The engines to choose from, and the command lines that name one where several run."""

import shlex

from engine_host.protocol.engines import Engine, EngineState
from sndr_gui.host.state import HostState
from sndr_gui.models.engine.choice import command_of, entries, other_than
from tests.views.samples import host as samples


def known(*engines: Engine) -> HostState:
    state = HostState()
    for engine in engines:
        state.set_engine(engine)
    return state


def engine(name: str, at: float, state: EngineState = EngineState.READY) -> Engine:
    return samples.engine(state, id=f"{name}-{at:.0f}", name=name, created_at=at)


def test_what_ended_is_offered_where_it_is_about_starts() -> None:
    state = known(engine("a", 1), engine("b", 2), engine("c", 3, EngineState.FAILED))
    assert [entry.id for entry in entries(state, state.engine)] == ["b-2", "a-1"]
    assert [entry.id for entry in entries(state, state.engine, ended=True)] == ["c-3", "b-2", "a-1"]
    tones = {entry.id: entry.tone for entry in entries(state, state.engine, ended=True)}
    assert tones == {"a-1": "good", "b-2": "good", "c-3": "bad"}


def test_starts_of_one_name_are_told_apart_by_their_times() -> None:
    state = known(engine("a", 1), engine("a", 5))
    first, second = entries(state, state.engine, brief=True)
    assert first.title != second.title
    assert entries(known(engine("a", 1), engine("b", 2)), None, brief=True)[0].title == "b"


def test_a_command_names_the_engine_only_where_several_run() -> None:
    alone = known(engine("a", 1))
    assert command_of(alone, alone.engine, "patches", "status") == "sndr patches status"
    hostile = engine("; rm -rf ~ #", 2)
    several = known(engine("a", 1), hostile)
    said = command_of(several, hostile, "stop", "--now")
    assert shlex.split(said) == ["sndr", "stop", "--now", "; rm -rf ~ #"]


def test_what_to_go_on_with_is_the_chosen_one_or_the_newest() -> None:
    first, second = engine("a", 1), engine("b", 2)
    state = known(first, second)
    assert other_than(state, first) == second
    state.choose(first)
    assert other_than(state, second) == first
    assert other_than(known(first), first) is None
