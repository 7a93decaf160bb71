"""Engines that run on another machine without a host of ours: found by facts, asked by forwarded ports."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.gateway.directory import Target
from engine_host.gateway.upstream import UpstreamLostError, fetch
from engine_host.protocol.remote.hosts import RemoteEngine, RemoteFacts
from engine_host.protocol.text import first_break
from engine_host.remote.figures import Counter, tokens_in
from engine_host.remote.ssh.connection import Connection

_log = logging.getLogger(__name__)
_Found = TypeVar("_Found")
_FACTS, _MODELS = 60.0, 10.0
"""Seconds between two looks at the machine, and at the models of its engines."""
_PATIENCE = 10.0
_MOST_ENGINES, _MOST_MODELS, _LONGEST_ID = 16, 50, 300
_MOST_FORWARDED = 64
_SLOTS = 64
_UNKNOWN_CONTEXT = 4096
"""Tokens of a context that an engine does not tell: what most of them begin with."""
_PORTS = {"vllm": 8000, "sglang": 30000, "llama.cpp": 8080, "ollama": 11434}
_EVERYWHERE = {"0.0.0.0", "[::]", "*"}


@dataclass(frozen=True)
class RunningModel:
    """A model that an engine there answers for; `socket` is its forwarded port."""

    id: str
    context: int
    embeddings: bool
    socket: str

    def target(self, host: str) -> Target:
        """Return it as what a route may lead to."""
        return Target(
            engine=f"host:{host}/{self.id}",
            name=f"{host}/{self.id}",
            slots=_SLOTS,
            context=self.context,
            created_at=0.0,
            socket=self.socket,
            owned_by=host,
            embeddings=self.embeddings,
            fill_in_the_middle=False,
            native_infill=False,
            usage_on_request=True,
            known_as=self.id,
            provider=host,
            machine=host,
        )


class RunningEngines:
    """Looks at one agentless machine as long as its connection stands."""

    def __init__(
        self,
        connection: Connection,
        read: Callable[[], Awaitable[RemoteFacts]],
        changed: Callable[[tuple[RunningModel, ...], float | None], None],
    ) -> None:
        """`read` reads its facts anew; `changed` is told which models can be asked, and of their rate."""
        self._connection = connection
        self._read = read
        self._changed = changed
        self._now = asyncio.Event()
        self._forwarded: set[str] = set()
        self._counters: dict[str, Counter] = {}
        self._places: list[tuple[str, str]] = []

    def look(self) -> None:
        """Look now and not only after the pause."""
        self._now.set()

    async def look_now(self, seconds: float) -> None:
        """Ask the engines that were found which models they have, for that long at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._tried(self._ask(self._places), None)

    async def keep(self) -> None:
        """Look again and again, until this is cancelled."""
        while True:
            # What cannot be read now may be in a minute; the connection itself is watched elsewhere.
            self._places = await self._tried(self._read_places(), self._places)
            until = asyncio.get_running_loop().time() + _FACTS
            while asyncio.get_running_loop().time() < until and not self._now.is_set():
                await self._tried(self._ask(self._places), None)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_MODELS):
                        await self._now.wait()
            self._now.clear()

    async def _tried(self, work: Coroutine[Any, Any, _Found], known: _Found) -> _Found:
        """Return what a look finds; what was known where it fails, for it must not end the next one."""
        name = self._connection.host.name
        try:
            return await work
        except HostError as error:
            _log.info("the engines of %s could not be looked at: %s", name, error.problem.message)
        except Exception:  # noqa: BLE001 - nobody would hear of it, and no engine be found any more
            _log.exception("the engines of %s could not be looked at", name)
        return known

    async def _read_places(self) -> list[tuple[str, str]]:
        """Forward the ports of its engines, and no others any longer; return the kind and socket of each."""
        facts = await self._read()
        listening = (
            (address, engine.kind)
            for engine in facts.engines[:_MOST_ENGINES]
            for address in _addresses(engine, facts.user not in (engine.user, "root"))
        )
        wanted = dict(islice(listening, _MOST_FORWARDED))
        for address in sorted(self._forwarded - wanted.keys()):
            with contextlib.suppress(HostError):
                await self._connection.end_forward(self._connection.folder.engine(address), address)
                self._forwarded.discard(address)
        found = []
        for address, kind in wanted.items():
            socket = self._connection.folder.engine(address)
            if address not in self._forwarded:
                if len(self._forwarded) >= _MOST_FORWARDED:
                    continue
                try:
                    await self._connection.forward(socket, address)
                except HostError:
                    continue
                self._forwarded.add(address)
            found.append((kind, str(socket)))
        return found

    async def _ask(self, places: list[tuple[str, str]]) -> None:
        """Ask all engines at once which models they have, and tell of them."""
        answers = await asyncio.gather(*(self._models(kind, socket) for kind, socket in places))
        found = [model for models in answers for model in models]
        serving = {model.socket for model in found}
        rates = await asyncio.gather(*(self._rate(socket) for socket in sorted(serving)))
        self._counters = {socket: one for socket, one in self._counters.items() if socket in serving}
        told = [rate for rate in rates if rate is not None]
        models = tuple({model.id: model for model in reversed(found)}.values())
        self._changed(models, sum(told) if told else None)

    async def _rate(self, socket: str) -> float | None:
        """Return the tokens a second of an engine since it was last asked, None where it does not tell."""
        text = (await _answer(socket, "/metrics")).decode("utf-8", "replace")
        counter = self._counters.setdefault(socket, Counter())
        return counter.add(asyncio.get_running_loop().time(), await asyncio.to_thread(tokens_in, text))

    async def _models(self, kind: str, socket: str) -> list[RunningModel]:
        """Return the models behind a forwarded port; none where it does not answer as an engine does."""
        listed = await _asked(socket, "/v1/models")
        entries = listed.get("data")
        context = await self._context(kind, socket)
        found = []
        for entry in entries[:_MOST_MODELS] if isinstance(entries, list) else ():
            name = entry.get("id") if isinstance(entry, dict) else None
            if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_ID or first_break(name) is not None:
                continue
            said = _whole(entry.get("max_model_len")) or context or _UNKNOWN_CONTEXT
            found.append(RunningModel(name, said, "embed" in name.lower(), socket))
        return found

    async def _context(self, kind: str, socket: str) -> int | None:
        if kind != "llama.cpp":
            return None
        settings = (await _asked(socket, "/props")).get("default_generation_settings")
        return _whole(settings.get("n_ctx")) if isinstance(settings, dict) else None


