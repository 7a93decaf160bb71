"""The answers of an endpoint, read strictly, and judged: an error object with a code, or an end in form."""

import json
import re
from collections.abc import Callable
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


Judge = Callable[[Answer, bool], str]
"""Returns the fault of an answer, to HEAD or not; empty for a good one."""


def of_endpoint(*, engine_runs: bool) -> Judge:
    """Judge by the endpoint's form: a code and a message; 5xx where no engine runs, or a path is closed."""

    def judge(answer: Answer, is_head: bool) -> str:
        if fault := _unlike_json(answer):
            return fault
        # The answer to HEAD has no body that could say more; 501 is that of a path that stays closed.
        if answer.status < 400 or (is_head and (answer.status < 500 or answer.status == 501)):
            return ""
        code, fault = _said(answer, "code")
        is_closed = answer.status == 501 and code == "not_supported"
        if (
            answer.status >= 500
            and not is_closed
            and not (answer.status == 503 and not engine_runs and code in NO_ENGINE)
        ):
            return f"{answer.status} {code}: {answer.body[:200]!r}"
        return fault

    return judge


def of_control(answer: Answer, is_head: bool) -> str:
    """Judge by the control API's form: a reason and a message, and of 5xx only what is not supported."""
    if fault := _unlike_json(answer):
        return fault
    if answer.status < 400 or (is_head and answer.status < 500):
        return ""
    reason, fault = _said(answer, "reason")
    if answer.status >= 500 and reason != "unsupported":
        return f"{answer.status} {reason}: {answer.body[:200]!r}"
    return fault


def _unlike_json(answer: Answer) -> str:
    kind = answer.headers.get("content-type")
    return f"{answer.status} as {kind}" if answer.status >= 400 and kind != "application/json" else ""


def _said(answer: Answer, name: str) -> tuple[str, str]:
    """Return what programs look at in an error object, and what is wrong with the object."""
    try:
        error = json.loads(answer.body)["error"]
        word, message = error[name], error["message"]
    except (ValueError, KeyError, TypeError) as problem:
        return "", f"{answer.status} without an error object: {problem!r} {answer.body[:100]!r}"
    if not (isinstance(word, str) and word and isinstance(message, str) and message):
        return "", f"{answer.status} with {name} {word!r}, message {message!r}"
    return word, ""
