"""The view-model of a record: what one engine that died held and wanted, as the host tells it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.autopsy_words import record_lines
from engine_host.protocol.bench.autopsy import OpenedAutopsy
from engine_host.protocol.errors import Problem
from engine_host.protocol.operations import table as ops
from engine_host.protocol.remote.host_command import for_host
from sndr_gui.host.session import Session


class RecordModel(QObject):
    """One record.

    Signals:
        changed: it was read, or cannot be
    """

    changed = Signal()

    def __init__(self, session: Session, record: str) -> None:
        super().__init__()
        self.session = session
        self.record = record
        self.opened: OpenedAutopsy | None = None
        self.problem: Problem | None = None

    @property
    def command(self) -> str:
        """The command that says the same."""
        return for_host(f"sndr autopsy {self.record}", self.session.host)

    @property
    def text(self) -> str:
        """The record in words; empty until it was read."""
        return "\n".join(record_lines(self.opened)) if self.opened is not None else ""

    def load(self) -> None:
        """Read it."""

        async def work(client: AsyncControlClient) -> None:
            self.opened = await client.call(ops.AUTOPSY, id=self.record)

        def failed(error: HostError) -> None:
            self.problem = error.problem

        self.session.command("open a record", work, done=self.changed.emit, failed=failed)
