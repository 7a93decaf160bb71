"""A line that folds what belongs to it, with a chevron that says so."""

from __future__ import annotations

from PySide6.QtCore import Signal

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.views.widgets.buttons import Button


class FoldButton(Button):
    """A flat button that is down while its part is shown.

    Signals:
        unfolded: whether the part is to be shown
    """

    unfolded = Signal(bool)

    def __init__(self, label: str, name: str) -> None:
        super().__init__(label, has_icon=True)
        self.setProperty("flat", "true")
        self.setProperty("fold", "true")
        self.setCheckable(True)
        self._name = name
        self._icon = theme.ButtonIcon(self, "chevron-right", "muted", 14)
        self.toggled.connect(self._on_toggled)
        self._say()

    def _on_toggled(self, down: bool) -> None:
        self._icon.show_icon("chevron-down" if down else "chevron-right")
        self._say()
        self.unfolded.emit(down)

    def _say(self) -> None:
        self.setAccessibleName(f"{(tr('Hide') if self.isChecked() else tr('Show'))} {self._name}")
