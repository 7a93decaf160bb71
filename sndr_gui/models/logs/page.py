"""The view-model of Logs: lines of the host, the builds and the engines, filtered in Python."""

from __future__ import annotations

import shlex
import time
from collections import deque
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Signal

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.base import Severity
from engine_host.protocol.language import tr
from engine_host.protocol.logs import LogLine, LogQuery
from engine_host.protocol.operations import table as ops
from sndr_gui.host.session import Session
from sndr_gui.kit.formats import shortened
from sndr_gui.models.window.throttle import Throttle
from sndr_gui.models.window.time_travel import TimeTravel

KEPT = 10_000
KEPT_TEXT = 16 << 20
"""Characters of all lines together."""
RECENT_SOURCES = 100
_LABEL = 14
_CLOSE = 1.0
"""Seconds around a time in which a line was written at it."""
_ORDER = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


class LogsModel(QObject):
    """The model of Logs.

    Signals:
        reset: every line shown is new
        appended: lines to add at the end
        sources_changed: the list of sources is new
        revealed: the place of a line to show
    """

    reset = Signal()
    appended = Signal(object)
    sources_changed = Signal()
    revealed = Signal(int)

    def __init__(self, session: Session, past: TimeTravel | None = None) -> None:
        """`past` is the moment that other pages look at too: later lines are not shown."""
        super().__init__()
        self.session = session
        self.past = past or TimeTravel()
        self._moved = False
        self._move = Throttle(self, 150, self._on_moved)
        self.past.changed.connect(self._on_past)
        self.lines: deque[LogLine] = deque()
        self._text = 0
        self.sources: tuple[str, ...] = ()
        self._names: dict[str, str] = {}
        self.source = ""
        self.severity = Severity.INFO
        self.search = ""
        self.loaded = False
        self._loading = False
        # Whether lines went past that the answer under way may not hold.
        self._missed = False
        self._late: deque[LogLine] = deque(maxlen=KEPT)
        self._wanted: Callable[[list[LogLine]], int | None] | None = None
        self._shown = False
        session.state.logged.connect(self._on_logged)
        session.state.outdated.connect(self._on_outdated)
        session.connection.changed.connect(self._on_link)

    def set_shown(self, shown: bool) -> None:
        """Read the lines when the page is looked at for the first time, or after some were missed."""
        self._shown = shown
        if shown and not self.loaded:
            self.load()
        if shown and self._moved:
            self._on_moved()

    def _on_past(self) -> None:
        # A page that nobody looks at draws no lines.
        self._moved = True
        if self._shown:
            self._move.trigger()

    def _on_moved(self) -> None:
        if self._moved and self._shown:
            self._moved = False
            self.reset.emit()

    def load(self) -> None:
        """Read the newest lines of every source."""
        if self._loading or not self.session.connection.connected:
            return
        self._loading, self._missed = True, False
        self._late.clear()

        async def work(client: AsyncControlClient) -> None:
            page = await client.call(ops.LOGS, LogQuery(limit=5000))
            known = {(line.source, line.number) for line in page.lines}
            late = [line for line in self._late if (line.source, line.number) not in known]
            self.lines.clear()
            self._keep((*page.lines, *late))
            self.loaded = not self._missed
            self._set_sources((*page.sources, *(line.source for line in late)))
            self.reset.emit()
            self._reveal()

        self.session.read("logs", work, done=self._on_loaded)

    def _on_loaded(self) -> None:
        self._loading = False
        if self._missed and self._shown:
            self.load()

    def _on_link(self) -> None:
        if not self.session.connection.connected:
            # The events go on from the next snapshot: what is written until then comes by no event.
            self.loaded, self._missed = False, True
        elif self._shown:
            self.load()

    def _on_outdated(self, part: str) -> None:
        if part == "all":
            self.loaded, self._missed = False, True
            if self._shown:
                self.load()

    def _set_sources(self, sources: Iterable[str]) -> None:
        known = tuple(dict.fromkeys(sources))
        if known != self.sources:
            self.sources = known
            self.sources_changed.emit()

    def _name(self, source: str) -> str:
        """Return the public name of an engine, which its lines keep when it is gone; empty for no engine."""
        engine = self.session.state.engines.get(source)
        if engine is not None:
            self._names.pop(source, None)
            self._names[source] = engine.name
            while len(self._names) > RECENT_SOURCES:
                del self._names[next(iter(self._names))]
        return self._names.get(source, "")

    def source_title(self, source: str) -> str:
        """Return the title of a source."""
        if name := self._name(source):
            return f"{name} ({source})"
        return {"host": tr("Engine host"), "build": tr("Build")}.get(source, source)

    def source_label(self, source: str) -> str:
        """Return the word in front of a source's lines: an engine's name, as wide as every other."""
        label = shortened(" ".join((self._name(source) or source).split()), _LABEL)
        return f"{label:<{_LABEL}}"

    def _on_logged(self, lines: tuple[LogLine, ...]) -> None:
        if self._loading:
            self._late.extend(lines)
            return
        if not self.loaded:
            return
        self._keep(lines)
        self._set_sources((*self.sources, *(line.source for line in lines)))
        if shown := [line for line in lines if self.matches(line)]:
            self.appended.emit(shown)

    def _keep(self, lines: Iterable[LogLine]) -> None:
        if not self.lines:
            self._text = 0
        for line in lines:
            self.lines.append(line)
            self._text += len(line.text)
            while len(self.lines) > KEPT or self._text > KEPT_TEXT:
                self._text -= len(self.lines.popleft().text)

    def matches(self, line: LogLine) -> bool:
        """Return True when a line passes the filters."""
        if self.source and line.source != self.source:
            return False
        if self.past.at is not None and line.at > self.past.at:
            return False
        if _ORDER[line.severity] < _ORDER[self.severity]:
            return False
        return not self.search or self.search in line.text.casefold()

    def shown(self) -> list[LogLine]:
        """Return the lines that pass the filters, oldest first."""
        return [line for line in self.lines if self.matches(line)]

    @property
    def why_empty(self) -> str:
        """The reason why no line is shown."""
        if not self.loaded and not self.lines:
            return tr("Reading the lines…")
        if self.past.at is not None and self.lines and self.lines[0].at > self.past.at:
            return tr("The lines of that moment are no longer kept here.")
        return tr("No line matches the filters.") if self.lines else tr("There are no lines yet.")

    def set_filters(
        self, *, source: str | None = None, severity: Severity | None = None, search: str | None = None
    ) -> None:
        """Change what is shown; None keeps a filter."""
        before = (self.source, self.severity, self.search)
        self.source = self.source if source is None else source
        self.severity = self.severity if severity is None else severity
        self.search = self.search if search is None else search.casefold()
        if before != (self.source, self.severity, self.search):
            self.reset.emit()

    def set_source(self, source: str) -> None:
        """Show all lines of one source."""
        self.set_filters(source=source, severity=Severity.INFO, search="")
        self.sources_changed.emit()

    def open_failure(self, source: str) -> None:
        """Show a source at the line of its failure."""
        self._open(source, _failure)

    def open_at(self, source: str, at: float) -> None:
        """Show a source, or all of them, at what was written at a time; say so where that is gone."""
        # The mark that led here shows what came after it too.
        self.past.back()

        def place(shown: list[LogLine]) -> int | None:
            if not shown or shown[0].at > at + _CLOSE:
                self.session.notices.info(
                    "log of a time", tr("The lines of that time are no longer kept here.")
                )
            after = (number for number, line in enumerate(shown) if line.at >= at - _CLOSE)
            return next(after, len(shown) - 1 if shown else None)

        self._open(source, place)

    def _open(self, source: str, place: Callable[[list[LogLine]], int | None]) -> None:
        self.source, self.severity, self.search = source, Severity.INFO, ""
        self.sources_changed.emit()
        self._wanted = place
        if (self.loaded and not self._loading) or not self.session.connection.connected:
            self.reset.emit()
            self._reveal()
        else:
            self.load()

    def _reveal(self) -> None:
        wanted, self._wanted = self._wanted, None
        place = wanted(self.shown()) if wanted is not None else None
        if place is not None:
            self.revealed.emit(place)

    def command(self) -> str:
        """Return the equivalent command."""
        source = [self.source] if self.source else []
        level = ["--level", self.severity.value] if self.severity is not Severity.INFO else []
        return shlex.join(["sndr", "logs", *source, *level, "-f"])


def _failure(shown: list[LogLine]) -> int | None:
    errors = (place for place, line in enumerate(shown) if line.severity is Severity.ERROR)
    return next(errors, len(shown) - 1 if shown else None)


def line_text(line: LogLine, label: str) -> str:
    """Return a line as it is shown and copied; `label` says whose it is, where that is not plain."""
    clock = time.strftime("%H:%M:%S", time.localtime(line.at))
    return f"{clock} {label} {line.text}" if label else f"{clock} {line.text}"
