"""The models that requests load, each in a row: what it does, when it is stopped, and what can be done."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.endpoint.on_demand import LoadOnDemand, OnDemandModel, OnDemandState
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.language import ntr, tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.home.load_form import LoadForm

Command = Callable[[AsyncControlClient], Awaitable[None]]
_TONES = {
    OnDemandState.LOADABLE: "muted",
    OnDemandState.LOADING: "accent",
    OnDemandState.LOADED: "good",
    OnDemandState.UNLOADING: "warning",
}


@dataclass(frozen=True)
class OnDemandRow:
    """One model, as shown; `load` is True where it can be loaded, and else it can be unloaded."""

    name: str
    state: str
    about: str
    tone: str
    load: bool
    can_act: bool


class OnDemandRows:
    """The rows of the models on demand, and their commands."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sent: set[str] = set()

    def rows(self) -> tuple[OnDemandRow, ...]:
        """Return a row for each model, by name."""
        models = self._session.state.on_demand
        return tuple(self._row(models[name]) for name in sorted(models))

    def load(self, name: str, overrides: Overrides | None = None) -> None:
        """Load one now, as a request would, or with other settings for this load alone."""

        async def work(client: AsyncControlClient) -> None:
            await client.call(
                endpoint_ops.LOAD_ON_DEMAND, LoadOnDemand(overrides=overrides or Overrides()), id=name
            )

        self._send(name, "load", work)

    def ask(self, name: str, show: Callable[[LoadForm], object]) -> None:
        """Read which settings a load of one may be given, and show the form of them."""

        async def work(client: AsyncControlClient) -> None:
            show(LoadForm(name, (await client.call(endpoint_ops.ON_DEMAND_MODEL, id=name)).settings))

        self._send(name, "read the settings of", work)

    def unload(self, name: str) -> None:
        """Drain and stop one."""

        async def work(client: AsyncControlClient) -> None:
            await client.call(endpoint_ops.UNLOAD_ON_DEMAND, id=name)

        self._send(name, "unload", work)

    def remove(self, name: str) -> None:
        """Let no request load it any more."""

        async def work(client: AsyncControlClient) -> None:
            await client.call(endpoint_ops.REMOVE_ON_DEMAND, id=name)

        self._send(name, "remove", work)

    def _send(self, name: str, verb: str, work: Command) -> None:
        if name in self._sent:
            return
        self._sent.add(name)
        self._session.state.on_demand_changed.emit()

        def done() -> None:
            self._sent.discard(name)
            self._session.state.on_demand_changed.emit()

        self._session.command(f"{verb} {name}", work, done=done)

    def _row(self, model: OnDemandModel) -> OnDemandRow:
        loaded = model.state in (OnDemandState.LOADED, OnDemandState.LOADING)
        free = self._session.connection.connected and model.name not in self._sent and not model.by_hand
        return OnDemandRow(
            name=model.name,
            state=state_word(model),
            about=about(model),
            tone="bad" if model.problem is not None and not loaded else _TONES[model.state],
            load=not loaded,
            can_act=free and model.state is not OnDemandState.UNLOADING,
        )


def state_word(model: OnDemandModel, now: float | None = None) -> str:
    """Return what a model does, and when it is stopped."""
    now = time.time() if now is None else now
    if model.state is OnDemandState.LOADING and model.waiting:
        return ntr("loading, {n} request waits", "loading, {n} requests wait", model.waiting)
    if model.state is not OnDemandState.LOADED:
        return word_of(model.state.value)
    if model.by_hand:
        return tr("runs, started by hand")
    if model.unloads_at is None or model.last_used is None:
        return tr("loaded")
    idle = formats.duration(max(now - model.last_used, 0))
    return tr(
        "idle for {idle}, stops in {duration}",
        idle=idle,
        duration=formats.duration(max(model.unloads_at - now, 0)),
    )


def about(model: OnDemandModel) -> str:
    """Return how long a model stays, or why it could not be loaded."""
    if model.problem is not None and model.state is OnDemandState.LOADABLE:
        return model.problem.message
    if model.at_start:
        return tr("{stays}; loaded when the host starts", stays=_stays(model))
    return _stays(model)


def _stays(model: OnDemandModel) -> str:
    if model.pinned:
        return tr("pinned: stays once it is loaded")
    if model.keep_alive < 0:
        return tr("stays until its memory is needed")
    if model.keep_alive == 0:
        return tr("stops after each answer")
    return tr("stops after {duration} without a request", duration=formats.duration(model.keep_alive))
