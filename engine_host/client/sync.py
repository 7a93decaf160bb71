"""A client of the control API for the command line: synchronous, over the local socket."""

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from engine_host import __version__
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.base import CALLER, PROTOCOL_MAJOR, Version
from engine_host.protocol.errors import ErrorAnswer, Fix, Reason
from engine_host.protocol.events import EVENT, Event

if TYPE_CHECKING:
    import httpx

T = TypeVar("T", bound=BaseModel)
Parameters = Mapping[str, str | int | float | bool | None]

_CONNECT = 2.0
_ANSWER = 30.0
# The host sends a heartbeat every ten seconds: three missed ones mean that it is gone.
_SILENCE = 35.0


class ControlClient:
    """One connection to the host of this user."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self._http: httpx.Client | None = None
        self.version: Version | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def connect(self) -> Version:
        """Reach the host and check that it speaks this protocol.

        Raises HostError(host_unreachable) when none runs, HostError(run_folder_unsafe) when somebody else may
        have put a socket there, HostError(protocol_mismatch) when it is too old or too new.
        """
        import httpx  # It costs a tenth of a second, which `sndr --help` need not pay.

        self.folders.check_run_folder()
        self._check_listener()
        try:
            token = self.folders.token.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise HostError(
                Reason.HOST_UNREACHABLE,
                f"The token of the engine host cannot be read: {error.strerror}.",
                cause="The host is starting or ending, or belongs to another user.",
                fix="Try again in a second.",
                evidence={"path": str(self.folders.token), "errno": error.errno},
            ) from error
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(self.folders.socket), verify=False, trust_env=False),
            base_url="http://sndr.local",
            headers={
                "Authorization": f"Bearer {token}",
                "User-Agent": f"sndr/{__version__}",
                CALLER: str(os.getpid()),
            },
            timeout=httpx.Timeout(_ANSWER, connect=_CONNECT),
            trust_env=False,
            verify=False,
        )
        try:
            self.version = self.get("/v1/version", Version)
            _check_major(self.version)
        except BaseException:
            self.close()
            raise
        return self.version

    def _check_listener(self) -> None:
        """Raise HostError(host_unreachable) unless somebody listens; httpx leaks a socket that is refused."""
        if sys.platform == "win32":
            return
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_CONNECT)
            try:
                probe.connect(str(self.folders.socket))
            except FileNotFoundError as error:
                raise _not_running(self.folders) from error
            except OSError as error:
                raise _not_running(self.folders, was_there=True) from error

    def close(self) -> None:
        """Drop the connection."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def get(self, path: str, answer: type[T], parameters: Parameters | None = None) -> T:
        """Read a resource. Raises HostError."""
        return answer.model_validate_json(self._ask("GET", path, parameters=parameters))

    def post(self, path: str, answer: type[T], body: BaseModel | None = None) -> T:
        """Send a command and read its answer. Raises HostError."""
        return answer.model_validate_json(self._ask("POST", path, body=body))

    def put(self, path: str, answer: type[T], body: BaseModel) -> T:
        """Replace something and read what holds now. Raises HostError."""
        return answer.model_validate_json(self._ask("PUT", path, body=body))

    def delete(self, path: str, answer: type[T], parameters: Parameters | None = None) -> T:
        """Stop or remove something. Raises HostError."""
        return answer.model_validate_json(self._ask("DELETE", path, parameters=parameters))

    def quit(self) -> None:
        """Ask the host to end. Raises HostError."""
        self._ask("POST", "/v1/host/quit")

    def event_lines(self, after: int | None = None, run_id: str | None = None) -> Iterator[str]:
        """The JSON of each event numbered above `after` (None: from now on), as it comes.

        Raises HostError(host_gone) when the stream ends.
        """
        parameters = {"after": after, "run": run_id}
        with self._streaming("GET", "/v1/events", parameters=parameters, silence=_SILENCE) as answer:
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    yield line[5:].strip()
        raise HostError(Reason.HOST_GONE, "The engine host has ended.")

    def events(self, after: int | None = None, run_id: str | None = None) -> Iterator[Event]:
        """The events themselves; a kind that this version does not know is left out."""
        for line in self.event_lines(after, run_id):
            try:
                yield EVENT.validate_json(line)
            except ValidationError:
                continue

    def stream(self, path: str, body: dict[str, Any]) -> Generator[dict[str, Any]]:
        """The chunks of a streamed answer of the public endpoint, asked through this socket.

        Raises HostError, with the endpoint's own message where it sent one.
        """
        with self._streaming("POST", path, body=body, silence=None) as answer:
            yield from chunks(answer.iter_lines())

    def _ask(
        self, method: str, path: str, *, parameters: Parameters | None = None, body: BaseModel | None = None
    ) -> bytes:
        headers = {} if method == "GET" else {"Idempotency-Key": secrets.token_hex(16)}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = body.model_dump_json()
        with self._mapped_errors():
            answer = self._connected().request(
                method, path, params=_present(parameters), content=content, headers=headers
            )
        if answer.is_success:
            return answer.content
        raise error_in(answer.content, answer.status_code)

    @contextmanager
    def _streaming(
        self,
        method: str,
        path: str,
        *,
        parameters: Parameters | None = None,
        body: dict[str, Any] | None = None,
        silence: float | None,
    ) -> "Iterator[httpx.Response]":
        import httpx

        timeout = httpx.Timeout(_ANSWER, connect=_CONNECT, read=silence)
        with (
            self._mapped_errors(),
            self._connected().stream(
                method, path, params=_present(parameters), json=body, timeout=timeout
            ) as answer,
        ):
            if not answer.is_success:
                raise error_in(answer.read(), answer.status_code)
            yield answer

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except httpx.ConnectError as error:
            raise _not_running(self.folders, was_there=True) from error
        except httpx.TransportError as error:
            raise HostError(
                Reason.HOST_GONE,
                "The engine host does not answer any more.",
                cause=f"It ended, or it hangs ({type(error).__name__}).",
                fix=Fix(text="Read what it said last.", command="sndr logs host"),
            ) from error

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


