"""The base of every dialog of the window."""

from PySide6.QtWidgets import QDialog, QWidget


class Dialog(QDialog):
    """A dialog that is deleted when it is closed; `open` it, for `exec` would block the event loop."""

    def __init__(self, parent: QWidget, title: str) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.finished.connect(self._on_finished)

    def _on_finished(self, _result: int) -> None:
        # After close() alone: a hidden dialog that deletes itself at once takes its signal with it.
        self.deleteLater()
