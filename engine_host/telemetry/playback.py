"""Plays a recorded trace of GPUs beside what is measured, as what it is: never in the place of real GPUs."""

import logging
import threading
import time
from collections.abc import Callable

from engine_host.core.errors import HostError
from engine_host.core.gpu_trace.format import Trace
from engine_host.core.outside import files
from engine_host.core.settings import SettingsFile
from engine_host.protocol.errors import Problem
from engine_host.protocol.host import Gpu, Playback

_log = logging.getLogger(__name__)
_MOST_AT_ONCE = 20_000
"""Moments that one reading goes past at most: a clock that jumped must not hold the sampler."""


class TracePlayer:
    """Plays the trace that the setting `host.gpu_trace` names, again from the start at its end.

    `read` belongs on a thread, as the reading of real GPUs does; a file is read as it is played.
    """

    def __init__(self, settings: SettingsFile, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._path = ""
        self._trace: Trace | None = None
        self._began = 0.0
        self._at: float | None = None
        self._shown: Playback | None = None

    @property
    def shown(self) -> Playback | None:
        """The trace that is played, with its newest moment; None while nothing is."""
        return self._shown

    def read(self) -> tuple[Gpu, ...]:
        """Return the recorded GPUs of this moment; none where no trace is played, or it cannot be."""
        with self._lock:
            path = self._settings.current.host.gpu_trace or ""
            if path != self._path:
                self._open(path)
            if self._trace is None:
                return ()
            try:
                return self._moment(self._trace)
            except HostError as error:
                self._fail(error.problem)
                return ()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._let_go()

    def _open(self, path: str) -> None:
        self._let_go()
        self._path, self._shown = path, None
        if not path:
            return
        try:
            self._trace = Trace(files.expanded(path))
        except HostError as error:
            self._fail(error.problem)
            return
        self._began, self._at = self._clock(), None

    def _moment(self, trace: Trace) -> tuple[Gpu, ...]:
        """Go on to the moment that is due, and tell of it; the last one stays until the next reading."""
        due = self._clock() - self._began
        if self._at is not None and trace.ahead() is None:
            trace.rewind()
            self._began, self._at, due = self._clock(), None, 0.0
        for _ in range(_MOST_AT_ONCE):
            ahead = trace.ahead()
            if ahead is None or (self._at is not None and ahead > due):
                break
            self._at = trace.next()
        if self._at is None:
            raise trace.refused("has no moment: nothing was recorded")
        gpus = trace.gpus()
        head = trace.head
        self._shown = Playback(
            file=self._path,
            recorded_at=head.recorded_at,
            driver=head.driver,
            gpus=gpus,
            second=self._at,
        )
        return gpus

    def _fail(self, problem: Problem) -> None:
        self._let_go()
        _log.warning("The recorded trace is not played: %s", problem.message)
        self._shown = Playback(file=self._path, problem=problem)

    def _let_go(self) -> None:
        if self._trace is not None:
            self._trace.close()
            self._trace = None
