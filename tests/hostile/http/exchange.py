"""Carry out one hostile exchange on a socket of its own, and judge what came back."""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass

from tests.hostile.http.answers import Answer, Judge, NotInFormError, Read, read
from tests.hostile.http.cases.case import Case, End, Owed

PATIENCE = 20.0
"""Seconds for an answer that is owed."""
MOMENT = 0.25
"""Seconds for an answer that may come or not; then the client leaves."""
_MORE = 0.03
_AT_ONCE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Outcome:
    """What came of an exchange: the first status, or a word for an end without one; and what is wrong."""

    result: str
    fault: str = ""
    received: bytes = b""


async def carry_out(address: int | str, case: Case, judge: Judge) -> Outcome:
    """Say what the case says at a port or at a Unix socket, and judge the answer."""
    sock = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    sock.setblocking(False)
    place = address if isinstance(address, str) else ("127.0.0.1", address)
    try:
        await asyncio.get_running_loop().sock_connect(sock, place)
    except OSError as error:
        sock.close()
        return Outcome("no connection", f"{error}")
    data, closed = b"", False
    with sock:
        try:
            data, closed = await _talk(sock, case)
        except TimeoutError:
            return Outcome("nothing", f"neither an answer nor an end within {PATIENCE:g} s")
        if case.end in {End.RESET, End.MID_ANSWER}:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    return _judged(case, data, closed, judge)


async def _talk(sock: socket.socket, case: Case) -> tuple[bytes, bool]:
    """Return what was received, and whether the endpoint ended the connection."""
    loop = asyncio.get_running_loop()
    # A refusal in the middle of what is said ends the connection: what was said of it is still there to read.
    with contextlib.suppress(ConnectionError):
        for number, part in enumerate(case.parts):
            if number and case.pause:
                await asyncio.sleep(case.pause)
            async with asyncio.timeout(PATIENCE):
                await loop.sock_sendall(sock, part)
        if case.end is End.HALF:
            sock.shutdown(socket.SHUT_WR)
    if case.end in {End.CLOSE, End.RESET}:
        return b"", False
    owed = case.owed is not Owed.ANYTHING
    data = b""
    while True:
        whole = _whole(case, data)
        if whole and case.end is End.MID_ANSWER:
            return data, False
        try:
            async with asyncio.timeout(_MORE if whole else PATIENCE if owed else MOMENT):
                part = await loop.sock_recv(sock, 1 << 16)
        except TimeoutError:
            if whole or not owed:
                return data, False
            raise
        except ConnectionError:
            return data, True
        if not part:
            return data, True
        data += part


def _whole(case: Case, data: bytes) -> bool:
    """Tell whether there is nothing more to wait for."""
    if case.end is End.MID_ANSWER:
        return len(data) > 500
    with contextlib.suppress(NotInFormError):
        found = read(data, is_head=_is_head(case), closed=False)
        return bool(found.answers) and not found.rest
    return False


def _is_head(case: Case) -> bool:
    return case.parts[0].startswith(b"HEAD ")


def _judged(case: Case, data: bytes, closed: bool, judge: Judge) -> Outcome:
    is_head = _is_head(case)
    try:
        found = read(data, is_head=is_head, closed=closed)
    except NotInFormError as error:
        return Outcome("not in form", f"not in form: {error}", data)
    if not found.answers:
        return _nothing(case, found, data, closed=closed)
    first = found.answers[0]
    for answer in found.answers:
        if fault := judge(answer, is_head):
            return Outcome(str(first.status), fault, data)
    if found.rest and closed and case.end is End.READ:
        return Outcome(str(first.status), f"an answer that breaks off: {found.rest[:100]!r}", data)
    return Outcome(str(first.status), _owed(case, first), data)


def _nothing(case: Case, found: Read, data: bytes, *, closed: bool) -> Outcome:
    result = "closed" if closed else "left"
    if case.owed is Owed.ANYTHING:
        return Outcome(result)
    return Outcome(result, f"{result} without an answer: {found.rest[:100]!r}", data)


def _owed(case: Case, first: Answer) -> str:
    if case.owed is Owed.OK and first.status not in {200, 503}:
        return f"{first.status} for a good request: {first.body[:200]!r}"
    if case.owed is Owed.REFUSAL and first.status < 400:
        return f"{first.status} for a bad request"
    return ""
