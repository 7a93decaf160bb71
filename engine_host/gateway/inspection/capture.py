"""Requests and answers as they were sent, kept while somebody has asked for it: in memory, and bounded.

Off unless switched on, and then for some minutes of this run of the host; with them the texts go. Nothing
here is ever written to disk; what is read out of it has passed `redaction`.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Send

from engine_host.core.outside.secret_texts import HIDDEN
from engine_host.gateway.inspection.assembled import assembled
from engine_host.gateway.inspection.redaction import redacted_headers, secrets_of
from engine_host.protocol.endpoint.requests import CaptureState

MOST_OF_EACH = 1 << 20
"""Bytes kept of each text of a request: sent and translated, the engine's answer and the client's."""
_MOST_BYTES = 64 << 20
_MOST_REQUESTS = 200


@dataclass(eq=False)
class Kept:
    """The beginning of a text, and how many bytes it has."""

    data: bytearray = field(default_factory=bytearray)
    size: int = 0

    @property
    def whole(self) -> bool:
        """True if nothing of it is missing."""
        return len(self.data) == self.size

    def add(self, data: bytes) -> int:
        """Keep what there is room for; the number of bytes that were kept."""
        room = MOST_OF_EACH - len(self.data)
        self.size += len(data)
        if room <= 0:
            return 0
        part = data[:room]
        self.data += part
        return len(part)


class Capture:
    """One request as it passes; of one that made room for newer ones nothing more is kept."""

    def __init__(
        self,
        request_id: str,
        path: str,
        headers: Mapping[str, str],
        grew: Callable[["Capture", int], None],
        key: str | None = None,
    ) -> None:
        """`key`: the one that who answers is asked with."""
        self.request = request_id
        self.path = path
        self.headers = redacted_headers(headers)
        self.dropped = False
        self.held = 0
        self.asked = Kept()
        self.engine_path = ""
        self.translated = Kept()
        self.engine_status: int | None = None
        self.engine_answer = Kept()
        self.status: int | None = None
        self.answer = Kept()
        self._grew = grew
        self._secrets = secrets_of(headers, key)

    def hide(self, key: str | None) -> None:
        """Take out another key too: that of who is asked next."""
        self._secrets = (*self._secrets, *secrets_of({}, key))

    def to_engine(self, path: str, body: bytes) -> None:
        """Take the request as the engine gets it; the last of several counts."""
        self.engine_path = path
        self.translated, self.engine_answer = Kept(), Kept()
        self.add(self.translated, body)

    def from_engine(self, data: bytes, status: int | None = None) -> None:
        """Take the next bytes of the engine's answer."""
        if status is not None:
            self.engine_status = status
        self.add(self.engine_answer, data)

    def sending(self, send: Send) -> Send:
        """Return a way to the client that is watched."""

        async def watched(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            elif body := message.get("body"):
                self.add(self.answer, body)
            await send(message)

        return watched

    def add(self, kept: Kept, data: bytes) -> None:
        """Keep a part of one of the texts."""
        if self.dropped:
            return
        if count := kept.add(self._hidden(data)):
            self.held += count
            self._grew(self, count)

    def read(self, kept: Kept) -> bytes:
        """Return what is kept of a text; a key that came in two parts is seen only in the whole."""
        return self._hidden(bytes(kept.data))

    def said(self) -> str:
        """Return what the answer says; a key that came word by word is seen only there."""
        words = assembled(bytes(self.answer.data)).encode("utf-8", "replace")
        return self._hidden(words).decode("utf-8", "replace")

    def drop(self) -> None:
        """Forget every text."""
        self.dropped = True
        self.asked, self.translated, self.engine_answer, self.answer = Kept(), Kept(), Kept(), Kept()

    def _hidden(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, HIDDEN.encode())
        return data


class Captures:
    """The captured requests, oldest first, and until when they are held; lives on one event loop."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Capture] = OrderedDict()
        self._bytes = 0
        self._ends = -math.inf
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def on(self) -> bool:
        """True while requests are captured."""
        return time.monotonic() < self._ends

    def start(self, seconds: float) -> None:
        """Capture for so long from now; then all is forgotten."""
        self._cancel()
        self._ends = time.monotonic() + seconds
        self._until = time.time() + seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self.stop)

    def stop(self) -> None:
        """Capture nothing more, and forget what was captured."""
        self._cancel()
        self._ends, self._until = -math.inf, None
        for one in self._held.values():
            one.drop()
        self._held.clear()
        self._bytes = 0

    def begin(
        self, request_id: str, path: str, headers: Mapping[str, str], raw: bytes, key: str | None = None
    ) -> Capture | None:
        """Return the capture of a request; None while none are taken. `key` is who answers' own."""
        if not self.on:
            return None
        made = Capture(request_id, path, headers, self._grew, key)
        self._held[request_id] = made
        made.add(made.asked, raw)
        return made

    def of(self, request_id: str) -> Capture | None:
        """Return what was captured of a request."""
        return self._held.get(request_id)

    def state(self) -> CaptureState:
        """Tell whether requests are captured, and what is held."""
        until = self._until if self.on else None
        return CaptureState(
            until=until,
            requests=len(self._held),
            bytes=self._bytes,
            most_requests=_MOST_REQUESTS,
            most_bytes=_MOST_BYTES,
        )

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _grew(self, one: Capture, count: int) -> None:
        self._bytes += count
        while (self._bytes > _MOST_BYTES or len(self._held) > _MOST_REQUESTS) and self._held:
            name, oldest = next(iter(self._held.items()))
            if oldest is one and len(self._held) == 1:
                return
            del self._held[name]
            self._bytes -= oldest.held
            oldest.drop()
