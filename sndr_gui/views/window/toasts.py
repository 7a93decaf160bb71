"""Notices at the window's right, below the header; each leaves by itself unless the pointer is on it."""

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from engine_host.client.language import tr
from sndr_gui.host.notices import Notice, Notices
from sndr_gui.kit import formats
from sndr_gui.views.widgets.buttons import button, icon_button
from sndr_gui.views.widgets.labels import SEVERITY_ICONS, IconLabel, text

_SECONDS = {"info": 6, "warning": 12, "error": 30}
WIDTH = 400
# Longer texts lie on the page that they are about, and are opened by whoever wants the rest.
_BRIEF = 160


def brief(said: str) -> str:
    """Return the first sentences of a text that are short enough together."""
    if len(said) <= _BRIEF:
        return said
    end = max(said.rfind(stop, 0, _BRIEF) for stop in (". ", "! ", "? ")) + 1
    return said[:end] if end else said[: _BRIEF - 1].rpartition(" ")[0] + " …"


class Toast(QFrame):
    """One notice.

    Signals:
        closed: it was read, or its time is over
        opened: all of its text is shown, which takes more room
    """

    closed = Signal()
    opened = Signal()

    def __init__(self, notice: Notice, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("toast")
        self.setFixedWidth(WIDTH)
        self.notice = notice
        said = formats.strip_backticks(notice.text)
        self.setAccessibleName(said)
        self.sentence = text(brief(said), wrap=True)
        self._said = said
        self.more = button(tr("More"), self._on_more, kind="flat", hint=tr("Show all of it"))
        self.more.setAccessibleName(tr("Show all of this notice"))
        self.more.setVisible(self.sentence.text() != said)
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 10, 8, 10)
        line.setSpacing(10)
        line.addWidget(IconLabel(*SEVERITY_ICONS[notice.severity], 18))
        line.addWidget(self.sentence, 1)
        line.addWidget(self.more)
        if notice.action_text and notice.action is not None:
            action = button(notice.action_text, notice.action)
            action.clicked.connect(self.closed)
            line.addWidget(action)
        line.addWidget(icon_button("x", tr("Close this notice"), self.closed.emit))
        self._end = QTimer(self)
        self._end.setSingleShot(True)
        self._end.setInterval(1000 * _SECONDS[notice.severity])
        self._end.timeout.connect(self.closed)
        self._end.start()

    def _on_more(self) -> None:
        self.sentence.setText(self._said)
        self.more.hide()
        self.updateGeometry()
        self._end.start()
        self.opened.emit()

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
        toast.opened.connect(self._place)
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
        # What changed within a notice is told to the layouts around it only when events are handled.
        self._body.invalidate()
        self._body.activate()
        height = self._body.heightForWidth(WIDTH) if self._body.hasHeightForWidth() else 0
        self.resize(WIDTH, max(height, self.sizeHint().height()))
        # Below the page's header: at the lower edge it would lie on the composer and its button.
        self.move(window.width() - WIDTH - 28, 80)
