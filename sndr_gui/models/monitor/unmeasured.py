"""The times in which the host measured nothing: before it began, while it was down, or the machine slept."""

from __future__ import annotations

import time
from dataclasses import dataclass

from engine_host.protocol.language import tr
from sndr_gui.models.monitor.lines import Line


@dataclass(frozen=True)
class Unmeasured:
    """A time without a value of anything, and what a graph says of it."""

    since: float
    until: float
    words: str


def unmeasured(line: Line | None, since: float, until: float, within: float) -> tuple[Unmeasured, ...]:
    """Return such times between two, each longer than `within` seconds, by a line that is always measured."""
    if line is None:
        return ()
    known = [
        at
        for at, value in zip(line.at, line.values, strict=True)
        if value is not None and since <= at <= until
    ]
    found = []
    before = since
    for at in known:
        if at - before > within:
            words = (
                tr("not measured until {at}", at=_clock(at, until)) if before == since else tr("not measured")
            )
            found.append(Unmeasured(before, at, words))
        before = at
    return tuple(found)


def _clock(at: float, now_at: float) -> str:
    then, now = time.localtime(at), time.localtime(now_at)
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)
