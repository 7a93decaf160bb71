"""The needs of a host for attention: alerts that last or were not put away, another host in its place."""

from __future__ import annotations

import time
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.bench.alerts import Alert, AlertQuery, SeeAlerts
from engine_host.protocol.engines import EngineState
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.window.lifetime import replacement, run_again

MOST = 5
"""Alerts that are shown; `sndr alerts` lists all."""


@dataclass(frozen=True)
class AlertRow:
    """One alert, as shown; `engine` is the id of an engine that died, whose log tells more."""

    text: str
    when: str
    lasts: bool
    engine: str


class Alerts(QObject):
    """The alerts of the host that the page is about, read while the page is shown.

    Signals:
        changed: the list is new
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._found: tuple[Alert, ...] = ()
        self._shown = False
        self._replaced: tuple[str, float] | None = None
        self._lost: tuple[str, ...] = ()
        session.connection.replaced.connect(self._on_replaced)
        session.state.outdated.connect(self._on_outdated)
        session.state.engines_changed.connect(self._on_engines)
        session.connection.changed.connect(self.read)

    def rows(self) -> tuple[AlertRow, ...]:
        """Return the newest alerts."""
        now = time.time()
        # A notice of it goes away; who was elsewhere finds it here.
        said = self._replaced
        own = (AlertRow(said[0], formats.age(now - said[1]), lasts=False, engine=""),) if said else ()
        return own + tuple(
            AlertRow(
                alert.told,
                tr("for {duration}", duration=formats.duration(now - alert.at))
                if alert.ended_at is None
                else formats.age(now - alert.at),
                alert.ended_at is None,
                alert.engine or "",
            )
            for alert in self._listed[:MOST]
        )

    @property
    def more(self) -> int:
        """The number of alerts that are not shown."""
        return max(0, len(self._listed) - MOST)

    @property
    def _listed(self) -> tuple[Alert, ...]:
        """All but the death that the page tells in full below, with its log and what to do."""
        engine = self._session.state.engine
        if engine is None or engine.state is not EngineState.FAILED or engine.problem is None:
            return self._found
        return tuple(alert for alert in self._found if alert.engine != engine.id)

    def set_shown(self, shown: bool) -> None:
        """Read them while somebody looks."""
        self._shown = shown
        self.read()

    def read(self) -> None:
        """Read them again, if somebody looks and a host is there."""
        if not self._shown or not self._session.connection.connected:
            return

        async def work(client: AsyncControlClient) -> None:
            self._show((await client.call(ops.ALERTS, AlertQuery())).alerts)

        # A host of an older version knows none.
        self._session.read("read the alerts", work, failed=_ignored)

    def put_away(self) -> None:
        """Mark all as seen; those that last stay."""
        self._replaced = None
        self.changed.emit()

        async def work(client: AsyncControlClient) -> None:
            self._show((await client.call(ops.SEE_ALERTS, SeeAlerts())).alerts)

        self._session.command("put the alerts away", work)

    def _on_replaced(self, ended: tuple[str, ...]) -> None:
        self._replaced, self._lost = (replacement(self._session, ended), time.time()), ended
        self.changed.emit()

    def _on_engines(self) -> None:
        """Say no more of engines that ended with another host once they run again, nor a death twice."""
        if run_again(self._session, self._lost):
            self._replaced, self._lost = None, ()
        self.changed.emit()

    def _on_outdated(self, part: str) -> None:
        if part == "alerts":
            self.read()

    def _show(self, found: tuple[Alert, ...]) -> None:
        if found != self._found:
            self._found = found
            self.changed.emit()


def _ignored(_error: HostError) -> None:
    """Leave the list as it is."""
