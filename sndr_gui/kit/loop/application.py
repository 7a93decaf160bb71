"""Qt's application: an error in the answer to one event ends with that event, and quitting is a wish.

PySide keeps an error of an overridden method, such as `paintEvent`, until Qt comes back to Python. Until
then it goes on calling other overrides, which damages what they are made of: one graph that failed at drawing
ended the whole process (SIGSEGV in `Shiboken::BindingManager::getOverride`). Here Python has every event
first, so that the error is met where it happened.
"""

import re
import sys
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication

_MET_IN = re.compile(r"(?:Error calling Python override of [^ ]+\(\): )+")


class Application(QApplication):
    """The application; `failed` is told of an error, `quit_wanted` of a log-out and of the system's Quit."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self.failed: Callable[[Exception], object] = _by_hook
        self.quit_wanted: Callable[[], object] | None = None

    def notify(self, receiver: QObject, event: QEvent) -> bool:
        """Pass an event on; whatever fails in the answer to it ends here."""
        if self.quit_wanted is not None and event.type() == QEvent.Type.Quit:
            self.quit_wanted()
            event.ignore()
            return True
        try:
            return super().notify(receiver, event)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next event is answered
            self.failed(error)
            return True


def what_failed(error: BaseException) -> str:
    """Return the message of an error without the names that PySide puts before it, or the error's kind."""
    return _MET_IN.sub("", str(error), count=1)[:200].rstrip(".") or type(error).__name__


def _by_hook(error: Exception) -> None:
    sys.excepthook(type(error), error, error.__traceback__)
