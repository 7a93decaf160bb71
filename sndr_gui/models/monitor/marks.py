"""The marks on the time axis of the graphs: which are shown, and which stand for several."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import Mark, MarkKind, MarkQuery
from sndr_gui.host.session import Session
from sndr_gui.kit import formats

MOST_MARKS = 2000
APART = 9
"""Pixels for one mark: what happened within them is one mark for all of it."""
_SAID = 5


@dataclass(frozen=True)
class MarkGroup:
    """Kinds of marks that are switched on and off together; `tone` is their colour, `shape` their form."""

    title: str
    hint: str
    tone: str
    shape: str
    kinds: tuple[MarkKind, ...]


GROUPS = (
    MarkGroup(
        tr("Failures"),
        tr("engines that died or ran out of memory"),
        "bad",
        "cross",
        (MarkKind.OUT_OF_MEMORY, MarkKind.DIED),
    ),
    MarkGroup(
        tr("Failed patches"),
        tr("patches that failed in an engine"),
        "warn",
        "triangle",
        (MarkKind.PATCH_FAILED,),
    ),
    MarkGroup(tr("Routes"), tr("routes that lead elsewhere"), "good", "diamond", (MarkKind.CUT_OVER,)),
    MarkGroup(
        tr("Measurements"),
        tr("runs of the bench lab, their beginning and end"),
        "accent",
        "square",
        (MarkKind.BENCH_BEGUN, MarkKind.BENCH_ENDED),
    ),
    MarkGroup(
        tr("Starts and ends"),
        tr("engines that started, were ready, or stopped"),
        "muted",
        "circle",
        (MarkKind.STARTED, MarkKind.READY, MarkKind.STOPPED),
    ),
)
"""The gravest first: a mark for several things looks like the gravest of them."""
_GROUP_OF = {kind: place for place, group in enumerate(GROUPS) for kind in group.kinds}


@dataclass(frozen=True)
class Bunch:
    """One mark as it is drawn: what happened within a few pixels, the gravest first."""

    at: float
    marks: tuple[Mark, ...]

    @property
    def group(self) -> MarkGroup:
        """The look of the mark."""
        return GROUPS[_GROUP_OF[self.marks[0].kind]]

    def sentences(self) -> str:
        """Return what happened, a line each in order of time."""
        in_order = sorted(self.marks, key=lambda mark: mark.at)
        said = [f"{clock(mark.at)}  {told(mark)}" for mark in in_order[:_SAID]]
        more = len(in_order) - _SAID
        return "\n".join([*said, *([tr("and {more} more", more=more)] if more > 0 else [])])


def told(mark: Mark) -> str:
    """Return what happened; of what came again also how often, in how many processes, and when last."""
    if mark.times == 1 or mark.last_at is None:
        return mark.text
    again = tr("{times} times, last at {at}", times=mark.times, at=clock(mark.last_at))
    if len(mark.processes) > 1:
        again = tr("{again}, in {count} processes", again=again, count=len(mark.processes))
    return f"{mark.text}  ·  {again}"


def clock(at: float) -> str:
    """Return the time of a day."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def bunched(marks: Iterable[Mark], seconds: float, width: float) -> tuple[Bunch, ...]:
    """Return the marks of an axis of so many seconds and pixels, so far apart that each can be hit."""
    wide = seconds * APART / max(1.0, width)
    found: dict[int, list[Mark]] = {}
    for mark in marks:
        # By the clock and not by the axis: what is one mark stays one while the axis moves on.
        found.setdefault(math.floor(mark.at / wide), []).append(mark)
    return tuple(
        Bunch(several[0].at, tuple(several))
        for several in (
            sorted(found[place], key=lambda mark: (_GROUP_OF[mark.kind], mark.at)) for place in sorted(found)
        )
    )


class MarksModel(QObject):
    """The marks of the host that are known here.

    Signals:
        changed: other marks are shown
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._marks: dict[str, Mark] = {}
        self.off: frozenset[str] = frozenset()
        session.state.marked.connect(self._on_marked)

    def load(self, since: float) -> None:
        """Read the marks from a time on."""

        async def work(client: AsyncControlClient) -> None:
            page = await client.call(ops.MARKS, MarkQuery(since=since))
            self._marks = {mark.id: mark for mark in page.marks[-MOST_MARKS:]}
            self.changed.emit()

        self._session.command("marks", work, failed=self._on_failed)

    def _on_failed(self, error: HostError) -> None:
        # A host of an older version has none.
        if error.reason is not Reason.UNSUPPORTED and not error.lost:
            self._session.notices.problem("marks", error.problem)

    def _on_marked(self, mark: Mark) -> None:
        self._marks[mark.id] = mark
        while len(self._marks) > MOST_MARKS:
            del self._marks[next(iter(self._marks))]
        self.changed.emit()

    def shown(self) -> tuple[Mark, ...]:
        """Return the marks of the groups that are switched on."""
        return tuple(
            mark for mark in self._marks.values() if GROUPS[_GROUP_OF[mark.kind]].title not in self.off
        )

    def switch(self, title: str, on: bool) -> None:
        """Show a group of marks, or leave it out."""
        self.off = self.off - {title} if on else self.off | {title}
        self.changed.emit()

    @property
    def said(self) -> str:
        """The marks that are shown, counted."""
        count = len(self.shown())
        return formats.plural(count, "event") if count else tr("no events")
