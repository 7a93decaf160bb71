"""The settings of this window alone: the end of engines on closing, the first run."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QCheckBox, QSystemTrayIcon

from engine_host.protocol.language import tr
from sndr_gui.models.first_run.page import FirstRunModel
from sndr_gui.models.settings.at_login import AtLoginModel
from sndr_gui.models.settings.look import window_entry
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.views.settings.line import OwnLine
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import SegmentedControl
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import column, row, rule


class WindowCard(Card):
    """The settings of the window, which are of this machine whatever host the page is about."""

    def __init__(
        self,
        model: SettingsModel,
        first_run: FirstRunModel,
        at_login: AtLoginModel,
        tray_here: Callable[[], bool] = QSystemTrayIcon.isSystemTrayAvailable,
    ) -> None:
        super().__init__(tr("This window"))
        self._model, self._at_login, self._tray_here = model, at_login, tray_here
        self.tray = QCheckBox()
        self.tray.setAccessibleName(tr("Icon in the tray"))
        self.tray.clicked.connect(lambda on: model.set_window(tray=on))
        self.desktop = QCheckBox()
        self.desktop.setAccessibleName(tr("Notices on the desktop"))
        self.desktop.clicked.connect(lambda on: model.set_window(desktop_notices=on))
        self.login = QCheckBox()
        self.login.setAccessibleName(tr("Start at login"))
        self.login.clicked.connect(self._on_login)
        self.preset = ChoiceBox(tr("Preset to start at login"))
        self.preset.setFixedWidth(240)
        self.preset.activated.connect(self._on_login)
        self.refusal = text("", "bad", wrap=True)
        self._tray_about = text("", "muted", wrap=True)
        closing = window_entry("on_close")
        self.on_close = SegmentedControl(tuple(name for name, _value in closing.choices), closing.label)
        self.welcome = button(
            tr("Show it"), first_run.wanted.emit, hint=tr("Open the first run again"), command="sndr setup"
        )
        self.welcome.setAccessibleName(tr("Show the first run"))
        for line in (
            OwnLine(closing, self.on_close),
            OwnLine(window_entry("tray"), self.tray, self._tray_about),
            OwnLine(window_entry("desktop_notices"), self.desktop),
            OwnLine(window_entry("at_login"), self.login, field=row(self.preset, self.login)),
        ):
            self.body.addWidget(line)
            self.body.addWidget(rule())
        about = text(
            tr("This machine, models that are here, one start, one measurement."), "muted", wrap=True
        )
        again = row(column(text(tr("First run")), about, spacing=2), self.welcome)
        again.setStretch(0, 1)
        self.body.addLayout(again)
        self.body.addWidget(self.refusal)
        at_login.changed.connect(self._refresh_login)
        self._refresh_login()
        for choice in self.on_close.buttons:
            choice.clicked.connect(self._on_close)

    def refresh(self) -> None:
        """Show the values of now."""
        now = self._model.window
        choices = [value for _name, value in window_entry("on_close").choices]
        self.on_close.buttons[choices.index(now.on_close)].setChecked(True)
        here = self._tray_here()
        self.tray.setChecked(now.tray)
        self.tray.setEnabled(here or now.tray)
        self.desktop.setChecked(now.desktop_notices)
        set_text(self._tray_about, window_entry("tray").help if here else tr("This desktop shows no tray."))

    def read(self) -> None:
        """Read what others may have changed."""
        self._at_login.read()
        self.refresh()

    def _refresh_login(self) -> None:
        entry, problem = self._at_login.entry, self._at_login.problem
        self.login.setChecked(entry.on)
        self.login.setToolTip(tip(tr("Start the window at login"), command=self._at_login.command))
        self.preset.setEnabled(entry.on)
        self.preset.fill(self._at_login.choices(), entry.preset)
        set_text(self.refusal, problem.sentence() if problem is not None else "")
        self.refusal.setVisible(problem is not None)

    def _on_login(self) -> None:
        self._at_login.switch(self.login.isChecked(), str(self.preset.currentData() or ""))

    def _on_close(self) -> None:
        self._model.set_window(on_close=window_entry("on_close").choices[self.on_close.place][1])
