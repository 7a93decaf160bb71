"""Notices in a strip of the page; most leave by themselves while pointer and focus are elsewhere."""

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.host.notices import Notice, Notices
from sndr_gui.kit import formats
from sndr_gui.views.widgets.buttons import button, icon_button
from sndr_gui.views.widgets.labels import SEVERITY_ICONS, IconLabel, text
from sndr_gui.views.widgets.layout import MARGIN

_SECONDS = {"info": 6, "warning": 12, "error": 30}
# So many are kept; shown are the newest, as many as leave the page its room in a low window and in others.
_KEPT, _LOW, _FEW, _MOST = 4, 720, 1, 3
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
    """

    closed = Signal()

    def __init__(self, notice: Notice, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("toast")
        self.notice = notice
        said = formats.strip_backticks(notice.text)
        self.setAccessibleName(said)
        self.sentence = text(brief(said), wrap=True)
        self._said = said
        self.more = button(tr("More"), self._on_more, kind="flat", hint=tr("Show all of it"))
        self.more.setAccessibleName(tr("Show all of this notice"))
        self.more.setVisible(self.sentence.text() != said)
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 4, 8, 4)
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
        self._end.timeout.connect(self._on_time)

    def _on_more(self) -> None:
        self.sentence.setText(self._said)
        self.more.hide()
        self._count_down()

    def _count_down(self) -> None:
        if not self.notice.lasting:
            self._end.start()

    def _on_time(self) -> None:
        focused = self.window().focusWidget()
        if focused is not None and self.isAncestorOf(focused):
            # Who came here by keyboard is about to press Undo.
            self._end.start()
        else:
            self.closed.emit()

    def event(self, event: QEvent) -> bool:
        if event.type() in {QEvent.Type.Enter, QEvent.Type.Hide}:
            self._end.stop()
        elif event.type() in {QEvent.Type.Leave, QEvent.Type.Show}:
            self._count_down()
        return super().event(event)


class Toasts(QWidget):
    """The notices that are shown now, newest below; they take room from the page and cover nothing of it."""

    def __init__(self, notices: Notices) -> None:
        super().__init__()
        self._toasts: dict[str, Toast] = {}
        self._body = QVBoxLayout(self)
        self._body.setContentsMargins(MARGIN, 4, MARGIN, 4)
        self._body.setSpacing(6)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        notices.posted.connect(self._on_posted)
        notices.withdrawn.connect(self.withdraw)
        self.hide()

    def _on_posted(self, notice: Notice) -> None:
        self.withdraw(notice.key)
        toast = Toast(notice, self)
        self._toasts[notice.key] = toast
        self._body.addWidget(toast)
        toast.closed.connect(self._on_closed)
        while len(self._toasts) > _KEPT:
            self.withdraw(next(iter(self._toasts)))
        self._show()
        QAccessible.updateAccessibility(QAccessibleEvent(toast, QAccessible.Event.Alert))

    def _on_closed(self) -> None:
        toast = self.sender()
        if isinstance(toast, Toast):
            self.withdraw(toast.notice.key)

    def withdraw(self, key: str) -> None:
        """Take a notice away."""
        toast = self._toasts.pop(key, None)
        if toast is not None:
            focused = self.window().focusWidget()
            if focused is not None and toast.isAncestorOf(focused):
                # Otherwise Qt would mark whatever comes next, which is the sidebar.
                self.focusPreviousChild()
            self._body.removeWidget(toast)
            toast.hide()
            toast.deleteLater()
        self._show()

    def _show(self) -> None:
        """Show the newest; those before them wait, with their time, until there is room."""
        most = _FEW if self.window().height() < _LOW else _MOST
        waiting = len(self._toasts) - most
        for place, toast in enumerate(self._toasts.values()):
            toast.setVisible(place >= waiting)
        self.setVisible(bool(self._toasts))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._show()

    @property
    def shown(self) -> list[Notice]:
        """The notices that are shown now."""
        return [toast.notice for toast in self._toasts.values()]
