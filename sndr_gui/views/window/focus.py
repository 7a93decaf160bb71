"""Keeps the keyboard focus on the page when a control is disabled or hidden by what it started."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid


class FocusKeeper(QObject):
    """Keeps the focus beside a control that the program took it from, and gives it back to that control.

    Qt passes it on to whatever comes next, and behind the last control of a page that is the sidebar: who
    pressed Enter on a button would have to walk back through the page to reach Cancel.
    """

    def __init__(self, area: QWidget) -> None:
        super().__init__(area)
        self._area = area
        self._lost: QWidget | None = None
        self._heir: QWidget | None = None
        self._moving = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._keep)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_moved)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Give the focus back as soon as the control can have it again."""
        if event.type() in {QEvent.Type.EnabledChange, QEvent.Type.Show}:
            self._timer.start(0)
        return False

    def _on_moved(self, old: QWidget | None, new: QWidget | None) -> None:
        if self._moving or old is None or not isValid(old):
            return
        if not self._area.isAncestorOf(old):
            return
        if _takes_focus(old):
            # Somebody moved on; what comes back now must not pull them away. A dialog that what they began
            # opened, and another window, give the focus back.
            here = new is not None and new.window() is self._area.window()
            if here and not self._timer.isActive():
                self._forget()
            return
        if self._lost is None:
            self._lost = old
            old.installEventFilter(self)
        self._timer.start(0)

    def _keep(self) -> None:
        """Put the focus where it belongs now; all changes of one refresh are over when this runs."""
        lost = self._lost
        if lost is None or not isValid(lost) or not self._area.isAncestorOf(lost):
            self._forget()
            return
        if _takes_focus(lost):
            self._forget()
            self._move(lost)
            return
        heir = self._heir
        if heir is not None and isValid(heir) and heir.hasFocus():
            return
        self._heir = _beside(lost, self._area)
        if self._heir is not None:
            self._move(self._heir)

    def _move(self, one: QWidget) -> None:
        self._moving = True
        one.setFocus(Qt.FocusReason.OtherFocusReason)
        self._moving = False

    def _forget(self) -> None:
        if self._lost is not None and isValid(self._lost):
            self._lost.removeEventFilter(self)
        self._lost = self._heir = None


def tab_from(start: QWidget | None, area: QWidget) -> bool:
    """Move the focus, which nothing has, to what follows a start: a page that came, or the place of a click.

    Returns False where there is none: Tab then begins with the sidebar.
    """
    if start is None or not isValid(start) or not area.isAncestorOf(start):
        return False
    one = _next_in(start, start) or _beside(start, area)
    if one is not None:
        one.setFocus(Qt.FocusReason.TabFocusReason)
    return one is not None


def keep_last(window: QWidget, control: QWidget) -> None:
    """Keep a control behind all others: pages are built later than the status bar, and go on growing."""
    last = window.previousInFocusChain()
    while last is not None and last is not window and last.focusPolicy() is Qt.FocusPolicy.NoFocus:
        last = last.previousInFocusChain()
    if last is not None and last is not window:
        QWidget.setTabOrder(last, control)


def _takes_focus(one: QWidget) -> bool:
    return one.isEnabled() and one.isVisible()


def _beside(lost: QWidget, area: QWidget) -> QWidget | None:
    """Return the next control that Tab reaches, in the smallest part of the page that has one."""
    part = lost.parentWidget()
    while part is not None and part is not area:
        if (one := _next_in(part, lost)) is not None:
            return one
        part = part.parentWidget()
    return None


def _next_in(part: QWidget, start: QWidget) -> QWidget | None:
    """Return the next control of a part that Tab reaches from a start."""
    one: QWidget | None = start.nextInFocusChain()
    while one is not None and one is not start and part.isVisible():
        tabbed = bool(one.focusPolicy() & Qt.FocusPolicy.TabFocus)
        if tabbed and part.isAncestorOf(one) and _takes_focus(one):
            return one
        one = one.nextInFocusChain()
    return None
