"""The consequences of restarting the engine without a patch, shown before it is done."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.language import ntr, tr
from sndr_gui.host.state import HostState
from sndr_gui.kit import formats
from sndr_gui.models.engine.choice import command_of

_LOADED = (EngineState.READY, EngineState.BUSY, EngineState.DRAINING)


@dataclass(frozen=True)
class Restart:
    """One restart to agree to; `cuts` says which answers it may cut off, empty where none is under way."""

    engine: str
    title: str
    does: str
    cuts: str
    also: str
    command: str


def restart_of(
    state: HostState, engine: Engine | None, patch: str, needed_by: tuple[str, ...]
) -> Restart | None:
    """Return the restart to confirm; None where nothing would be lost by it."""
    open_now = state.open_requests(engine.id) if engine is not None else 0
    if engine is None or (engine.state not in _LOADED and not open_now):
        return None
    took = engine.ready_after
    last = (
        (" " + tr("Its last start took {duration}.", duration=formats.duration(took)))
        if took is not None
        else ""
    )
    cuts = ""
    if open_now:
        cuts = ntr(
            "{n} request is running: it has a few seconds to finish, and what is not finished then is "
            "cut off.",
            "{n} requests are running: they have a few seconds to finish, and what is not finished then is "
            "cut off.",
            open_now,
        )
    also = (
        tr("Left out as well, because they need it: {needed_by}.", needed_by=", ".join(needed_by))
        if needed_by
        else ""
    )
    return Restart(
        engine=engine.id,
        title=tr("Start {name} without {patch}?", name=engine.name, patch=patch),
        does=tr(
            "{name} is stopped and started again with the same settings. It answers "
            "nothing in between, and what it has cached is lost.{last}",
            name=engine.name,
            last=last,
        ),
        cuts=cuts,
        also=also,
        command=command_of(state, engine, "patches", "without", patch),
    )
