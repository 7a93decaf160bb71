"""Writes docs/CONTROL_API.md: `python -m engine_host.protocol.operations.document > docs/CONTROL_API.md`."""

import sys
from collections.abc import Iterable
from typing import Any

from engine_host.protocol.base import Query
from engine_host.protocol.operations.definition import Done, Nothing, Operation
from engine_host.protocol.operations.table import EVENTS, OPERATIONS

_HEAD = """# The control API: paths and types

HTTP/1.1 with JSON over the local socket (`run folder/control.sock`, 0600; bearer token in `run folder/token`,
0600). Types are in `engine_host/protocol/`. Lists answer with a page type; every page carries the `seq` it is
true at. Commands carry `Idempotency-Key`: one that arrives twice is done once. Errors are `ErrorAnswer`;
beside the reasons listed, any operation may answer `bad_request`, `unauthorized` or `internal`.

This file is written by `python -m engine_host.protocol.operations.document` from
`engine_host/protocol/operations/table.py`; how to add an operation is in CONTRIBUTING.md.
"""
_COLUMNS = "| operation | method and path | body | answer | what it does |\n|---|---|---|---|---|\n"
_TAIL = """
`/openai/v1/…` is the public endpoint, for the window's chat.
"""


def document(operations: Iterable[Operation[Any, Any]] = OPERATIONS) -> str:
    """The whole document."""
    text = _with_command(EVENTS.text, EVENTS.command)
    events = f"| {EVENTS.name} | `GET {EVENTS.path}{_query(EVENTS.request)}` | | `Event` | {text} |\n"
    return f"{_HEAD}\n{_COLUMNS}{''.join(map(_row, operations))}{events}{_TAIL}"


def _row(operation: Operation[Any, Any]) -> str:
    asked, job = operation.request, operation.job
    body = "" if issubclass(asked, Query) else f"`{asked.__name__}`"
    answer = "`{}`" if operation.answer is Done else f"`{operation.answer.__name__}`"
    if operation.status != 200:
        answer += f", {operation.status}"
    if job is not None:
        answer += f", job {job.value}"
    text = _with_command(operation.text, operation.command)
    if operation.reasons:
        text += f" Reasons: {', '.join(reason.value for reason in operation.reasons)}."
    place = f"`{operation.method} {operation.path}{_query(asked)}`"
    return f"| {operation.name} | {place} | {body} | {answer} | {text} |\n"


def _query(asked: type[Any]) -> str:
    if not issubclass(asked, Query) or asked is Nothing:
        return ""
    return "?" + "&".join(f"{name}=…" for name in asked.model_fields)


def _with_command(text: str, command: str) -> str:
    return f"{text} (`sndr {command}`)" if command else text


if __name__ == "__main__":
    sys.stdout.write(document())
