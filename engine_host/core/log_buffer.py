"""Log lines of the host, the builds and the engines: kept in memory, published in batches."""

import asyncio
import contextlib
import heapq
import itertools
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.bounds.newest import Newest
from engine_host.protocol.base import Severity
from engine_host.protocol.events import EventBase, LogLineEvent
from engine_host.protocol.logs import LogLine

_ERROR = re.compile(r"\b(error|fatal|fail(ed|ure)?|panic|exception|abort(ed)?)\b", re.IGNORECASE)
_WARNING = re.compile(r"\bwarn(ing)?\b", re.IGNORECASE)
_LLAMA_LEVEL = re.compile(r"^(?:\d+\.\d+\.\d+\.\d+ )?([EWID]) ")
_RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}
_LONGEST = 8_000
"""Characters of a line; the log file has all of it."""
_LINE = 200
"""Bytes that Python needs for a line beside its text."""
_EVENT_LINES, _EVENT_SIZE = 500, 128 << 10
"""Lines, and characters of them, that are published in one event."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line as it is kept: a tenth of the memory of the one on the wire."""

    number: int
    at: float
    severity: Severity
    text: str

    def of(self, source: str) -> LogLine:
        return LogLine(source=source, number=self.number, at=self.at, severity=self.severity, text=self.text)


def severity_of(text: str) -> Severity:
    """Guess the severity of an engine's line; for display alone, nothing is decided by it."""
    if marked := _LLAMA_LEVEL.match(text):
        return {"E": Severity.ERROR, "W": Severity.WARNING}.get(marked[1], Severity.INFO)
    if _ERROR.search(text):
        return Severity.ERROR
    return Severity.WARNING if _WARNING.search(text) else Severity.INFO


class LogBuffer:
    """The newest lines of every source; new ones are published together every 100 ms.

    `limit` bounds the bytes of all lines: the source that has most of them gives way, so that no flood of one
    pushes out the lines of another.
    """

    def __init__(
        self,
        publish: Callable[[EventBase], None],
        lines: int = 10_000,
        delay: float = 0.1,
        limit: int = 32 << 20,
    ) -> None:
        self._publish = publish
        self._lines = lines
        self._delay = delay
        self._limit = limit
        self._sources: dict[str, Newest[_Line]] = {}
        self._numbers: dict[str, itertools.count[int]] = {}
        self._unsent: list[LogLine] = []
        self._unsent_size = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def held(self) -> int:
        """Bytes of the lines that are kept."""
        return sum(lines.size for lines in self._sources.values())

    def add(self, source: str, texts: Iterable[str], severity: Severity | None = None) -> None:
        """Keep lines of a source; the severity is read off the line when it is not given."""
        kept = self._sources.setdefault(source, Newest(self._lines, self._limit))
        numbers = self._numbers.setdefault(source, itertools.count(1))
        now = time.time()
        for text in texts:
            short = cut_text(text, _LONGEST)
            line = _Line(next(numbers), now, severity or severity_of(short), short)
            kept.add(line, sys.getsizeof(short) + _LINE)
            self._unsent.append(line.of(source))
            self._unsent_size += len(short)
            if len(self._unsent) >= _EVENT_LINES or self._unsent_size >= _EVENT_SIZE:
                self._send()
        self._make_room()
        if self._unsent and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._send_late)

    def read(
        self, source: str | None, severity: Severity = Severity.INFO, after: int = 0, limit: int = 1000
    ) -> list[LogLine]:
        """The newest `limit` lines of a source (None: of all), of at least this severity, oldest first."""
        if source is None:
            # Merged, not sorted: a clock that was set back must not mix up the lines of one source.
            lines = list(heapq.merge(*map(self._of, self._sources), key=lambda line: line[1].at))
        else:
            lines = [line for line in self._of(source) if line[1].number > after]
        selected = [line for line in lines if _RANK[line[1].severity] >= _RANK[severity]]
        return [line.of(name) for name, line in selected[-limit:]] if limit else []

    def tail(self, source: str, count: int) -> tuple[str, ...]:
        """The last lines of a source, as text."""
        lines = [line.text for _, line in self._of(source)]
        return tuple(lines[-count:]) if count else ()

    def forget(self, source: str) -> None:
        """Drop the lines of a source that has ended."""
        self._sources.pop(source, None)
        self._numbers.pop(source, None)

    def sources(self) -> tuple[str, ...]:
        """Every source that has lines."""
        return tuple(self._sources)

    def close(self) -> None:
        """Publish what is unsent and stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._send_late()

    def _of(self, source: str) -> Iterator[tuple[str, _Line]]:
        return ((source, line) for line in self._sources.get(source, ()))

    def _make_room(self) -> None:
        while self.held > self._limit:
            max(self._sources.values(), key=lambda lines: lines.size).drop_oldest()

    def _send_late(self) -> None:
        self._timer = None
        if self._unsent:
            self._send()

    def _send(self) -> None:
        lines, self._unsent, self._unsent_size = self._unsent, [], 0
        self._publish(LogLineEvent(lines=tuple(lines)))


class LogBufferHandler(logging.Handler):
    """Puts the host's own log records into the buffer, from whichever thread they come."""

    def __init__(self, buffer: LogBuffer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._buffer = buffer
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record to the loop's thread."""
        severity = (
            Severity.ERROR
            if record.levelno >= logging.ERROR
            else Severity.WARNING
            if record.levelno >= logging.WARNING
            else Severity.INFO
        )
        texts = self.format(record).splitlines()
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            self._loop.call_soon_threadsafe(self._buffer.add, "host", texts, severity)