def _addresses(engine: RemoteEngine, hidden: bool) -> Iterator[str]:
    """Return where an engine may be asked, as ssh forwards to it.

    Of one of another user (`hidden`) nobody sees what it listens on: its words tell the port, or its kind.
    """
    for listened in engine.listens[:_MOST_ENGINES]:
        host, _, port = listened.rpartition(":")
        yield f"127.0.0.1:{port}" if host in _EVERYWHERE else listened
    if not hidden or engine.listens:
        return
    words = engine.arguments
    said = next((words[at + 1] for at, word in enumerate(words[:-1]) if word == "--port"), "")
    number = int(said[:6]) if said.isascii() and said.isdecimal() else _PORTS.get(engine.kind, 0)
    if 0 < number < 65536:
        yield f"127.0.0.1:{number}"


async def _asked(socket: str, path: str) -> dict[str, Any]:
    """Return what an engine says; nothing where it does not answer, or not with an object."""
    try:
        return json_text.parse_object(await _answer(socket, path) or b"{}")
    except ValueError:
        return {}


async def _answer(socket: str, path: str) -> bytes:
    """Return the body of an engine's answer; nothing where it does not answer, or with a refusal."""
    target = Target("engine", "engine", 1, 1, 0.0, socket=socket)
    try:
        async with asyncio.timeout(_PATIENCE):
            status, body = await fetch(target, "GET", path)
    except (UpstreamLostError, TimeoutError):
        return b""
    return body if status == 200 else b""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31 else None
