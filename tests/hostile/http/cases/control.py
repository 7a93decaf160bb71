"""The control socket: each operation with names, parameters and bodies that it does not take."""

import json
import random
from typing import Any
from urllib.parse import quote

from engine_host.protocol.base import Query
from engine_host.protocol.operations.definition import Operation
from engine_host.protocol.operations.table import OPERATIONS
from tests.hostile.http.cases import framing, heads
from tests.hostile.http.cases.bodies import TEXTS, value
from tests.hostile.http.cases.case import CONTROL, Case, Owed, head, kind

TOKEN = b"@TOKEN@"
"""Stands for the token of this start, which the test puts in its place."""
KEY = b"Authorization: Bearer " + TOKEN
# What ends the host, moves it, or takes minutes; and what would ask the network.
_LEFT_OUT = {"host.quit", "host.stay", "settings.change", "fit.read_from_hub", "jobs.cancel"}
_ASKED: list[Operation[Any, Any]] = [
    one for one in OPERATIONS if one.job is None and one.name not in _LEFT_OUT
]
_NAMES = (*TEXTS, "..", ".", "%2e%2e%2f", "a/b", "engine-x", "check", "-1", "x" * 2_000, "*", "none")


def _path(operation: Operation[Any, Any], rng: random.Random) -> str:
    return operation.path_for({name: rng.choice(_NAMES) or "x" for name in operation.parameters})


def _filled(operation: Operation[Any, Any], rng: random.Random) -> dict[str, Any]:
    """Some fields of a request with any value, and now and then one that it does not have."""
    fields = [*operation.request.model_fields, *rng.sample(("x", "__class__", "", "\x00"), 1)]
    return {name: value(rng) for name in rng.sample(fields, rng.randrange(len(fields) + 1))}


@kind(30, CONTROL)
def operations(rng: random.Random) -> Case:
    """Any operation with any request."""
    operation = rng.choice(_ASKED)
    path, given = _path(operation, rng), _filled(operation, rng)
    if issubclass(operation.request, Query):
        parts = (f"{quote(name)}={quote(json.dumps(one)[:500])}" for name, one in given.items())
        return Case((head(operation.method, f"{path}?{'&'.join(parts)}", KEY),))
    body = json.dumps(given).encode()
    if rng.random() < 0.2:
        body = rng.choice((b"", b"null", b"[]", b"{", b"\xff", b"[" * 5_000, body + b"}", b'"x"', b"1e999"))
    return Case((head(operation.method, path, KEY, b"Content-Length: %d" % len(body)) + body,))


@kind(4, CONTROL)
def without_the_token(rng: random.Random) -> Case:
    """Somebody who may not ask."""
    keys = (
        b"",
        b"Bearer",
        b"Bearer x",
        b"bearer " + TOKEN,
        b"Basic eDp5",
        b"Bearer " + TOKEN + b"x",
        b"\xff",
    )
    operation = rng.choice(OPERATIONS)
    line = b"Authorization: " + rng.choice(keys)
    return Case((head(operation.method, _path(operation, rng), line),), Owed.REFUSAL)


@kind(3, CONTROL)
def other_methods(rng: random.Random) -> Case:
    """A path with a method that it does not take."""
    operation = rng.choice(_ASKED)
    method = rng.choice(("GET", "HEAD", "OPTIONS", "PATCH", "TRACE", "PUT"))
    return Case((head(method, _path(operation, rng), KEY),))


@kind(3, CONTROL)
def again(rng: random.Random) -> Case:
    """A command with a key that says it is the same, whatever it asks for."""
    key = rng.choice(
        (
            b"Idempotency-Key: k",
            b"Idempotency-Key: ",
            b"Idempotency-Key: \xff",
            b"Idempotency-Key: " + b"k" * 9_000,
        )
    )
    body = json.dumps({"model": value(rng)}).encode()
    return Case((head("POST", "/v1/plans", KEY, key, b"Content-Length: %d" % len(body)) + body,))


# The endpoint behind the control socket, and what is the same for every connection.
for _weight, _generator in (
    (3, framing.chunking),
    (3, framing.smuggling),
    (2, framing.other_protocols),
    (2, framing.disconnects),
    (2, heads.header_floods),
    (2, heads.line_ends),
):
    kind(_weight, CONTROL)(_generator)
