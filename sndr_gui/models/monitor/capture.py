"""The view-model of the capture: whether texts of requests are kept, until when, and how many."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Signal

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.endpoint.requests import CaptureState, StartCapture
from engine_host.protocol.engines import Request
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations.definition import Nothing
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.window.throttle import Throttle

MINUTES = 15


class CaptureModel(QObject):
    """The model of the line about captured texts.

    Signals:
        changed: the state is new
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.state: CaptureState | None = None
        self._throttle = Throttle(self, 500, self.refresh)
        session.state.request_changed.connect(self._on_request)
        session.state.host_changed.connect(self._on_host)

    @property
    def on(self) -> bool:
        """True while texts of requests are kept."""
        return self.state is not None and self.state.until is not None and self.state.until > time.time()

    @property
    def sentence(self) -> str:
        """The state in a sentence."""
        state = self.state
        if state is None:
            return ""
        if self.on and state.until is not None:
            held = f"{formats.plural(state.requests, 'request')}, {formats.size(state.bytes)}"
            clock = time.strftime("%H:%M", time.localtime(state.until))
            return tr("Texts are kept in memory until {clock}: {held}.", clock=clock, held=held)
        return tr("Texts of requests are not kept.")

    def refresh(self) -> None:
        """Read the state."""

        async def work(client: AsyncControlClient) -> None:
            self._take(await client.call(endpoint_ops.CAPTURE_STATE, Nothing()))

        if self.session.connection.connected:
            self.session.command("capture", work, failed=lambda _error: None)

    def start(self) -> None:
        """Keep texts for a quarter of an hour from now."""

        async def work(client: AsyncControlClient) -> None:
            self._take(await client.call(endpoint_ops.START_CAPTURE, StartCapture(minutes=MINUTES)))

        self.session.command("capture requests", work)

    def stop(self) -> None:
        """Keep no more, and forget what is kept."""

        async def work(client: AsyncControlClient) -> None:
            self._take(await client.call(endpoint_ops.STOP_CAPTURE, Nothing()))

        self.session.command("forget captured requests", work)

    def _take(self, state: CaptureState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit()

    def _on_request(self, request: Request) -> None:
        if request.captured:
            self._throttle.trigger()

    def _on_host(self) -> None:
        self.refresh()
