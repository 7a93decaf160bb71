"""A client of the control API for the command line: synchronous, over the local socket."""

import os
import socket
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from engine_host import __version__
from engine_host.client import failures, other_version
from engine_host.client.address import RemoteAddress
from engine_host.client.exchange import NOTHING, PAUSE, Sent, answer_of, event_of, query_of, request_of
from engine_host.core import sse
from engine_host.core.errors import HostError
from engine_host.core.outside import answers, json_text
from engine_host.core.outside.host_clock import HostClock
from engine_host.core.paths import Folders
from engine_host.protocol.base import CALLER, Command, Query, Version
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.events import Event, EventQuery, HostStateEvent
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Answer, Asked, Nothing, Operation

if TYPE_CHECKING:
    import httpx

_CONNECT = 2.0
_ANSWER = 30.0
# The first word of a host on another machine: one that is frozen is told soon. Parts of it may come slowly.
_FIRST_WORD = 9.0
# The host sends a heartbeat every ten seconds: three missed ones mean that it is gone.
_SILENCE = 35.0


def _quietly(_operation: Operation[Any, Any]) -> AbstractContextManager[None]:
    return nullcontext()


class ControlClient:
    """One connection to a host: this user's here, or one on another machine."""

    def __init__(self, address: Folders | RemoteAddress) -> None:
        """`address` is where it listens: the folders of this machine's host, or a forwarded socket."""
        self.address = address
        self._http: httpx.Client | None = None
        self.version: Version | None = None
        self.clock = HostClock()
        self.waiting: Callable[[Operation[Any, Any]], AbstractContextManager[None]] = _quietly
        """Entered with what is asked until the answer is there."""
        self._caller = {CALLER: str(os.getpid())}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def host(self) -> str:
        """The name of the other machine; empty for this one."""
        return self.address.name if isinstance(self.address, RemoteAddress) else ""

    @property
    def folders(self) -> Folders:
        """The folders of this machine's host. Raises HostError(unsupported) for one on another machine."""
        if isinstance(self.address, RemoteAddress):
            raise HostError(
                Reason.UNSUPPORTED,
                tr("This works on this machine alone, and {host} is another one.", host=self.host),
                cause="It needs files of the host that are not reached from here.",
                fix=Fix(text="Do it there.", command=f"sndr host shell {self.host}"),
                evidence={"host": self.host},
            )
        return self.address

    def again(self) -> "ControlClient":
        """A new connection to the same host: an interrupted one may have half an answer in it."""
        return ControlClient(self.address)

    def connect(self) -> Version:
        """Reach the host and check that it speaks this protocol.

        Raises HostError(host_unreachable) when none runs, HostError(run_folder_unsafe) when somebody else may
        have put a socket there, HostError(protocol_mismatch) when it is too old or too new.
        """
        self.address.check_run_folder()
        self._check_listener()
        import httpx  # It costs a tenth of a second, which need not be paid where nobody listens.

        try:
            token = self.address.token.read_text(encoding="utf-8").strip()
        except OSError as error:
            if self.host:
                raise failures.not_running(str(self.address.socket), host=self.host) from error
            raise HostError(
                Reason.HOST_UNREACHABLE,
                tr("The token of the engine host cannot be read: {error}.", error=error.strerror),
                cause="The host is starting or ending, or belongs to another user.",
                fix="Try again in a second.",
                evidence={"path": str(self.address.token), "errno": error.errno},
            ) from error
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(self.address.socket), verify=False, trust_env=False),
            base_url="http://sndr.local",
            headers={
                "Authorization": f"Bearer {token}",
                "User-Agent": f"sndr/{__version__}",
                **self._caller,
            },
            timeout=httpx.Timeout(_ANSWER, connect=_CONNECT),
            trust_env=False,
            verify=False,
        )
        try:
            self.version = failures.check_version(self._first_word(), host=self.host)
        except BaseException:
            self.close()
            raise
        return self.version

    def _first_word(self) -> Version:
        least = _FIRST_WORD if self.host else _ANSWER
        with self.waiting(ops.VERSION):
            return answer_of(ops.VERSION, self._send(request_of(ops.VERSION, NOTHING, {}), least))

    def _check_listener(self) -> None:
        """Raise HostError(host_unreachable) unless somebody listens; httpx leaks a socket that is refused."""
        if sys.platform == "win32":
            return
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_CONNECT)
            try:
                probe.connect(str(self.address.socket))
            except FileNotFoundError as error:
                raise failures.not_running(str(self.address.socket), host=self.host) from error
            except OSError as error:
                raise failures.not_running(
                    str(self.address.socket), was_there=True, host=self.host
                ) from error

    def only_watch(self) -> None:
        """Ask as a window does from now on: a host that ends does not wait for what goes on until Ctrl+C."""
        self._caller = {}
        if self._http is not None:
            self._http.headers.pop(CALLER, None)

    def close(self) -> None:
        """Drop the connection."""
        if self._http is not None:
            self._http.close()
            self._http = None

    @overload
    def call(self, operation: Operation[Nothing, Answer], /, **path: str) -> Answer: ...

    @overload
    def call(self, operation: Operation[Asked, Answer], asked: Asked, /, **path: str) -> Answer: ...

    def call(
        self, operation: Operation[Any, Answer], asked: Command | Query = NOTHING, /, **path: str
    ) -> Answer:
        """Carry an operation out; `path` fills in the names of its path. Raises HostError."""
        with self.waiting(operation):
            content = self._send(request_of(operation, asked, path, self.clock.ahead))
            return answer_of(operation, content, self.clock.ahead)

    def event_lines(self, after: int | None = None, run_id: str | None = None) -> Iterator[str]:
        """The JSON of each event numbered above `after` (None: from now on), as it comes.

        Raises HostError(host_gone) when the stream ends.
        """
        query = query_of(EventQuery(after=after, run=run_id))
        last = ""
        with self._streaming("GET", ops.EVENTS.path, query=query, silence=_SILENCE) as answer:
            for message in sse.messages(answer.iter_bytes()):
                if message.data:
                    last = _closing(message.data) or last
                    yield message.data
        cause = last or (tr("Or the connection to it was lost.") if self.host else "")
        raise failures.gone(tr("The engine host has ended."), cause, self.host)

    def events(self, after: int | None = None, run_id: str | None = None) -> Iterator[Event]:
        """The events themselves; a kind that this version does not know is left out."""
        for line in self.event_lines(after, run_id):
            if (event := event_of(line, self.clock.ahead)) is not None:
                yield event

    def stream(self, path: str, body: dict[str, Any]) -> Generator[dict[str, Any]]:
        """The chunks of a streamed answer of the public endpoint, asked through this socket.

        Raises HostError, with the endpoint's own message where it sent one.
        """
        with self._streaming("POST", path, body=body, silence=None) as answer:
            yield from chunks(answer.iter_bytes())

    def _send(self, sent: Sent, seconds: float | None = None) -> bytes:
        import httpx

        timeout = httpx.Timeout(seconds or max(sent.seconds, _ANSWER), connect=_CONNECT)
        for last in range(1, sent.tries + 1):
            http = self._connected()
            began = time.time()
            try:
                with http.stream(
                    sent.method,
                    sent.path,
                    params=dict(sent.query),
                    content=sent.content,
                    headers=sent.headers,
                    timeout=timeout,
                ) as answer:
                    if self.host:
                        self.clock.hear(answer.headers.get("date"), began, time.time())
                    content = answers.read_now(answer, failures.MOST)
            except httpx.RequestError as error:
                if last == sent.tries:
                    socket_path, reached = str(self.address.socket), self.version is not None
                    raise failures.of_transport(error, socket_path, self.host, reached=reached) from error
            except answers.AnswerError as error:
                raise failures.unreadable(error) from error
            else:
                if answer.is_success:
                    return content
                raise self._refusal(sent, content, answer.status_code)
            time.sleep(PAUSE)
        raise AssertionError("unreachable")

    @property
    def _program(self) -> str:
        return self.version.program if self.version is not None else ""

    def _refusal(self, sent: Sent, content: bytes, status: int) -> HostError:
        """Return what a refusal says; a host from before 0.3 is asked whether it serves the path at all."""
        error = failures.of_answer(content, status, self.host, self._program)
        if not other_version.is_open(error.problem, status, self._program):
            return error
        import httpx

        try:
            looked_up = self._connected().request(other_version.LOOK_UP, sent.path)
        except httpx.RequestError as failed:
            return failures.of_transport(failed, str(self.address.socket), self.host)
        return (
            other_version.unknown_there(error.problem, self.host) if looked_up.status_code == 404 else error
        )

    @contextmanager
    def _streaming(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        silence: float | None,
    ) -> "Iterator[httpx.Response]":
        import httpx

        timeout = httpx.Timeout(_ANSWER, connect=_CONNECT, read=silence)
        try:
            with self._connected().stream(method, path, params=query, json=body, timeout=timeout) as answer:
                if not answer.is_success:
                    content = answers.read_now(answer, failures.MOST)
                    raise failures.of_answer(content, answer.status_code, self.host, self._program)
                answers.check_plain(answer)
                yield answer
        except httpx.RequestError as error:
            raise failures.of_transport(error, str(self.address.socket), self.host) from error
        except (answers.AnswerError, sse.StreamError) as error:
            raise failures.unreadable(error) from error

    def _connected(self) -> "httpx.Client":
        if self._http is None:
            self.connect()
        assert self._http is not None
        return self._http


