"""The last looks of the watchdogs of a host's services, and the changes while nobody was there."""

from __future__ import annotations

import time

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import WatchdogState
from sndr_gui.kit import formats
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.problems import ProblemBox

_NONE = tr(
    "No service there has a watchdog. A service that is written down has one: it "
    "asks the engine for a token every two minutes, restarts it where it has to, "
    "and leaves its state to be read."
)
_UNREAD = tr("Nobody has asked the machine yet.")


class WatchdogsSection(QWidget):
    """The watchdogs, and their events."""

    def __init__(self, model: HostDetailModel) -> None:
        super().__init__()
        self._model = model
        self.read = button(
            tr("Read"),
            model.read_watchdogs,
            icon="refresh-cw",
            hint=tr("Ask the machine what its watchdogs saw"),
            command=f"sndr host watch {model.name} --events",
        )
        card = Card(tr("Watchdogs"), self.read)
        self.problem = ProblemBox()
        self.table = PlainTable(tr("Watchdogs"))
        self.nothing = text(_UNREAD, "muted", wrap=True)
        self.written = CopyField("sndr launch PRESET --render systemd", tr("the command"))
        for part in (self.problem, self.table, self.nothing, self.written):
            card.body.addWidget(part)
        changes = Card(tr("What changed"))
        self.events = PlainTable(tr("What changed"))
        self.quiet = text(tr("Nothing has changed that a watchdog wrote down."), "muted", wrap=True)
        changes.body.addWidget(self.events)
        changes.body.addWidget(self.quiet)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(14)
        lines.addWidget(card)
        lines.addWidget(changes)
        if model.is_connected:
            model.read_watchdogs()

    def refresh(self) -> None:
        """Show what was last read."""
        model, page = self._model, self._model.watchdogs
        self.read.setEnabled(model.is_connected and not model.pending("watchdogs"))
        problem = model.problems.get("watchdogs")
        self.problem.setVisible(problem is not None)
        if problem is not None:
            self.problem.show_problem(problem)
        found = page.watchdogs if page is not None else ()
        self.table.show_rows(
            (tr("Service"), tr("State"), tr("Looked"), tr("Restarts"), tr("Why")),
            tuple(_row(one, page.read_at) for one in found) if page is not None else (),
        )
        set_text(self.nothing, _NONE if page is not None else _UNREAD)
        self.nothing.setVisible(not found)
        self.written.setVisible(page is not None and not found)
        events = sorted(((event, one) for one in found for event in one.events), key=lambda pair: -pair[0].at)
        rows = tuple(
            (
                time.strftime("%Y-%m-%d %H:%M", time.localtime(event.at)),
                one.service,
                event.state.replace("_", " "),
                event.why,
            )
            for event, one in events
        )
        self.events.show_rows((tr("At"), tr("Service"), tr("State"), tr("Why")), rows)
        self.quiet.setVisible(not rows)


def _row(one: WatchdogState, now: float) -> tuple[str, ...]:
    looked = tr("not yet") if one.at is None else formats.age(max(0.0, now - one.at))
    return one.service, one.state.replace("_", " "), looked, str(one.restarts), one.why
