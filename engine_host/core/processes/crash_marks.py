"""Marks of programs that run: one that is left behind tells of a crash, with what Python could still write.

Only the standard library: the window sets its mark before its first picture. The mark is a file that its
process holds locked; the system takes the lock away however the process ends, and no number is used twice.
"""

import contextlib
import faulthandler
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TextIO

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MOST = 64 << 10
_KEPT = 10
_MARK, _TRACE, _REPORT = ".mark", ".trace", ".txt"


@dataclass(frozen=True)
class Crash:
    """One program that did not end in order: its report, in a file, and when it was started (Unix time)."""

    program: str
    started_at: float
    traced: bool
    report: Path


class CrashMark:
    """The mark of this process; `note` keeps an error for the report, `clear` is an end in order."""

    def __init__(self, folder: Path, program: str, version: str) -> None:
        """Set the mark, and have Python write there what it can at a fault. Raises OSError."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(folder)
        name = f"{program}-{os.getpid()}-{time.time_ns() // 1_000_000}"
        self._mark, self._trace = folder / (name + _MARK), folder / (name + _TRACE)
        self._lock = os.open(self._mark, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        _lock(self._lock)
        said = {"program": program, "version": version, "at": time.time(), **_place(os.environ)}
        os.write(self._lock, json.dumps(said).encode())
        self._file: TextIO = self._trace.open("x", encoding="utf-8")
        self._had = faulthandler.is_enabled()
        faulthandler.enable(self._file)
        self._before = sys.excepthook
        sys.excepthook = self._on_exception

    def note(self, error: BaseException) -> None:
        """Write an error down, with its traceback; of very many the first ones."""
        with contextlib.suppress(OSError, ValueError):
            if self._file.tell() < _MOST:
                self._file.write(
                    f"{time.strftime('%H:%M:%S')}\n{''.join(traceback.format_exception(error))}\n"
                )
                self._file.flush()

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            self.note(error)
        self._before(kind, error, trace)

    def _let_go(self) -> None:
        sys.excepthook = self._before
        faulthandler.disable()
        if self._had:
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                faulthandler.enable()
        self._file.close()
        os.close(self._lock)

    def clear(self) -> None:
        """Take the mark away: this process ends in order."""
        self._trace.unlink(missing_ok=True)
        self._mark.unlink(missing_ok=True)
        self._let_go()

    def leave(self) -> None:
        """Leave the mark behind: this process ends by an error."""
        self._let_go()


@contextlib.contextmanager
def marked(
    folder: Path, program: str, version: str, in_order: tuple[type[BaseException], ...] = ()
) -> Iterator[CrashMark | None]:
    """Mark this process while the block runs; an error that is none of `in_order` is a crash.

    None where the folder cannot be written, which stops nothing.
    """
    mark: CrashMark | None = None
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            mark = CrashMark(folder, program, version)
    if mark is None:
        yield None
        return
    try:
        yield mark
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit, *in_order)):
            mark.clear()
        else:
            mark.note(error)
            mark.leave()
        raise
    mark.clear()


def take_crashes(folder: Path) -> tuple[Crash, ...]:
    """Turn the marks of programs that are gone into reports, each once; return those that are worth telling.

    One without a trace tells only of its own session of this very boot: a machine that was switched off and a
    desktop that was left end every program, and none of them crashed.
    """
    found = []
    for path, said, trace in _left(folder):
        program, at = str(said.get("program", "?")), said.get("at")
        crash = Crash(program, at if isinstance(at, float) else 0.0, bool(trace), path.with_suffix(_REPORT))
        told = bool(trace) or all(said.get(name) == value for name, value in _place(os.environ).items())
        with contextlib.suppress(OSError):
            if told:
                crash.report.write_text(_text(said, trace), encoding="utf-8")
                crash.report.chmod(0o600)
                found.append(crash)
            path.with_suffix(_TRACE).unlink(missing_ok=True)
            path.unlink()
    return tuple(found)


def reports(folder: Path, most: int = 3) -> list[tuple[str, str]]:
    """Return the newest reports, those of marks that nobody has taken yet among them: names and texts."""
    texts = [(path.with_suffix(_REPORT).name, _text(said, trace)) for path, said, trace in _left(folder)]
    for path in _newest(folder, _REPORT)[:most]:
        with contextlib.suppress(OSError):
            texts.append((path.name, _begin(path)))
    return texts[:most]


def _left(folder: Path) -> Iterator[tuple[Path, dict[str, object], str]]:
    """Yield the marks that no process holds any more, with what they say and what was traced."""
    if sys.platform == "win32":
        return
    for path in _newest(folder, _MARK):
        try:
            opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            _lock(opened)
            said = json.loads(os.read(opened, 4096))
        except BlockingIOError:
            continue
        except (OSError, ValueError, RecursionError):
            said = {}
        finally:
            os.close(opened)
        try:
            trace = _begin(path.with_suffix(_TRACE))
        except OSError:
            trace = ""
        yield path, said if isinstance(said, dict) else {}, trace


def _text(said: Mapping[str, object], trace: str) -> str:
    program, at = said.get("program", "?"), said.get("at")
    day = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) if isinstance(at, float) else "not known"
    head = f"The {program} of sndr {said.get('version', '?')}, started {day} (UTC), did not end in order.\n"
    nothing = "It left no trace: it was killed, or ended by the system, such as for lack of memory.\n"
    return f"{head}\n{trace or nothing}"


def _place(environment: Mapping[str, str]) -> dict[str, str]:
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return {"boot": boot, "session": environment.get("XDG_SESSION_ID", "")}


def _begin(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(2 * _MOST).decode(errors="replace")


def _newest(folder: Path, ending: str) -> list[Path]:
    found = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.suffix == ending:
                with contextlib.suppress(OSError):
                    found.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(found, reverse=True)]


def _remove_old(folder: Path) -> None:
    old = [path for path, _, _ in _left(folder)][_KEPT:] + _newest(folder, _REPORT)[_KEPT:]
    for path in old:
        with contextlib.suppress(OSError):
            path.with_suffix(_TRACE).unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def _lock(opened: int) -> None:
    """Lock an open file. Raises BlockingIOError where another process holds it."""
    assert sys.platform != "win32"
    import fcntl

    fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
