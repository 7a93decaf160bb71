"""Tells on the desktop what happened while nobody looked at the window; a click leads to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from PySide6.QtCore import QObject

from sndr_gui.host.notices import Notice
from sndr_gui.host.session import Session
from sndr_gui.kit import formats

_LONGEST_TITLE, _LONGEST_TEXT, _KEPT = 100, 300, 50


class DesktopNotices(QObject):
    """Passes notices that lead somewhere on to the desktop: one for each thing, none while it is seen."""

    def __init__(
        self,
        session: Session,
        show: Callable[[str, str, str], Awaitable[bool]],
        wanted: Callable[[], bool],
        front: Callable[[str], object],
    ) -> None:
        """Begin to listen.

        `show` takes key, title and text. `wanted`: nobody looks at the window, and the setting is on. `front`
        brings the window to the front, with the desktop's leave to do so.
        """
        super().__init__()
        self._tasks, self._show, self._wanted, self._front = session.tasks, show, wanted, front
        self._told: dict[str, Notice] = {}
        session.notices.posted.connect(self._on_notice)
        session.notices.aside.connect(self._on_notice)

    def open(self, key: str, token: str = "") -> None:
        """Go to what a notice was about."""
        self._front(token)
        notice = self._told.pop(key, None)
        if notice is not None and notice.opens is not None:
            notice.opens()

    def _on_notice(self, notice: Notice) -> None:
        if notice.opens is None or not self._wanted():
            return
        self._told.pop(notice.key, None)
        self._told[notice.key] = notice
        if len(self._told) > _KEPT:
            self._told.pop(next(iter(self._told)))
        self._tasks.start(self._tell(notice.key, *parts(notice.text)), "tell the desktop")

    async def _tell(self, key: str, title: str, text: str) -> None:
        await self._show(key, title, text)


def parts(said: str) -> tuple[str, str]:
    """Return a text as the line and the rest that a notification has: its first sentence, and the others."""
    said = formats.strip_backticks(said)
    first, stop, rest = said.partition(". ")
    if len(first) > _LONGEST_TITLE:
        return formats.shortened(first, _LONGEST_TITLE), said[:_LONGEST_TEXT]
    return first + stop.strip() if rest else said, rest[:_LONGEST_TEXT]
