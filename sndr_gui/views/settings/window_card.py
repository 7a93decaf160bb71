"""The settings of this window alone: its colours, the end of engines on closing, the first run."""

from __future__ import annotations

from sndr_gui.kit.settings import OnClose, ThemeChoice
from sndr_gui.models.first_run.page import FirstRunModel
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import SegmentedControl
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import column, row, rule

_THEMES = (("System", ThemeChoice.SYSTEM), ("Light", ThemeChoice.LIGHT), ("Dark", ThemeChoice.DARK))
_ON_CLOSE = (("Ask", OnClose.ASK), ("Keep running", OnClose.KEEP), ("Stop", OnClose.END))


class WindowCard(Card):
    """The settings of the window, which are of this machine whatever host the page is about."""

    def __init__(self, model: SettingsModel, first_run: FirstRunModel) -> None:
        super().__init__("This window")
        self._model = model
        self.themes = SegmentedControl(tuple(name for name, _ in _THEMES), "Theme")
        self.on_close = SegmentedControl(tuple(name for name, _ in _ON_CLOSE), "Engines on closing")
        self.welcome = button(
            "Show it", first_run.wanted.emit, hint="Open the first run again", command="sndr setup"
        )
        self.welcome.setAccessibleName("Show the first run")
        rows = (
            ("Theme", "System follows the desktop.", self.themes),
            ("Engines on closing", "What becomes of engines that would end with the window.", self.on_close),
            ("First run", "This machine, models that are here, one start, one measurement.", self.welcome),
        )
        for number, (name, about, control) in enumerate(rows):
            if number:
                self.body.addWidget(rule())
            self.body.addLayout(row(column(text(name), text(about, "muted"), spacing=2), None, control))
        for choice in self.themes.buttons:
            choice.clicked.connect(self._on_theme)
        for choice in self.on_close.buttons:
            choice.clicked.connect(self._on_close)

    def refresh(self) -> None:
        """Show the values of now."""
        now = self._model.window
        self.themes.buttons[[one for _, one in _THEMES].index(now.theme)].setChecked(True)
        self.on_close.buttons[[one for _, one in _ON_CLOSE].index(now.on_close)].setChecked(True)

    def _on_theme(self) -> None:
        self._model.set_theme(_THEMES[self.themes.place][1])

    def _on_close(self) -> None:
        self._model.set_window(on_close=_ON_CLOSE[self.on_close.place][1])
