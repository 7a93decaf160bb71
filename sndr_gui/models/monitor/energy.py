"""The energy of the time that Monitor shows; read only while the GPUs' graphs are looked at."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.client.energy_words import energy_sentence
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import EnergyQuery, Sample
from sndr_gui.host.session import Session

_EVERY = 10.0
"""Seconds between two readings: as often as the host asks a GPU's counter."""


class EnergyModel(QObject):
    """The energy up to now.

    Signals:
        changed: another figure
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.said = ""
        self._span = 0.0
        self._shown = self._asking = False
        self._asked_at = float("-inf")
        session.state.sampled.connect(self._on_sample)

    def set_shown(self, shown: bool, span: float) -> None:
        """Begin to read the energy of so many seconds, or stop."""
        if shown and (not self._shown or span != self._span):
            self._span = span
            self.load()
        self._shown = shown

    def load(self) -> None:
        """Ask the host."""
        if self._asking or not self.session.connection.connected:
            return
        self._asking = True

        async def work(client: AsyncControlClient) -> None:
            page = await client.call(ops.ENERGY, EnergyQuery(since=time.time() - self._span))
            self.said = energy_sentence(page)
            self.changed.emit()

        self.session.command("energy", work, done=self._on_done, failed=self._on_failed)

    def _on_done(self) -> None:
        self._asking = False

    def _on_failed(self, _error: HostError) -> None:
        # A host of an older version has none; that the connection is lost is said elsewhere.
        self.said = ""
        self.changed.emit()

    def _on_sample(self, sample: Sample) -> None:
        if self._shown and not _EVERY > sample.at - self._asked_at >= 0:
            self._asked_at = sample.at
            self.load()
