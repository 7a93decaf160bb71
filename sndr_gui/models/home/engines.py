"""The engines that run side by side, each in a row: what it is, how it does, and what can be done with it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.language import tr
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.engine.choice import state_word, tone_of
from sndr_gui.models.engine.now import decode_now
from sndr_gui.models.engine.start import ENDING, SERVING, build_of
from sndr_gui.models.window.actions import Actions
from sndr_gui.models.window.stop_engine import StopEngine


@dataclass(frozen=True)
class EngineRow:
    """One engine, as shown; `stop` is the label of its button."""

    id: str
    name: str
    about: str
    state: str
    tone: str
    rate: str
    requests: str
    chosen: bool
    answers: bool
    can_stop: bool
    stop: str
    asks: bool


def engine_rows(session: Session, actions: Actions, stopping: StopEngine) -> tuple[EngineRow, ...]:
    """Return the engines that run and the chosen one, in the order of their starts; none for a single one."""
    state = session.state
    shown = list(state.live)
    if state.engine is not None and state.engine not in shown:
        shown.append(state.engine)
    if len(shown) < 2:
        return ()
    return tuple(_row(engine, session, actions, stopping) for engine in shown)


def _row(engine: Engine, session: Session, actions: Actions, stopping: StopEngine) -> EngineRow:
    state = session.state
    ends = engine.state in ENDING or actions.stopping(engine)
    serves = engine.state in SERVING
    up = (
        "  ·  " + tr("up {duration}", duration=formats.duration(time.time() - engine.ready_at))
        if serves and engine.ready_at
        else ""
    )
    count, asks = state.open_requests(engine.id), bool(stopping.question(engine))
    return EngineRow(
        id=engine.id,
        name=engine.name,
        about=f"{build_of(engine)}{up}",
        state=state_word(engine),
        tone=tone_of(engine),
        rate=_rate(engine, session),
        requests=formats.plural(count, "request") if count else tr("idle") if serves else "",
        chosen=engine is state.engine,
        answers=serves,
        can_stop=session.connection.connected and not ends and engine in state.live,
        stop=tr("Stopping…") if ends else tr("Stop anyway") if asks else tr("Stop"),
        asks=asks,
    )


def _rate(engine: Engine, session: Session) -> str:
    """Return the tokens a second of all streams, as measured last; a dash where nothing was measured."""
    if engine.state not in (*SERVING, EngineState.DRAINING):
        return formats.UNMEASURED
    return formats.rate(decode_now(session.state, engine))
