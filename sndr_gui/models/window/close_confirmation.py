"""Asks before the window takes the host along while other programs wait for answers."""

import time
from collections.abc import Callable

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.host import HostStay
from engine_host.protocol.language import ntr, tr
from engine_host.protocol.operations import table as ops
from sndr_gui.host.connection import USER_AGENT
from sndr_gui.host.session import Session
from sndr_gui.host.state import OPEN_REQUESTS
from sndr_gui.kit.formats import listed
from sndr_gui.kit.settings import OnClose, SettingsFile
from sndr_gui.models.settings.page import save_window_settings

_SECONDS_TO_CONFIRM = 10.0


class CloseConfirmation:
    """Decides whether closing needs a confirmation: the first close asks, another one soon after closes."""

    def __init__(self, session: Session, file: SettingsFile) -> None:
        self._session, self._file = session, file
        self._asked_at: float | None = None

    @property
    def ending(self) -> str:
        """The engines that would end with the window; empty where none would."""
        return listed([engine.name for engine in self._session.state.live]) if self._takes_along else ""

    @property
    def choice(self) -> OnClose:
        """The answer that is remembered."""
        return self._file.current.on_close

    def remember(self, choice: OnClose) -> None:
        """Answer so from now on, without asking."""
        save_window_settings(self._file, self._session.notices.warning, on_close=choice)

    @property
    def others(self) -> str:
        """The requests of other programs that would end, in a sentence; empty where there are none."""
        count = self._others()
        if not count:
            return ""
        return ntr(
            "One request of another program is being answered.",
            "{n} requests of others are being answered.",
            count,
        )

    def keep(self, then: Callable[[], object]) -> None:
        """Have the host and its engines stay, and go on only once that is sure."""
        kept: list[bool] = []

        async def work(client: AsyncControlClient) -> None:
            self._session.state.host = await client.call(ops.STAY_HOST, HostStay())
            kept.append(True)

        def done() -> None:
            if kept:
                then()

        self._session.command("keep the engines", work, done=done)

    def question(self) -> str:
        """Return the question to ask instead of closing; empty when the window may close now."""
        now = time.monotonic()
        asked, self._asked_at = self._asked_at, None
        count = self._others()
        if not count or (asked is not None and now - asked < _SECONDS_TO_CONFIRM):
            return ""
        self._asked_at = now
        live = [engine.name for engine in self._session.state.live]
        said = ntr(
            "One request of another program is being answered, and would end with this window.",
            "{n} requests of others are being answered, and would end with this window.",
            count,
        )
        if len(live) > 1:
            return tr("{said} Close again to end {engines}.", said=said, engines=listed(live))
        return tr("{said} Close again to end all.", said=said)

    @property
    def _takes_along(self) -> bool:
        """True while the host would end with this window."""
        session = self._session
        connection = session.connection
        return connection.owned and connection.connected and not session.state.outlives_window

    def _others(self) -> int:
        """Count the requests of other programs that would end with the host."""
        session = self._session
        if not self._takes_along:
            return 0
        return sum(
            request.state in OPEN_REQUESTS and request.client != USER_AGENT
            for request in session.state.requests.values()
        )
