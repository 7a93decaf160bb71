"""The engines to choose from on a page: those that run, and on Engine also the starts that ended."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.language import tr
from sndr_gui.host.choice import LIVE_STATES, STARTING_STATES, newest
from sndr_gui.host.state import HostState
from sndr_gui.kit.formats import inside, shortened
from sndr_gui.models.engine.start import SERVING, build_of, word_for


@dataclass(frozen=True)
class EngineEntry:
    """One engine to choose: its id, what tells it from the others, and the tone of its state."""

    id: str
    title: str
    tone: str


def entries(
    state: HostState, shown: Engine | None, *, ended: bool = False, brief: bool = False
) -> tuple[EngineEntry, ...]:
    """Return the engines to choose from, the newest first: all that run, the one shown, and what ended.

    Brief titles hold the name alone.
    """
    chosen = [
        engine for engine in state.engines.values() if ended or engine.state in LIVE_STATES or engine is shown
    ]
    chosen.sort(key=lambda engine: (-engine.created_at, engine.id))
    names = [engine.name for engine in chosen]
    return tuple(
        EngineEntry(engine.id, _title(engine, ended or names.count(engine.name) > 1, brief), tone_of(engine))
        for engine in chosen
    )


def _title(engine: Engine, timed: bool, brief: bool) -> str:
    at = [time.strftime("%H:%M:%S", time.localtime(engine.created_at))] if timed else []
    if brief:
        return "  ·  ".join((shortened(engine.name), *at))
    return "  ·  ".join((engine.name, build_of(engine), *at, state_word(engine)))


def state_word(engine: Engine) -> str:
    """Return the state in a word that requests do not change: a list that somebody has open holds still."""
    return tr("running") if engine.state in SERVING else inside(word_for(engine))


def command_of(state: HostState, engine: Engine | None, *words: str) -> str:
    """Return a command line of this program, with the engine's name behind it where several run."""
    named = [engine.name] if engine is not None and len(state.live) > 1 else []
    return shlex.join(["sndr", *words, *named])


def tone_of(engine: Engine) -> str:
    """Return the tone of an engine's state."""
    if engine.state in STARTING_STATES:
        return "accent"
    if engine.state in SERVING:
        return "good"
    return "bad" if engine.state is EngineState.FAILED and not engine.was_refused else "warn"


def other_than(state: HostState, engine: Engine | None) -> Engine | None:
    """Return the engine to go on with after one that ended: the chosen one, or else the newest."""
    running = state.running
    if running is not None and running is not engine:
        return running
    return newest(one for one in state.live if one is not engine)