def connected(folders: Folders | None = None) -> ControlClient:
    """A client that has reached the host of this user, wherever its run folder is.

    Raises HostError(host_unreachable), HostError(run_folder_unsafe), HostError(protocol_mismatch).
    """
    client = ControlClient(folders or Folders.resolve())
    try:
        client.connect()
    except HostError as error:
        other = client.folders.elsewhere()
        if error.reason is not Reason.HOST_UNREACHABLE or other is None:
            raise
        client = ControlClient(other)
        try:
            client.connect()
        except HostError as second:
            if second.reason is Reason.PROTOCOL_MISMATCH:
                raise
            # It has ended, or ends; where it was may belong to anybody now.
            raise error from second
    return client


def _closing(line: str) -> str:
    """Return a sentence where an event tells that the host was asked to end."""
    event = event_of(line) if '"host.state"' in line else None
    asked = isinstance(event, HostStateEvent) and event.state == "closing" and event.asked
    return tr("Somebody ended it, as `sndr quit` does.") if asked else ""


def wait_for_host(
    folders: Folders, seconds: float, given_up: Callable[[], bool] = lambda: False
) -> ControlClient | None:
    """A client of the host once it answers; None when the time is over or `given_up` says so."""
    end = time.monotonic() + seconds
    while True:
        # Asked before the try: a process that gave up because another host came up is found to have done so.
        last_try = given_up() or time.monotonic() >= end
        client = ControlClient(folders)
        try:
            client.connect()
        except HostError as error:
            client.close()
            # Between its socket and its token a new host refuses; a killed one's token may still lie there.
            if error.reason not in {Reason.HOST_UNREACHABLE, Reason.HOST_GONE, Reason.UNAUTHORIZED}:
                raise
        else:
            return client
        if last_try:
            return None
        time.sleep(0.02)


def chunks(parts: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON chunks of an OpenAI stream, up to its `[DONE]`.

    Raises HostError when the stream carries an error instead of a chunk, or what is no chunk.
    """
    try:
        for message in sse.messages(parts):
            if message.data == sse.DONE:
                return
            if not message.data:
                continue
            chunk = json_text.parse_object(message.data)
            if "error" in chunk:
                raise failures.of_answer(message.data.encode(), 500)
            yield chunk
    except ValueError as error:
        raise failures.unreadable(error) from error
