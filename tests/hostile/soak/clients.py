"""Clients of every kind, each on a socket of its own, over and over again until the soak ends."""

import asyncio
import contextlib
import json
import random
import re
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n"
_ID = re.compile(rb"x-request-id: (req_[0-9a-f]+)\r\n")
_PATIENCE = 120.0
"""Seconds after which an answer that did not end hangs; a slow reader's takes some thirty."""
_KINDS = {"reader": 55, "whole": 15, "slow reader": 8, "leaver": 16, "no reader": 2, "careless": 4}
_AFTER_ERROR = 0.5
_NOT_TAKEN = {f"refused: {code}" for code in ("engine_not_ready", "no_engine_runs", "draining", "queue_full")}
"""Outcomes of requests that were refused before they were requests to an engine; the log has none of them."""


@dataclass
class Told:
    """What the clients saw: outcomes by kind, of requests that were taken by id, and what went wrong."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    first_bytes: list[float] = field(default_factory=list)

    def add(self, kind: str, outcome: str) -> None:
        """Count an outcome."""
        self.outcomes.setdefault(kind, Counter())[outcome] += 1

    @property
    def requests(self) -> int:
        """All requests that were sent."""
        return sum(counts.total() for counts in self.outcomes.values())


class Clients:
    """So many clients at once, each of a new kind after each request."""

    def __init__(self, port: int, count: int, seed: int) -> None:
        self.told = Told()
        self._port = port
        self._count = count
        self._rng = random.Random(seed)
        self._ending = asyncio.Event()

    async def run(self) -> None:
        """Ask and ask again, until `end`; returns when the last answer has ended."""
        await asyncio.gather(*(self._one(number) for number in range(self._count)))

    def end(self) -> None:
        """Let every client finish what it does."""
        self._ending.set()

    async def _one(self, number: int) -> None:
        # Not all in the same moment: a backlog of connections is not what is tested here.
        await asyncio.sleep(number * 4 / self._count)
        while not self._ending.is_set():
            kind = self._rng.choices([*_KINDS], [*_KINDS.values()])[0]
            try:
                async with asyncio.timeout(_PATIENCE):
                    outcome = await self._ask(kind)
            except TimeoutError:
                self.told.faults.append(f"{kind}: hangs after {_PATIENCE:.0f} s")
                outcome = "hangs"
            self.told.add(kind, outcome)
            if outcome not in {"done", "left", "cut off"}:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_AFTER_ERROR):
                        await self._ending.wait()

    async def _ask(self, kind: str) -> str:
        body: dict[str, object] = {"messages": [{"role": "user", "content": "x"}], "stream": kind != "whole"}
        pause = self._rng.uniform(0.1, 0.3)
        fake: dict[str, object] = {"tokens": self._rng.randrange(8, 24), "pause": pause}
        if kind in {"slow reader", "no reader"}:
            fake = {"tokens": 150, "size": 4_000, "pause": 0.002}
        if kind == "careless":
            careless: tuple[dict[str, object], ...] = ({"status": 400}, {"status": 500}, {"breaks": 3})
            fake = self._rng.choice(careless)
        data = json.dumps({**body, "fake": fake}).encode()
        async with self._connected(small=kind in {"slow reader", "no reader"}) as sock:
            loop, began = asyncio.get_running_loop(), time.monotonic()
            await loop.sock_sendall(sock, _HEAD % len(data) + data)
            if kind == "no reader":
                return await self._wait_without_reading(sock)
            leaves_at = self._rng.uniform(0.0, 3.0) if kind == "leaver" else None
            return await self._read(sock, kind, began, leaves_at)

    async def _read(self, sock: socket.socket, kind: str, began: float, leaves_at: float | None) -> str:
        loop, answer, tail = asyncio.get_running_loop(), b"", b""
        outcome = request = ""
        while True:
            try:
                async with asyncio.timeout_at(None if leaves_at is None else loop.time() + leaves_at):
                    part = await loop.sock_recv(sock, 16_384)
            except TimeoutError:
                outcome = "left"
                break
            except ConnectionError:
                part = b""
            if not answer:
                self.told.first_bytes.append(time.monotonic() - began)
            answer = answer if len(answer) > 2_000 else answer + part
            tail = (tail + part)[-2_000:]
            if (found := _ID.search(answer)) is not None:
                request = found[1].decode()
            if (outcome := _outcome(answer, tail)) or not part:
                break
            if kind == "slow reader":
                await asyncio.sleep(0.15)
        # Who leaves in the middle of a refusal has its head alone.
        is_refusal = outcome in _NOT_TAKEN or (outcome == "left" and not answer.startswith(b"HTTP/1.1 200"))
        if request and not is_refusal:
            self.told.ids[request] = f"{kind}: {outcome}"
        if not outcome:
            self.told.faults.append(f"{kind}: an answer without an end: {answer[:200]!r} … {tail[-200:]!r}")
        return outcome or "lost"

    async def _wait_without_reading(self, sock: socket.socket) -> str:
        """Read nothing for a while; whoever is given up meanwhile is cut off, and the others leave."""
        patience = self._rng.choice((1.0, 5.0, 40.0))
        end = time.monotonic() + patience
        while time.monotonic() < end and not self._ending.is_set():
            await asyncio.sleep(0.25)
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return "cut off"
        return "left"

    @contextlib.asynccontextmanager
    async def _connected(self, *, small: bool) -> AsyncIterator[socket.socket]:
        with socket.socket() as sock:
            sock.setblocking(False)
            if small:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self._port))
            yield sock


def _outcome(answer: bytes, tail: bytes) -> str:
    """The outcome of a whole answer; empty for one that has not ended."""
    if b"data: [DONE]" in tail:
        return "done"
    if b'data: {"error"' in tail and tail.endswith(b"0\r\n\r\n"):
        return f"ended: {_code(tail)}"
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found or b"text/event-stream" in head:
        return ""
    length = re.search(rb"content-length: (\d+)", head)
    if length is None or len(body) < int(length[1]):
        return ""
    return "done" if head.startswith(b"HTTP/1.1 200") else f"refused: {_code(body)}"


def _code(data: bytes) -> str:
    found = re.search(rb'"code":\s?"?([\w]+)', data)
    return found[1].decode() if found else "?"
