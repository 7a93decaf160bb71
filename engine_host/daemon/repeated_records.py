"""Log records that repeat themselves are counted instead of written, so that a flood pushes nothing out."""

import asyncio
import contextlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType

from engine_host.core.bounds.cut_text import cut_text

SPAN = 10.0
"""Seconds over which records of a kind are counted together."""
WRITTEN = 5
"""Records of a kind that are written in that time; the others are counted."""
_KINDS = 500
_LONGEST_KIND = 300
# Numbers, names with digits in them (requests, engines, addresses) and quoted texts differ within a kind.
_QUOTES_AND_WORDS = re.compile(r"'[^']*'|\"[^\"]*\"|\w+")
_DIGIT = re.compile(r"\d")
_Kind = tuple[str, int, str, str]


@dataclass
class _Seen:
    """The records of a kind since a moment: how many were written, how many were not, and the first."""

    since: float
    first: logging.LogRecord
    written: int = 1
    left_out: int = 0


class RepeatedRecords(logging.Handler):
    """Passes records on to other handlers: of those of one kind a few in each span, then how many more came.

    Of one kind are records of a logger, level and place of an error whose messages differ in numbers, ids and
    quoted texts alone. Records for debugging all pass. The count is told on `loop`, at the end of the span.
    """

    def __init__(
        self,
        targets: Iterable[logging.Handler],
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._targets = tuple(targets)
        self._loop = loop
        self._clock = clock
        self._seen: OrderedDict[_Kind, _Seen] = OrderedDict()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it."""
        if record.levelno <= logging.DEBUG:
            self._write(record)
            return
        kind, now = _kind(record), self._clock()
        seen = self._seen.get(kind)
        if seen is None or now - seen.since >= SPAN:
            self._end(kind)
            self._seen[kind] = _Seen(now, record)
            if len(self._seen) > _KINDS:
                self._end(next(iter(self._seen)))
            self._write(record)
        elif seen.written < WRITTEN:
            seen.written += 1
            self._write(record)
        else:
            seen.left_out += 1
            if seen.left_out == 1:
                self._end_later(kind, seen)

    def close(self) -> None:
        """Tell what was left out until now."""
        with self.lock or contextlib.nullcontext():
            for kind in list(self._seen):
                self._end(kind)
        super().close()

    def _end_later(self, kind: _Kind, seen: _Seen) -> None:
        def end() -> None:
            with self.lock or contextlib.nullcontext():
                if self._seen.get(kind) is seen:
                    self._end(kind)

        delay = max(0.0, seen.since + SPAN - self._clock())
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            self._loop.call_soon_threadsafe(self._loop.call_later, delay, end)

    def _end(self, kind: _Kind) -> None:
        """Forget the records of a kind, and write how many were left out."""
        seen = self._seen.pop(kind, None)
        if seen is None or not seen.left_out:
            return
        first, seconds = seen.first, self._clock() - seen.since
        message = cut_text(first.getMessage().partition("\n")[0], _LONGEST_KIND)
        text = f"… {seen.left_out:,} more like it in {seconds:.0f} s: {message}"
        told = logging.LogRecord(first.name, first.levelno, first.pathname, first.lineno, text, None, None)
        self._write(told)

    def _write(self, record: logging.LogRecord) -> None:
        for target in self._targets:
            target.handle(record)


def _kind(record: logging.LogRecord) -> _Kind:
    # Cut a second time: the first cut falls where the numbers before it are long or short.
    message = _QUOTES_AND_WORDS.sub(_constant, record.getMessage()[: 4 * _LONGEST_KIND])[:_LONGEST_KIND]
    error = record.exc_info
    place = f"{error[0].__name__} {_innermost(error[2])}" if error and error[0] is not None else ""
    return record.name, record.levelno, message, place


def _constant(found: re.Match[str]) -> str:
    word = found[0]
    return "#" if word[0] in "'\"" or _DIGIT.search(word) else word


def _innermost(trace: TracebackType | None) -> str:
    """The place in the code where an error was raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
