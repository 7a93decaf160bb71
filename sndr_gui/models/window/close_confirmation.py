"""Asks before the window takes the host along while other programs wait for answers."""

import time

from sndr_gui.host.connection import USER_AGENT
from sndr_gui.host.session import Session
from sndr_gui.host.state import OPEN_REQUESTS
from sndr_gui.kit.formats import listed

_SECONDS_TO_CONFIRM = 10.0


class CloseConfirmation:
    """Decides whether closing needs a confirmation: the first close asks, another one soon after closes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked_at: float | None = None

    def question(self) -> str:
        """Return the question to ask instead of closing; empty when the window may close now."""
        now = time.monotonic()
        asked, self._asked_at = self._asked_at, None
        count = self._others()
        if not count or (asked is not None and now - asked < _SECONDS_TO_CONFIRM):
            return ""
        self._asked_at = now
        running = "One request of another program is" if count == 1 else f"{count} requests of others are"
        live = [engine.name for engine in self._session.state.live]
        what = f"end {listed(live)}" if len(live) > 1 else "end all"
        return f"{running} being answered, and would end with this window. Close again to {what}."

    def _others(self) -> int:
        """Count the requests of other programs that would end with the host."""
        session = self._session
        if not session.connection.owned or not session.connection.connected or session.state.outlives_window:
            return 0
        return sum(
            request.state in OPEN_REQUESTS and request.client != USER_AGENT
            for request in session.state.requests.values()
        )
