"""The card of what needs attention: alerts that last, and those that nobody has put away."""

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QGridLayout

from engine_host.protocol.language import tr
from sndr_gui.models.home.alerts import AlertRow, Alerts
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import clear, show_part


class AlertsCard(Card):
    """A row for each alert, its time, and the log of an engine that died; hidden while there is none."""

    def __init__(self, model: Alerts, open_logs: Callable[[str], None]) -> None:
        self.away = button(
            tr("Put away"),
            model.put_away,
            hint=tr("They are seen; those that last stay"),
            command="sndr alerts --seen",
        )
        super().__init__(tr("Needs attention"), self.away)
        self._model, self._open_logs = model, open_logs
        self._rows: tuple[AlertRow, ...] = ()
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(0, 1)
        self.body.addLayout(self._grid)
        self.more = text("", "muted")
        self.body.addWidget(self.more)
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the alerts of now."""
        rows = self._model.rows()
        show_part(self, bool(rows))
        set_text(self.more, tr("{more} more: sndr alerts", more=self._model.more))
        self.more.setVisible(self._model.more > 0)
        if rows == self._rows:
            return
        self._rows = rows
        clear(self._grid)
        for place, alert in enumerate(rows):
            self._grid.addWidget(text(alert.text, wrap=True), place, 0)
            self._grid.addWidget(text(alert.when, "warning" if alert.lasts else "muted"), place, 1)
            if alert.engine:
                log = button(
                    tr("Log"), partial(self._open_logs, alert.engine), command=f"sndr logs {alert.engine}"
                )
                log.setAccessibleName(tr("Log of the engine: {text}", text=alert.text))
                self._grid.addWidget(log, place, 2)
