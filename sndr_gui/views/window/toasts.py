"""Notices at the window's right, below the header; each leaves by itself unless the pointer is on it."""

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from sndr_gui.host.notices import Notice, Notices
from sndr_gui.kit import formats
from sndr_gui.views.widgets.buttons import button, icon_button
from sndr_gui.views.widgets.labels import SEVERITY_ICONS, IconLabel, text

_SECONDS = {"info": 6, "warning": 12, "error": 30}
WIDTH = 400


class Toast(QFrame):
    """One notice.

    Signals:
        closed: it was read, or its time is over
    """

    closed = Signal()

    def __init__(self, notice: Notice, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("toast")
        self.setFixedWidth(WIDTH)
        self.notice = notice
        said = formats.strip_backticks(notice.text)
        self.setAccessibleName(said)
        sentence = text(said, wrap=True)
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 10, 8, 10)
        line.setSpacing(10)
        line.addWidget(IconLabel(*SEVERITY_ICONS[notice.severity], 18))
        line.addWidget(sentence, 1)
        if notice.action_text and notice.action is not None:
            action = button(notice.action_text, notice.action)
            action.clicked.connect(self.closed)
            line.addWidget(action)
        line.addWidget(icon_button("x", "Close this notice", self.closed.emit))
        self._end = QTimer(self)
        self._end.setSingleShot(True)
        self._end.setInterval(1000 * _SECONDS[notice.severity])
        self._end.timeout.connect(self.closed)
        self._end.start()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Enter:
            self._end.stop()
        elif event.type() == QEvent.Type.Leave:
            self._end.start()
        return super().event(event)


class Toasts(QWidget):
    """The notices that are shown now, newest below."""

    def __init__(self, window: QWidget, notices: Notices) -> None:
        super().__init__(window)
        self._toasts: dict[str, Toast] = {}
        self._body = QVBoxLayout(self)
        self._body.setContentsMargins(0, 0, 0, 0)
        self._body.setSpacing(8)
        notices.posted.connect(self._on_posted)
        notices.withdrawn.connect(self.withdraw)
        window.installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def _on_posted(self, notice: Notice) -> None:
        self.withdraw(notice.key)
        toast = Toast(notice, self)
        self._toasts[notice.key] = toast
        self._body.addWidget(toast)
        toast.closed.connect(self._on_closed)
        while len(self._toasts) > 4:
            self.withdraw(next(iter(self._toasts)))
        self.show()
        self.raise_()
        self._place()

    def _on_closed(self) -> None:
        toast = self.sender()
        if isinstance(toast, Toast):
            self.withdraw(toast.notice.key)

    def withdraw(self, key: str) -> None:
        """Take a notice away."""
        toast = self._toasts.pop(key, None)
        if toast is not None:
            self._body.removeWidget(toast)
            toast.hide()
            toast.deleteLater()
        self.setVisible(bool(self._toasts))
        self._place()

    @property
    def shown(self) -> list[Notice]:
        """The notices that are shown now."""
        return [toast.notice for toast in self._toasts.values()]

    def _place(self) -> None:
        window = self.parentWidget()
        if window is None or not self._toasts:
            return
        height = self._body.heightForWidth(WIDTH) if self._body.hasHeightForWidth() else 0
        self.resize(WIDTH, max(height, self.sizeHint().height()))
        # Below the page's header: at the lower edge it would lie on the composer and its button.
        self.move(window.width() - WIDTH - 28, 80)
