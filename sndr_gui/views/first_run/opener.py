"""Open the first run: by itself at the very first start, and whenever somebody wants it."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from sndr_gui.models.first_run.page import FirstRunModel
from sndr_gui.views.first_run.dialog import FirstRunDialog


class FirstRunOpener(QObject):
    """Shows the dialog once at a time; a second wish brings it to the front. `closed`: a person closed it."""

    closed = Signal()

    def __init__(self, window: QWidget, model: FirstRunModel, go: Callable[[str], object]) -> None:
        """`go` opens a page of this machine's."""
        super().__init__(window)
        self._window, self._model, self._go = window, model, go
        self.dialog: FirstRunDialog | None = None
        model.wanted.connect(self.open)

    def open(self) -> None:
        """Show the dialog beside the window, which goes on."""
        if self.dialog is None:
            self.dialog = FirstRunDialog(self._window, self._model, self._go)
            self.dialog.finished.connect(self._on_finished)
            self.dialog.show()
        else:
            # It stays above its window by itself.
            self.dialog.activateWindow()

    def _on_finished(self) -> None:
        self.dialog = None
        self.closed.emit()
