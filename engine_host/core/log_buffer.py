"""Log lines of the host, the builds and the engines: kept in memory, published in batches."""

import asyncio
import contextlib
import heapq
import itertools
import logging
import re
import time
from collections import deque
from collections.abc import Callable, Iterable

from engine_host.protocol.base import Severity
from engine_host.protocol.events import EventBase, LogLineEvent
from engine_host.protocol.logs import LogLine

_ERROR = re.compile(r"\b(error|fatal|fail(ed|ure)?|panic|exception|abort(ed)?)\b", re.IGNORECASE)
_WARNING = re.compile(r"\bwarn(ing)?\b", re.IGNORECASE)
_LLAMA_LEVEL = re.compile(r"^(?:\d+\.\d+\.\d+\.\d+ )?([EWID]) ")
_RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


def severity_of(text: str) -> Severity:
    """Guess the severity of an engine's line; for display alone, nothing is decided by it."""
    if marked := _LLAMA_LEVEL.match(text):
        return {"E": Severity.ERROR, "W": Severity.WARNING}.get(marked[1], Severity.INFO)
    if _ERROR.search(text):
        return Severity.ERROR
    return Severity.WARNING if _WARNING.search(text) else Severity.INFO


class LogBuffer:
    """The newest lines of every source; new ones are published together every 100 ms."""

    def __init__(self, publish: Callable[[EventBase], None], lines: int = 10_000, delay: float = 0.1) -> None:
        self._publish = publish
        self._lines = lines
        self._delay = delay
        self._sources: dict[str, deque[LogLine]] = {}
        self._numbers: dict[str, itertools.count[int]] = {}
        self._unsent: list[LogLine] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, source: str, texts: Iterable[str], severity: Severity | None = None) -> None:
        """Keep lines of a source; the severity is read off the line when it is not given."""
        kept = self._sources.setdefault(source, deque(maxlen=self._lines))
        numbers = self._numbers.setdefault(source, itertools.count(1))
        now = time.time()
        for text in texts:
            line = LogLine(
                source=source,
                number=next(numbers),
                at=now,
                severity=severity or severity_of(text),
                text=text,
            )
            kept.append(line)
            self._unsent.append(line)
        if self._unsent and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._send)

    def read(
        self, source: str | None, severity: Severity = Severity.INFO, after: int = 0, limit: int = 1000
    ) -> list[LogLine]:
        """The newest `limit` lines of a source (None: of all), of at least this severity, oldest first."""
        if source is None:
            # Merged, not sorted: a clock that was set back must not mix up the lines of one source.
            lines = list(heapq.merge(*self._sources.values(), key=lambda line: line.at))
        else:
            lines = [line for line in self._sources.get(source, ()) if line.number > after]
        selected = [line for line in lines if _RANK[line.severity] >= _RANK[severity]]
        return selected[-limit:] if limit else []

    def tail(self, source: str, count: int) -> tuple[str, ...]:
        """The last lines of a source, as text."""
        lines = self._sources.get(source, deque())
        return tuple(line.text for line in itertools.islice(lines, max(0, len(lines) - count), None))

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
            self._send()

    def _send(self) -> None:
        self._timer = None
        lines, self._unsent = self._unsent, []
        for start in range(0, len(lines), 500):
            self._publish(LogLineEvent(lines=tuple(lines[start : start + 500])))


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
