"""The button that starts what ran last once more, where no engine runs."""

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.models.engine.last_ran import LastRan
from sndr_gui.views.widgets.buttons import Button, tip


class StartAgain(Button):
    """Starts what ran last; shown only where something did."""

    def __init__(self, last: LastRan, shortcut: str = "") -> None:
        super().__init__("", has_icon=True)
        self._last, self._keys = last, shortcut
        self.setProperty("primary", "true")
        theme.ButtonIcon(self, "rotate-cw", "on_accent")
        if shortcut:
            self.setShortcut(shortcut)
        self.clicked.connect(last.start)

    def refresh(self, empty: bool) -> bool:
        """Show what can be started again, if anything; return True where it is shown."""
        last = self._last
        shown = empty and last.engine is not None
        self.setVisible(shown)
        if shown:
            self.setText(tr("Starting…") if last.pending else last.label)
            self.setAccessibleName(last.label)
            self.setEnabled(last.can_start)
            self.setToolTip(tip(tr("Start the same again"), self._keys, last.command))
        return shown
