"""Keeps the window joined to its engine host: start or adopt, snapshot, events, and again after a loss."""

import asyncio
import contextlib
import importlib
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import BaseModel
from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.address import RemoteAddress
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engines import ServerPage
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import EVENT
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Nothing, Operation
from engine_host.protocol.operations.remote_hosts import HOSTS, SSH_QUESTIONS
from sndr_gui.host.link import RemoteLink
from sndr_gui.host.process import Address, HostProcess, HostStartFailed
from sndr_gui.host.snapshot import Snapshot
from sndr_gui.host.state import HostState

USER_AGENT = "sndr-window"
_LOOKS = 1.0
_CLIENT = ("engine_host.client.local_http", "anyio.streams.tls", "anyio._backends._asyncio")
_FIRST: tuple[Operation[Any, Any], ...] = (
    *(ops.VERSION, ops.HOST, ops.ENGINES, ops.JOBS, ops.MODELS, ops.SETTINGS, ops.SERVERS),
    *(endpoint_ops.ON_DEMAND, endpoint_ops.REQUESTS, HOSTS, SSH_QUESTIONS),
)
"""What is asked when a host is reached."""
_Answer = TypeVar("_Answer", bound=BaseModel)
_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)


def _load_client() -> None:
    """Import what the first request would, and build what the first answers become: a tenth of a second."""
    for name in _CLIENT:
        # What another version has elsewhere, the first request imports.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for operation in _FIRST:
        operation.answer.model_rebuild()
    EVENT.rebuild()


async def _or_none(asking: Coroutine[Any, Any, _Answer]) -> _Answer | None:
    """Return an answer; None of a host whose version cannot tell it."""
    try:
        return await asking
    except HostError as error:
        if error.reason is not Reason.UNSUPPORTED:
            raise
        return None


class Phase(StrEnum):
    """The state of the connection to the host."""

    STARTING = "starting"
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"
    FAILED = "failed"
    MISMATCH = "mismatch"
    ENDED = "ended"
    CLOSING = "closing"


