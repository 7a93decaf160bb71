"""The host's own account: every request that it told of, and its outcome."""

import contextlib
import threading

from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.engines import RequestState
from engine_host.protocol.events import EngineRequestEvent, HostStateEvent, MissedEvent, ResetEvent

ENDED = {RequestState.DONE, RequestState.FAILED, RequestState.CANCELLED}


class Account:
    """Follows the events of a host in a thread of its own, until the host ends."""

    def __init__(self, folders: Folders, after: int) -> None:
        self.states: dict[str, RequestState] = {}
        self.again: list[str] = []
        self.missed = 0
        self._client = ControlClient(folders)
        self._client.connect()
        self._after = after
        self._thread = threading.Thread(target=self._follow, name="account")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the host's events."""
        self._thread.join(60)
        self._client.close()

    def without_outcome(self) -> list[str]:
        """Return the requests that never ended."""
        return [name for name, state in self.states.items() if state not in ENDED]

    def without(self, told: dict[str, str]) -> dict[str, str]:
        """Return those requests that clients know of and the host does not."""
        return {name: outcome for name, outcome in told.items() if name not in self.states}

    def _follow(self) -> None:
        with contextlib.suppress(HostError):
            for event in self._client.events(self._after):
                if isinstance(event, EngineRequestEvent):
                    request = event.request
                    if self.states.get(request.id) in ENDED:
                        self.again.append(f"{request.id}: {self.states[request.id]}, then {request.state}")
                    self.states[request.id] = request.state
                elif isinstance(event, MissedEvent | ResetEvent):
                    self.missed += 1
                elif isinstance(event, HostStateEvent) and event.state == "closing":
                    return
