"""The size and the place of the window: whole on the screen that is here now."""

import base64

from PySide6.QtCore import QByteArray, QSize
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

_SIZE, _LEAST = QSize(1280, 820), QSize(900, 600)
# What a window manager draws around the window; it says so only once the window is shown.
_FRAME = QSize(8, 40)


def _room_for(available: QSize) -> QSize:
    """Return the largest window that is on the screen as a whole, title bar and status bar included."""
    return available - _FRAME


def place(window: QWidget, geometry: str) -> None:
    """Give the window its usual size, or the one that it had before."""
    room = _room_for(window.screen().availableGeometry().size())
    window.resize(_SIZE.boundedTo(room))
    window.setMinimumSize(_LEAST.boundedTo(room))
    if geometry:
        window.restoreGeometry(QByteArray(base64.b64decode(geometry)))
        if not window.isMaximized() and not window.isFullScreen():
            # It may come from a larger screen than the one that is here now.
            screen = QGuiApplication.screenAt(window.geometry().center()) or window.screen()
            window.resize(window.size().boundedTo(_room_for(screen.availableGeometry().size())))
