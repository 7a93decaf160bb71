"""Sentences for the person at the window, replaced by key, each with an optional action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from PySide6.QtCore import QObject, Signal

from engine_host.protocol.remote.host_command import for_host

if TYPE_CHECKING:
    from engine_host.protocol.errors import Problem


@dataclass(frozen=True)
class Notice:
    """One sentence; a later one with the same key takes its place.

    `opens` leads to what it is about and does nothing else. What has it is told on the desktop too, while
    nobody looks at the window. A lasting one stays until it is closed or withdrawn: its action is the way on.
    """

    key: str
    severity: str
    text: str
    action_text: str = ""
    action: Callable[[], object] | None = None
    opens: Callable[[], object] | None = None
    lasting: bool = False


class Leads(TypedDict, total=False):
    """The parts of a notice that lead on, as in `Notice`."""

    action_text: str
    action: Callable[[], object] | None
    opens: Callable[[], object] | None
    lasting: bool


class Notices(QObject):
    """Collects notices for whoever shows them.

    Signals:
        posted: a Notice, to show or to put in place of the one with its key
        aside: a Notice of what a page of the window shows by itself: for the desktop alone
        withdrawn: the key of a notice that no longer holds
    """

    posted = Signal(object)
    aside = Signal(object)
    withdrawn = Signal(str)

    def info(self, key: str, text: str, **leads: Unpack[Leads]) -> None:
        """Say that something happened."""
        self.posted.emit(Notice(key, "info", text, **leads))

    def warning(self, key: str, text: str, **leads: Unpack[Leads]) -> None:
        """Say that something deserves a look."""
        self.posted.emit(Notice(key, "warning", text, **leads))

    def error(self, key: str, text: str, **leads: Unpack[Leads]) -> None:
        """Say that something failed."""
        self.posted.emit(Notice(key, "error", text, **leads))

    def problem(self, key: str, problem: Problem) -> None:
        """Say what failed, why, and what to do."""
        self.error(key, problem.sentence())

    def withdraw(self, key: str) -> None:
        """Take a notice back."""
        self.withdrawn.emit(key)


def relayed(notices: Notices, host: str) -> Notices:
    """Return notices of a host on another machine: they are shown among the others, with its name."""
    made = Notices()

    def post(notice: Notice) -> None:
        text = f"{host}: {for_host(notice.text, host)}"
        notices.posted.emit(replace(notice, key=f"{host} {notice.key}", text=text))

    def tell(notice: Notice) -> None:
        notices.aside.emit(replace(notice, key=f"{host} {notice.key}", text=f"{host}: {notice.text}"))

    made.posted.connect(post)
    made.aside.connect(tell)
    made.withdrawn.connect(lambda key: notices.withdrawn.emit(f"{host} {key}"))
    return made