class HostConnection(QObject):
    """The connection to one host, with its story told in a sentence.

    Signals:
        changed: the phase or the sentence is new
        replaced: another run of the host answers than before; the names of engines that ended with that one
    """

    changed = Signal()
    replaced = Signal(object)

    def __init__(self, state: HostState, process: HostProcess | RemoteLink, name: str = "") -> None:
        """`name` is that of a host on another machine."""
        super().__init__()
        self._name = name
        self._state = state
        self._process = process
        self._client: AsyncControlClient | None = None
        self._again = asyncio.Event()
        self._reads: set[asyncio.Task[None]] = set()
        self._kept_ended = False
        self.phase = Phase.STARTING
        self.sentence = tr("Connecting to {name}…", name=name) if name else tr("Starting the engine host…")
        self.tail: tuple[str, ...] = ()
        self.lost_at: float | None = None
        self.owned = False
        state.outdated.connect(self._on_outdated)

    @property
    def connected(self) -> bool:
        """Tell whether the host answers now."""
        return self.phase is Phase.CONNECTED

    @property
    def client(self) -> AsyncControlClient:
        """The client of the host. Raises HostError(host_unreachable) while there is none."""
        if self._client is None:
            raise HostError(Reason.HOST_UNREACHABLE, tr("The engine host is not connected."))
        return self._client

    @property
    def there(self) -> RemoteAddress | None:
        """The address of a host on another machine; None for this machine's, and while it is not reached."""
        return self._process.address if isinstance(self._process, RemoteLink) else None

    def retry(self) -> None:
        """Try again now instead of after the pause."""
        self._again.set()

    async def run(self) -> None:
        """Stay connected until cancelled."""
        failures = 0
        while True:
            try:
                await self._once()
                failures = 0
                if not await self._ended():
                    self._lost(await self._story())
            except HostStartFailed as error:
                if self.connected:
                    self.lost_at = time.time()
                self.tail = error.tail
                self._tell(Phase.FAILED, str(error))
                failures += 1
            except HostError as error:
                if error.reason is Reason.PROTOCOL_MISMATCH:
                    self._tell(Phase.MISMATCH, error.problem.sentence())
                    failures = len(_PAUSES)
                else:
                    failures = 1 if self.connected else failures + 1
                    if await self._ended():
                        failures = 0
                    else:
                        self._lost(await self._story(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, every page waits for this loop
                failures += 1
                self._defect(error)
            await self._pause(failures)

    async def _ended(self) -> bool:
        """Wait where a command ended this machine's host, until a person or another command starts one.

        One that ended with its own command, such as `sndr run`, was nobody's wish: another one is started,
        unless a person had ended the one before.
        """
        process, asked = self._process, self._state.closing_asked and not self._anothers
        if isinstance(process, RemoteLink) or not (asked or self._kept_ended):
            return False
        self._state.closing_asked, self._kept_ended = False, True
        self.lost_at = time.time()
        self._again.clear()
        self._tell(Phase.ENDED, tr("A command ended the engine host (sndr quit), and its engines with it."))
        gone = False
        while not self._again.is_set():
            await self._wait(_LOOKS)
            with contextlib.suppress(HostStartFailed):
                answers = await process.find() is not None
                # The one that ends may answer a moment longer.
                if answers and gone:
                    return True
                gone = gone or not answers
        self._kept_ended = False
        self._tell(Phase.STARTING, tr("Starting the engine host…"))
        return True

    @property
    def _anothers(self) -> bool:
        """Tell whether the host lives for a command, or for another window."""
        host = self._state.host
        return host is not None and host.ends_with_window and not self.owned

    async def _address(self) -> Address:
        if self._kept_ended and not isinstance(self._process, RemoteLink):
            if (address := await self._process.find()) is None:
                raise HostError(Reason.HOST_UNREACHABLE, tr("The engine host is not connected."))
            return address
        return await self._process.find_or_start()

    def _defect(self, error: Exception) -> None:
        if self.connected:
            self.lost_at = time.time()
        what = f"{type(error).__name__}: {str(error)[:200]}"
        said = tr(
            "A defect of the window cut its connection to the engine host ({what}). Trying again…", what=what
        )
        if said != self.sentence:
            sys.excepthook(type(error), error, error.__traceback__)
        self._tell(Phase.FAILED, said)

    async def _story(self, error: HostError | None = None) -> str:
        if isinstance(self._process, RemoteLink):
            # The way there may stand and the host not understand us: then it says so itself.
            return (
                tr("{error} Reconnecting…", error=error)
                if error is not None and not error.lost
                else self._process.story()
            )
        # The connection may be lost a moment before the process is known to have ended.
        code = await self._process.ended(0.3) if self.owned else None
        if code is not None:
            how = tr("exit code {code}", code=code) if code >= 0 else tr("signal {value}", value=-code)
            return tr("The engine host ended ({how}). Starting it again…", how=how)
        if error is None or error.lost:
            return tr("The engine host does not answer. Reconnecting…")
        return tr("{error} Reconnecting…", error=error)

    async def _once(self) -> None:
        # While the host begins.
        address, _ = await asyncio.gather(self._address(), asyncio.to_thread(_load_client))
        await self._drop()
        client = AsyncControlClient(address.socket, address.token, USER_AGENT, "the window", self._name)
        self._client = client
        self.owned = address.owned
        version = await client.version()
        snapshot = await self._snapshot(client, version.run_id)
        before, ran = self._state.run_id, self._state.last_live
        self._state.load(snapshot)
        self.lost_at = None
        self.tail = ()
        here = tr("engine host connected")
        there = tr("engine host on {name} connected", name=self._name)
        self._tell(Phase.CONNECTED, there if self._name else here)
        kept_ended, self._kept_ended = self._kept_ended, self._kept_ended and self._anothers
        # The end of the one before was told already.
        if before not in {"", snapshot.run_id} and not kept_ended:
            live = {engine.id for engine in self._state.live}
            self.replaced.emit(tuple(name for one, name in ran.items() if one not in live))
        async with contextlib.aclosing(client.events(snapshot.seq, snapshot.run_id)) as events:  # type: ignore[type-var]
            async for event in events:
                self._state.apply(event)

    async def _snapshot(self, client: AsyncControlClient, run_id: str) -> Snapshot:
        # A host that has just begun runs them to learn what they are; nothing else waits for that.
        late = asyncio.get_running_loop().create_task(client.call(ops.SERVERS), name="read servers")
        late.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await self._read_all(client, run_id, late)
        except BaseException:
            late.cancel()
            raise

    async def _read_all(
        self, client: AsyncControlClient, run_id: str, late: asyncio.Task[ServerPage]
    ) -> Snapshot:
        (
            (host, engines, jobs, models, settings),
            (on_demand, requests, hosts, questions),
        ) = await asyncio.gather(
            asyncio.gather(
                client.call(ops.HOST),
                client.call(ops.ENGINES),
                client.call(ops.JOBS),
                client.call(ops.MODELS),
                client.call(ops.SETTINGS),
            ),
            asyncio.gather(
                _or_none(client.call(endpoint_ops.ON_DEMAND)),
                _or_none(client.call(endpoint_ops.REQUESTS, RequestQuery())),
                self._of_others(client, HOSTS),
                self._of_others(client, SSH_QUESTIONS),
            ),
        )
        # The oldest number wins: an event applied twice is harmless, a missed one is not.
        pages = (host, engines, jobs, models, settings, on_demand, requests, hosts, questions)
        seq = min(page.seq for page in pages if page is not None)
        servers = None
        if late.done():
            servers = late.result()
            seq = min(seq, servers.seq)
        else:
            self._keep(self._take_servers(late), "take servers")
        return Snapshot(
            run_id,
            seq,
            host,
            engines,
            jobs,
            models,
            servers,
            settings,
            requests.requests if requests is not None else (),
            on_demand.models if on_demand is not None else (),
            hosts.hosts if hosts is not None else (),
            questions.questions if questions is not None else (),
        )

    async def _of_others(
        self, client: AsyncControlClient, operation: Operation[Nothing, _Answer]
    ) -> _Answer | None:
        """Read what this machine's host knows of others; what another machine's knows is its own affair."""
        return None if self._name else await _or_none(client.call(operation))

    async def _pause(self, failures: int) -> None:
        self._again.clear()
        await self._wait(_PAUSES[min(failures, len(_PAUSES)) - 1 if failures else 0])

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._again.wait()

    def _lost(self, sentence: str) -> None:
        if self.lost_at is None:
            self.lost_at = time.time()
        self._tell(Phase.RECONNECTING, sentence)

    def _tell(self, phase: Phase, sentence: str) -> None:
        if (phase, sentence) != (self.phase, self.sentence):
            self.phase, self.sentence = phase, sentence
            self.changed.emit()

    async def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    # Parts that an event said to read again.

    def _on_outdated(self, part: str) -> None:
        self._keep(self._read(part), f"read {part}")

    def _keep(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_event_loop().create_task(work, name=name)
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _read(self, part: str) -> None:
        parts: dict[str, Callable[[AsyncControlClient], Awaitable[None]]] = {
            "models": self._read_models,
            "servers": self._read_servers,
            "settings": self._read_settings,
        }
        try:
            if part == "all":
                version = await self.client.version()
                self._state.load(await self._snapshot(self.client, version.run_id))
            elif part in parts:
                await parts[part](self.client)
        except HostError:
            # The stream notices the loss itself, and the next snapshot brings this part.
            return

    async def _take_servers(self, late: asyncio.Task[ServerPage]) -> None:
        # A host that goes meanwhile is noticed by its stream of events.
        with contextlib.suppress(HostError):
            await self._state.take(late)

    async def _read_models(self, client: AsyncControlClient) -> None:
        await self._state.take(client.call(ops.MODELS))

    async def _read_servers(self, client: AsyncControlClient) -> None:
        await self._state.take(client.call(ops.SERVERS))

    async def _read_settings(self, client: AsyncControlClient) -> None:
        await self._state.take(client.call(ops.SETTINGS))
        await self._state.take(client.call(ops.HOST))

    async def close(self) -> None:
        """Say goodbye: an owned host is asked to quit and gets five seconds."""
        self._tell(Phase.CLOSING, tr("Closing…"))
        for task in list(self._reads):
            task.cancel()
        await asyncio.gather(*self._reads, return_exceptions=True)
        client = self._client
        if self.owned and self._state.host is not None and self._state.outlives_window:
            await self._drop()
            self._process.let_go()
            return
        asked = False
        if self.owned and client is not None:
            with contextlib.suppress(HostError):
                await client.call(ops.QUIT_HOST)
                asked = True
        await self._drop()
        await self._process.finish(asked)
