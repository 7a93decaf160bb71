"""The state of an engine and the stages of its start, in words."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

from engine_host.protocol.engines import Engine, EngineState, StageTime
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind, ServerChoice
from sndr_gui.host.choice import STARTING_STATES
from sndr_gui.host.connection import Phase
from sndr_gui.host.session import Session
from sndr_gui.kit import formats

SERVER_NAMES = {
    ServerChoice.PREBUILT: tr("Prebuilt"),
    ServerChoice.BUILT: tr("Built here"),
    ServerChoice.OWN: tr("Your own"),
    ServerChoice.AUTO: tr("Automatic"),
}
STATE_WORDS = {
    EngineState.PREPARING: tr("Preparing"),
    EngineState.STARTING: tr("Starting"),
    EngineState.READY: tr("Ready"),
    EngineState.BUSY: tr("Answering"),
    EngineState.DRAINING: tr("Finishing requests"),
    EngineState.STOPPING: tr("Stopping"),
    EngineState.FAILED: tr("Failed"),
    EngineState.UNLOADED: tr("Stopped"),
}
REFUSED = tr("Refused")
"""The state of an engine of which nothing ever ran."""
SERVING = (EngineState.READY, EngineState.BUSY)
ENDING = (EngineState.DRAINING, EngineState.STOPPING)


class PageMode(StrEnum):
    """The state of a page about one engine."""

    CONNECTING = "connecting"
    LOST = "lost"
    EMPTY = "empty"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"


def page_mode(session: Session, engine: Engine | None) -> PageMode:
    """Return the state of a page about an engine, or about none."""
    if session.connection.phase is Phase.ENDED:
        return PageMode.LOST
    if session.state.host is None:
        starts = session.connection.phase in (Phase.STARTING, Phase.RECONNECTING)
        return PageMode.CONNECTING if starts else PageMode.LOST
    if engine is None:
        return PageMode.EMPTY
    if engine.state in STARTING_STATES:
        return PageMode.STARTING
    if engine.state in ENDING:
        return PageMode.STOPPING
    return PageMode.RUNNING if engine.state in SERVING else PageMode.FAILED


@dataclass(frozen=True)
class StageRow:
    """One stage of a start, as shown."""

    name: str
    detail: str
    time: str
    state: str


def stage_rows(stages: tuple[StageTime, ...], now: float, failed: bool = False) -> tuple[StageRow, ...]:
    """Return the stages of a start with their durations."""
    rows = []
    for stage in stages:
        end = stage.ended_at if stage.ended_at is not None else now
        state = "done" if stage.ended_at is not None else "running"
        if failed and stage is stages[-1]:
            # The host ends the last stage with the engine; it is the one that did not come to its end.
            state = "failed"
        rows.append(
            StageRow(stage.name, stage.detail, formats.duration(max(0.0, end - stage.started_at)), state)
        )
    return tuple(rows)


def word_for(engine: Engine) -> str:
    """Return the state of an engine in a word or two."""
    return REFUSED if engine.was_refused else STATE_WORDS[engine.state]


def start_age(engine: Engine) -> str:
    """Return the time that a start under way has taken: of its process, as `Engine.ready_after` is."""
    return formats.duration(
        time.time() - (engine.stages[0].started_at if engine.stages else engine.created_at)
    )


def start_failed(engine: Engine) -> bool:
    """Return True when an engine ended before it was ready."""
    return engine.state is EngineState.FAILED and engine.ready_at is None


def build_of(engine: Engine) -> str:
    """Return the engine and its build in a few words."""
    if engine.engine == EngineKind.VLLM:
        return f"vLLM {engine.server_version.removeprefix('vLLM ')}"
    if engine.engine == EngineKind.AUTO:
        return tr("no engine was chosen yet")
    return f"llama.cpp {formats.inside(SERVER_NAMES[engine.server])}"
