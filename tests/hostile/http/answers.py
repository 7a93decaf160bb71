"""The answers of an endpoint, read strictly, and judged: an error object with a code, or an end in form."""

import json
import re
from dataclasses import dataclass

_STATUS = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) [ -~]*")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\t -~\x80-\xff]*)")
NO_ENGINE = {"no_engine_runs", "engine_not_ready", "draining"}
"""The codes with which 503 is the documented answer while no engine runs."""


class NotInFormError(Exception):
    """Bytes that are no answer of HTTP/1.1."""


@dataclass(frozen=True)
class Answer:
    """One answer; `body` without its framing."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Read:
    """The answers in what was received, and the bytes after them that are no whole answer yet."""

    answers: tuple[Answer, ...]
    rest: bytes


def read(data: bytes, *, is_head: bool, closed: bool) -> Read:
    """Take received bytes apart. Raises NotInFormError; the end of a closed connection may end an answer."""
    answers: list[Answer] = []
    while data:
        taken = _one(data, is_head=is_head and not answers, closed=closed)
        if taken is None:
            break
        answer, data = taken
        if answer.status >= 200:
            answers.append(answer)
    return Read(tuple(answers), data)


def _one(data: bytes, *, is_head: bool, closed: bool) -> tuple[Answer, bytes] | None:
    top, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        if not b"HTTP/1.1 ".startswith(data[:9]) and not data.startswith(b"HTTP/1.1 "):
            raise NotInFormError(repr(data[:100]))
        return None
    first, *lines = top.split(b"\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise NotInFormError(repr(first[:100]))
    headers: dict[str, str] = {}
    for line in lines:
        field = _HEADER.fullmatch(line)
        if field is None:
            raise NotInFormError(repr(line[:100]))
        headers[field[1].decode().lower()] = field[2].decode("latin-1")
    code = int(status[1])
    if is_head or code < 200 or code in {204, 304}:
        return Answer(code, headers, b""), rest
    if headers.get("transfer-encoding") == "chunked":
        body = _chunked(rest)
        return None if body is None else (Answer(code, headers, body[0]), body[1])
    if "content-length" in headers:
        length = int(headers["content-length"])
        return None if len(rest) < length else (Answer(code, headers, rest[:length]), rest[length:])
    return (Answer(code, headers, rest), b"") if closed else None


def _chunked(data: bytes) -> tuple[bytes, bytes] | None:
    body = b""
    while True:
        line, found, data = data.partition(b"\r\n")
        if not found:
            return None
        try:
            size = int(line, 16)
        except ValueError as error:
            raise NotInFormError(f"a chunk of size {line[:40]!r}") from error
        if len(data) < size + 2:
            return None
        body, ended, data = body + data[:size], data[size : size + 2], data[size + 2 :]
        if ended != b"\r\n":
            raise NotInFormError("a chunk that does not end")
        if size == 0:
            return body, data


def fault_of(answer: Answer, *, engine_runs: bool, is_head: bool) -> str:
    """Return the fault of an answer; empty for a good one."""
    if answer.status < 400:
        return ""
    if answer.headers.get("content-type") != "application/json":
        return f"{answer.status} as {answer.headers.get('content-type')}"
    if is_head:
        return "" if answer.status < 500 else f"{answer.status}"
    try:
        error = json.loads(answer.body)["error"]
        code, message = error["code"], error["message"]
    except (ValueError, KeyError, TypeError) as problem:
        return f"{answer.status} without an error object: {problem!r} {answer.body[:100]!r}"
    if not (isinstance(code, str) and code and isinstance(message, str) and message):
        return f"{answer.status} with code {code!r}, message {message!r}"
    if answer.status >= 500 and not (answer.status == 503 and not engine_runs and code in NO_ENGINE):
        return f"{answer.status} {code}: {message[:100]}"
    return ""