def chunks(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The JSON chunks of an OpenAI stream, up to its `[DONE]`.

    Raises HostError when the stream carries an error instead of a chunk.
    """
    for line in lines:
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            return
        chunk = json.loads(data)
        if "error" in chunk:
            raise error_in(data.encode(), 500)
        yield chunk


def error_in(content: bytes, status: int) -> HostError:
    """The error of an answer: the control API's own, OpenAI's form, or a plain sentence."""
    try:
        return HostError.from_problem(ErrorAnswer.model_validate_json(content).error)
    except ValidationError:
        pass
    try:
        message = json.loads(content)["error"]["message"]
        code = json.loads(content)["error"].get("code")
    except (ValueError, KeyError, TypeError):
        return HostError(
            Reason.INTERNAL,
            f"The engine host answered with HTTP status {status}.",
            evidence={"body": content[:500].decode(errors="replace")},
        )
    known = {reason.value for reason in Reason}
    by_status = {400: Reason.BAD_REQUEST, 401: Reason.UNAUTHORIZED, 404: Reason.NOT_FOUND}
    reason = Reason(code) if code in known else by_status.get(status, Reason.INTERNAL)
    return HostError(reason, str(message), evidence={"status": status})


def _check_major(version: Version) -> None:
    if version.major == PROTOCOL_MAJOR:
        return
    older = "the engine host" if version.major < PROTOCOL_MAJOR else "this program"
    raise HostError(
        Reason.PROTOCOL_MISMATCH,
        f"The engine host speaks protocol {version.major}, this program {PROTOCOL_MAJOR}.",
        cause=f"The host is {version.program}; one of the two was updated.",
        fix=f"Update {older}; a host that still runs from before ends with `sndr quit`.",
    )


def _present(parameters: Parameters | None) -> dict[str, str | int | float | bool]:
    return {name: value for name, value in (parameters or {}).items() if value is not None}


def _not_running(folders: Folders, *, was_there: bool = False) -> HostError:
    return HostError(
        Reason.HOST_UNREACHABLE,
        "No engine host runs.",
        cause="Its socket is there, but nobody answers: it did not end in an orderly way."
        if was_there
        else "",
        fix=Fix(
            text="Start a model with `sndr run`, or the host alone with `sndr serve`.", command="sndr serve"
        ),
        evidence={"socket": str(folders.socket)},
    )
