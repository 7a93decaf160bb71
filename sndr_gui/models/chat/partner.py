"""The engine that a lane of a conversation is with: chosen at first, held from the first answer on."""

from __future__ import annotations

from collections.abc import Callable

from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.language import tr
from sndr_gui.host.choice import LIVE_STATES
from sndr_gui.host.session import Session
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.engine.choice import other_than
from sndr_gui.models.engine.start import SERVING


class Partner:
    """One engine of a conversation; before its first message it is the one that `first` returns."""

    def __init__(self, session: Session, first: Callable[[], Engine | None], name: str = "") -> None:
        """`name` is the engine of a conversation that was kept."""
        self._session, self._first = session, first
        self._with: Engine | None = None
        self._name = name

    @property
    def held(self) -> bool:
        """True once the conversation is with one engine."""
        return self._with is not None or bool(self._name)

    @property
    def engine(self) -> Engine | None:
        """The engine of this conversation. It may have ended."""
        state, partner = self._session.state, self._with
        if partner is None:
            return state.live_named(self._name) if self._name else self._first()
        held = state.engines.get(partner.id)
        if held is not None and held.state in LIVE_STATES:
            return held
        # Started again under the same name it is the same model.
        return state.live_named(partner.name) or held or partner

    @property
    def running(self) -> Engine | None:
        """The engine of this conversation, while it runs."""
        engine = self.engine
        here = engine is not None and engine.id in self._session.state.engines
        return engine if here and engine is not None and engine.state in LIVE_STATES else None

    @property
    def serving(self) -> bool:
        """True while it can be asked."""
        engine = self.running
        return engine is not None and engine.state in SERVING

    @property
    def name(self) -> str:
        """The name of the engine, whether it runs or not; empty without one."""
        engine = self.engine
        return engine.name if engine is not None else self._name

    @property
    def model(self) -> str:
        """The engine that answers, by its public name; empty where none runs."""
        engine = self.running
        return engine.name if engine is not None else ""

    @property
    def other(self) -> Engine | None:
        """The engine to go on with where this one ended."""
        return other_than(self._session.state, self.engine) if self.running is None else None

    @property
    def failed(self) -> Engine | None:
        """The engine, when it failed and none runs in its place."""
        engine = self.engine
        return engine if engine is not None and engine.state is EngineState.FAILED else None

    @property
    def blocked_reason(self) -> str:
        """The reason why it cannot be asked, in a sentence; empty where it can."""
        if (engine := self.running) is not None:
            return (
                ""
                if self.serving
                else tr(
                    "{name} is {state}; wait until it is ready.",
                    name=engine.name,
                    state=word_of(engine.state.value),
                )
            )
        if (failed := self.failed) is not None:
            why = f" {failed.problem.message}" if failed.problem is not None else ""
            return tr("{name} failed.{why}", name=failed.name, why=why)
        if self._with is not None:
            return tr("{name}, which this conversation is with, has ended.", name=self._with.name)
        if self._name:
            return tr("{name}, which this conversation was with, does not run.", name=self._name)
        return tr("No engine runs. Start one to chat with it.")

    def hold(self) -> None:
        """Stay with the engine of now."""
        self._with = self.running

    def go_on_with(self, engine: Engine) -> None:
        """Be with another engine from now on."""
        self._with = engine
