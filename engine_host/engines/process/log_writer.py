"""Writes down what an engine prints: `python -I -S log_writer.py LOG LIMIT RULES_FD [withhold]`.

Standard library only. It reads the engine's output from its standard input until the engine and all its
children are gone, whoever else lives or dies. A log that would grow beyond LIMIT bytes becomes LOG.1, in
place of the one before. After the line `MARK`, or from the start with `withhold`, only lines that the rules
name are written as they are (see `ServedLines`): of each other line its length is; lists that an engine
writes anew with each request are left out. A disk that takes nothing loses lines and never holds up the
engine; how many is said as soon as it takes some again.
"""

import contextlib
import fcntl
import json
import os
import re
import signal
import sys
import time

MARK = b"\x00sndr: requests may come from here on\x00"
LONGEST_LINE = 1 << 18
# Of a longer message nobody wrote a template.
LONGEST_MATCHED = 2000
_CHUNK = 1 << 16
_NUMBER = re.compile(r"(?<![\w.,])[-+]?(?:0x[0-9a-fA-F]+|\d+(?:[.,]\d+)*(?:e[-+]?\d+)?)(?!\w)")


class Rules:
    """Judges the lines of an engine that serves."""

    def __init__(self, prefix: str, templates: list[str], patterns: list[str], left_out: str = "") -> None:
        self._left_out = re.compile(left_out.encode() + rb"\r?") if left_out else None
        self._prefix = re.compile(prefix)
        self._templates = frozenset(templates)
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def leaves_out(self, line: bytes) -> bool:
        """Return True for a line that says nothing new; there may be thousands of it, so it is not judged."""
        return self._left_out is not None and self._left_out.fullmatch(line) is not None

    def judge(self, line: bytes) -> tuple[bytes, bool]:
        """Return what stands before the message of a line, and True if the message may be written down."""
        text = line[: LONGEST_MATCHED + 1].decode("utf-8", "replace").rstrip("\r")
        found = self._prefix.match(text)
        prefix = found[0] if found else ""
        message = text[len(prefix) :]
        if len(text) > LONGEST_MATCHED:
            return prefix.encode(), False
        shape = " ".join(_NUMBER.sub("#", message).split())
        known = not shape or shape in self._templates
        return prefix.encode(), known or any(one.fullmatch(message.strip()) for one in self._patterns)


class Lines:
    """Makes what is written of what the engine printed."""

    def __init__(self, rules: Rules, withhold: bool) -> None:
        self._rules = rules
        self._withhold = withhold
        self._rest = b""
        self._before = b""
        self._lines = self._bytes = 0

    def feed(self, chunk: bytes) -> bytes:
        """Return what can be written down now; the beginning of a line waits for its end."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        written = [self._line(line) for line in lines]
        if len(self._rest) >= LONGEST_LINE:
            rest, self._rest = self._rest, b""
            written.append(self._line(rest) if self._withhold else rest)
        return b"".join(written) + self._note()

    def end(self) -> bytes:
        """Return what is left when the engine is gone."""
        rest, self._rest = self._rest, b""
        return self._line(rest) + self._note() if rest and self._withhold else rest

    def _line(self, line: bytes) -> bytes:
        if line.endswith(MARK):
            # What stands before it was printed before it.
            before, self._withhold = line[: -len(MARK)], True
            return before + b"\n" if before else b""
        if not self._withhold:
            return line + b"\n"
        if self._rules.leaves_out(line):
            return b""
        prefix, known = self._rules.judge(line)
        if known:
            return self._note() + line + b"\n"
        note = self._note() if prefix else b""
        self._before = self._before if self._lines else prefix
        self._lines += 1
        self._bytes += len(line) - len(prefix)
        return note

    def _note(self) -> bytes:
        """Return the line in place of those that were withheld since the last one."""
        if not self._lines:
            return b""
        lines = "" if self._lines == 1 else f"{self._lines} lines, "
        note = self._before + f"[withheld: {lines}{self._bytes} bytes]\n".encode()
        self._before, self._lines, self._bytes = b"", 0, 0
        return note


class LogFile:
    """The log on the disk: it and the one before it are never larger than the limit."""

    def __init__(self, path: str, limit: int) -> None:
        """Open it to go on at its end. Raises OSError."""
        self._path = path
        self._limit = limit
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._lost = 0
        self._reason = ""
        self._torn = False

    def write(self, data: bytes) -> None:
        """Append it, in a new file where this one would be too large."""
        if not data:
            return
        if os.fstat(self._file).st_size + len(data) > self._limit:
            self._begin_another()
        if self._lost:
            gap = "\n" if self._torn else ""
            if self._append(f"{gap}[{self._lost} lines are lost: {self._reason}]\n".encode()):
                self._lost += _lines_in(data)
                return
            self._lost = 0
        self._lost += _lines_in(self._append(data))

    def _append(self, data: bytes) -> bytes:
        """Return what the disk did not take; a line that was torn off is counted with what was lost."""
        while data:
            try:
                count = os.write(self._file, data)
            except OSError as error:
                self._reason = error.strerror or str(error)
                break
            self._torn = not data[:count].endswith(b"\n")
            data = data[count:]
        return data

    def _begin_another(self) -> None:
        part = f"{self._path}.part"
        try:
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            os.replace(self._path, f"{self._path}.1")
            os.replace(part, self._path)
        except OSError:
            # Its folder is gone or takes nothing; a disk filled by its lines would be worse than a gap.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
            return
        os.close(self._file)
        self._file = file


def _lines_in(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n")) if data else 0


def _own_end() -> int:
    """Return the reading end of the pipe, locked: one writer at a time reads it. Raises BlockingIOError."""
    try:
        # Opened anew: the lock of what was inherited would be the host's as well.
        file = os.open("/proc/self/fd/0", os.O_RDONLY)
    except OSError:
        return 0
    _lock(file)
    os.close(0)
    return file


def _lock(file: int) -> None:
    """Take a lock, waiting two seconds: who only looks whether there is a writer holds it for a moment."""
    deadline = time.monotonic() + 2.0
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def main(argv: list[str]) -> None:
    """Write until nobody is left who could print anything."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    path, limit, rules = argv[1], int(argv[2]), int(argv[3])
    with os.fdopen(rules, "rb") as file:
        lines = Lines(Rules(**json.loads(file.read())), withhold="withhold" in argv[4:])
    try:
        engine = _own_end()
    except BlockingIOError:
        return  # Another one is at work.
    try:
        log: LogFile | None = LogFile(path, limit)
    except OSError:
        log = None  # What it prints goes nowhere; the engine must not notice.
    while chunk := os.read(engine, _CHUNK):
        written = lines.feed(chunk)
        if log is not None:
            log.write(written)
    if log is not None:
        log.write(lines.end())


if __name__ == "__main__":
    main(sys.argv)
