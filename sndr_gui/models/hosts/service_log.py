"""The lines of a unit or a container on another machine, followed as they come."""

from __future__ import annotations

import shlex
import time

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Problem
from engine_host.protocol.operations import services as ops
from engine_host.protocol.remote.services import Service, ServiceLogQuery, ServiceLogs
from sndr_gui.host.session import Session

LINES = 400
_MOST_LINES = 5000
_WAIT_SECONDS = 5.0
_PAUSE_MS = 1000
"""A machine that answers at once is not asked without a pause."""


class ServiceLogModel(QObject):
    """Asks for the newest lines, and for those that come while it follows.

    Signals:
        lines: texts, and True where they take the place of what was there
        changed: a note or a problem is new
    """

    lines = Signal(list, bool)
    changed = Signal()

    def __init__(self, session: Session, host: str, service: Service) -> None:
        super().__init__()
        self.session, self.host, self.service = session, host, service
        self.note = ""
        self.problem: Problem | None = None
        self.following = True
        self._cursor = ""
        self._asking = self._closed = False
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._pause.timeout.connect(self.read)

    @property
    def command(self) -> str:
        """The command that prints the same."""
        words = ["sndr", "host", "logs", self.host, self.service.name, "--in", self.service.manager.value]
        return shlex.join([*words, *(["--follow"] if self.following else [])])

    def follow(self, on: bool) -> None:
        """Ask for more lines, or leave those that are there."""
        self.following = on
        if on:
            self.read()
        else:
            self._pause.stop()
        self.changed.emit()

    def close(self) -> None:
        """Ask no more; an answer that is on its way is dropped."""
        self._closed = True
        self._pause.stop()

    def read(self) -> None:
        """Ask for the newest lines, or those after the last ones."""
        if self._asking or self._closed:
            return
        self._asking = True
        began, after = time.monotonic(), self._cursor
        asked = ServiceLogQuery(lines=LINES)
        if after:
            asked = ServiceLogQuery(lines=_MOST_LINES, after=after, wait=_WAIT_SECONDS)

        async def work(client: AsyncControlClient) -> None:
            logs: ServiceLogs = await client.call(
                ops.SERVICE_LOGS,
                asked,
                name=self.host,
                manager=self.service.manager.value,
                service=self.service.name,
            )
            self.problem, self.note = None, logs.note
            self._cursor = logs.cursor or after
            if not self._closed and (logs.lines or not after):
                self.lines.emit([one.text for one in logs.lines], not after)

        def failed(error: HostError) -> None:
            self.problem = error.problem

        def done() -> None:
            self._asking = False
            if self._closed:
                return
            self.changed.emit()
            if self.following:
                waited = time.monotonic() - began > 1.0 and self.problem is None
                self._pause.start(0 if waited else _PAUSE_MS)

        self.session.command(f"log of {self.service.name}", work, done=done, failed=failed)
