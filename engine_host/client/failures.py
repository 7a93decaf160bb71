"""The HostError for each way in which a host does not answer."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from engine_host.client import other_version
from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.protocol.base import PROTOCOL_MAJOR, Version
from engine_host.protocol.errors import ErrorAnswer, Fix, Reason
from engine_host.protocol.language import tr

if TYPE_CHECKING:
    import httpx

MOST = 64 << 20
"""Bytes that one answer of a host may have; the largest of ours, lines of a log, have some MB."""
_LONGEST_MESSAGE = 4000
_REASONS = {reason.value: reason for reason in Reason}
_BY_STATUS = {400: Reason.BAD_REQUEST, 401: Reason.UNAUTHORIZED, 404: Reason.NOT_FOUND}


def not_running(socket: str, *, was_there: bool = False, host: str = "") -> HostError:
    """Nobody listens; `host` is the name of a host on another machine."""
    if host:
        return HostError(
            Reason.HOST_UNREACHABLE,
            tr("The engine host on {host} is not connected.", host=host),
            cause="No connection leads there now, or no engine host runs there.",
            fix=Fix(text="Connect it; that says why it fails.", command=f"sndr host connect {host}"),
            evidence={"socket": socket, "host": host},
        )
    cause = ""
    if was_there and (pid := _holder(socket)) is not None:
        return HostError(
            Reason.HOST_UNREACHABLE,
            "The engine host does not answer now.",
            cause=tr("It is ending, or just starting: its process {pid} still runs.", pid=pid),
            fix="Try again in a second.",
            evidence={"socket": socket, "pid": pid},
        )
    if was_there and Path(socket).exists():
        cause = tr("Its socket is there, but nobody answers: it did not end in an orderly way.")
    return HostError(
        Reason.HOST_UNREACHABLE,
        "No engine host runs.",
        cause=cause,
        fix=Fix(
            text="Start a model with `sndr run`, or the host alone with `sndr serve`.", command="sndr serve"
        ),
        evidence={"socket": socket},
    )


def _holder(socket: str) -> int | None:
    """The process of the host that holds the run folder of a socket; None where it has ended.

    The lock tells, not the number in it, which another process may have by now.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        with (Path(socket).parent / "host.lock").open("rb") as lock:
            written = lock.read(20).decode("ascii", "replace").strip()
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(written) if written.isdecimal() else None
    except OSError:
        return None
    return None


def gone(
    message: str = "The connection to the engine host ended.", cause: str = "", host: str = ""
) -> HostError:
    """The host does not answer any more; `host` is the name of one on another machine."""
    if host:
        message = message.replace("the engine host", f"the engine host on {host}", 1)
        message = message.replace("The engine host", f"The engine host on {host}", 1)
        fix = Fix(text="Look for it anew; that says what is wrong.", command=f"sndr host connect {host}")
        return HostError(Reason.HOST_GONE, message, cause=cause, fix=fix, evidence={"host": host})
    fix = Fix(text="Read what it said last.", command="sndr logs host")
    return HostError(Reason.HOST_GONE, message, cause=cause, fix=fix)


def of_transport(
    error: "httpx.RequestError", socket: str, host: str = "", *, reached: bool = False
) -> HostError:
    """The connection failed; `reached` is True where the host has answered before."""
    import httpx

    if isinstance(error, httpx.ConnectError):
        if reached and not host:
            ended = _holder(socket) is None
            return gone(tr("The engine host has ended.") if ended else tr("The engine host is ending."))
        return not_running(socket, was_there=True, host=host)
    if isinstance(error, httpx.TimeoutException):
        slow = tr("It hangs, or the connection to it does.") if host else ""
        cause = slow or tr("It hangs, or this machine is overloaded.")
        return gone(tr("The engine host did not answer in time."), cause, host)
    if host:
        return gone(cause=tr("It ended while it answered, or the way to it did."), host=host)
    if _holder(socket) is None:
        return gone(cause=tr("It was killed, or it ended, while it answered."))
    return gone(cause=tr("Its process still runs: it is ending, or it closed this connection."))


def unreadable(error: ValueError) -> HostError:
    """The answer, or the stream, is none of a host."""
    return HostError(
        Reason.INTERNAL,
        tr("The engine host's answer could not be read: {error}.", error=error),
        cause="Another program listens there, or the host and this program are of different versions.",
        fix=Fix(text="End it where it was started, then try again.", command="sndr quit"),
    )


def of_answer(content: bytes, status: int, host: str = "", program: str = "") -> HostError:
    """The error in an answer: the control API's own, OpenAI's form, or a plain sentence.

    `program` is what the host told of its version.
    """
    try:
        problem = ErrorAnswer.model_validate_json(content).error
        if other_version.is_unknown(problem, status, program):
            return other_version.unknown_there(problem, host)
        return HostError.from_problem(problem)
    except ValidationError:
        pass
    try:
        said: Any = json_text.parse_object(content)["error"]
    except (ValueError, KeyError):
        return HostError(
            Reason.INTERNAL,
            tr("The engine host answered with HTTP status {status}.", status=status),
            cause="Another program answers in its place, or it met a mistake of its own.",
            fix=Fix(text="See what the host says.", command="sndr logs host"),
            evidence={"body": content[:500].decode(errors="replace")},
        )
    return of_openai(said, status)


def of_openai(said: object, status: int) -> HostError:
    """An error in OpenAI's form, as an answer or a stream carries it."""
    named = said if isinstance(said, dict) else {"message": said}
    said_codes = [one for one in map(named.get, ("reason", "code", "type")) if isinstance(one, str)]
    code = next((one for one in said_codes if one in _REASONS), "")
    reason = _REASONS.get(code) or _BY_STATUS.get(status, Reason.INTERNAL)
    message = str(named.get("message") or f"The engine host answered with HTTP status {status}.")
    return HostError(reason, message[:_LONGEST_MESSAGE], evidence={"status": status})


def check_version(version: Version, program: str = "this program", host: str = "") -> Version:
    """Raise HostError(protocol_mismatch) when a program cannot speak with the host."""
    if version.major == PROTOCOL_MAJOR:
        return version
    where = f" on {host}" if host else ""
    host_is_older = version.major < PROTOCOL_MAJOR
    update = f"Update {f'the engine host{where}' if host_is_older else program}"
    if not host:
        fix = Fix(
            text=tr("{update}; a host that still runs from before ends with `sndr quit`.", update=update)
        )
    elif host_is_older:
        fix = Fix(text=tr("{update}.", update=update), command=f"sndr host update {host}")
    else:
        fix = Fix(text=tr("{update}: the one on {host} is newer.", update=update, host=host))
    raise HostError(
        Reason.PROTOCOL_MISMATCH,
        tr(
            "The engine host{where} speaks protocol {major}, {program} {protocol_major}.",
            where=where,
            major=version.major,
            program=program,
            protocol_major=PROTOCOL_MAJOR,
        ),
        cause=tr("The host is {program}; one of the two was updated.", program=version.program[:80]),
        fix=fix,
        evidence={"host": host} if host else {},
    )
