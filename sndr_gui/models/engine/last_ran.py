"""The engine that ran last, while none runs: what it was, how it ended, and the same once more."""

from __future__ import annotations

import time

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import MAIN_MEMORY, LaunchPlan
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.engine.start import build_of
from sndr_gui.models.window.actions import Actions


class LastRan:
    """Knows what can be started again as it was."""

    def __init__(self, session: Session, actions: Actions) -> None:
        self._session, self._actions = session, actions

    @property
    def engine(self) -> Engine | None:
        """The engine that ran last; None while one runs, and where none ever did."""
        state = self._session.state
        return None if state.host is None or state.live else state.last_ran

    @property
    def pending(self) -> bool:
        """True while its start was sent and not yet answered."""
        return self._actions.relaunching(self.engine)

    @property
    def can_start(self) -> bool:
        """True while it can be started."""
        return self.engine is not None and self._session.connection.connected and not self._actions.starting

    @property
    def label(self) -> str:
        """The button that starts it."""
        engine = self.engine
        return tr("Start {name} again", name=formats.shortened(engine.name)) if engine is not None else ""

    @property
    def command(self) -> str:
        """The command line that does the same."""
        return self.engine.plan.command if self.engine is not None else ""

    def sentence(self) -> str:
        """Return what it was, what it takes, and how it ended."""
        engine = self.engine
        if engine is None:
            return ""
        parts = [build_of(engine)]
        if engine.context:
            parts.append(tr("{context} tokens of context", context=formats.number(engine.context)))
        parts.extend(memory_of(engine.plan))
        if engine.was_refused:
            was = tr("{name} was to be started: {parts}.", name=engine.name, parts=", ".join(parts))
        else:
            was = tr("{name} ran last: {parts}.", name=engine.name, parts=", ".join(parts))
        return f"{was} {self._end(engine)}".strip()

    @staticmethod
    def _end(engine: Engine) -> str:
        ago = formats.age(time.time() - engine.ended_at) if engine.ended_at is not None else ""
        if engine.state is EngineState.FAILED:
            why = engine.problem
            told = " ".join(part for part in (why.message, why.cause) if part) if why is not None else ""
            if engine.was_refused:
                failed = tr("It was refused {ago}.", ago=ago) if ago else tr("It was refused.")
            else:
                failed = tr("It failed {ago}.", ago=ago) if ago else tr("It failed.")
            return f"{failed} {formats.strip_backticks(told)}".strip()
        return tr("Stopped {ago}.", ago=ago) if ago else ""

    def start(self) -> None:
        """Start the same again."""
        if self.can_start and (engine := self.engine) is not None:
            self._actions.relaunch(engine)


def memory_of(plan: LaunchPlan) -> list[str]:
    """Return the memory that a start was planned to take, in words; nothing where it is not known."""
    needs = [(need.device == MAIN_MEMORY, need.bytes) for need in plan.needs if need.bytes]
    gpus = sum(count for main, count in needs if not main)
    main = sum(count for is_main, count in needs if is_main)
    found = [tr("{size} of GPU memory", size=formats.size(gpus))] if gpus else []
    return found + ([tr("{size} of memory", size=formats.size(main))] if main else [])
