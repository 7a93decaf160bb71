"""A route for each operation: its request is checked, its function asked, the answer sent."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from inspect import isawaitable
from typing import Any
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from engine_host.api.answers import answer, checked_body, checked_query
from engine_host.operations.performs import Function, functions
from engine_host.protocol.base import Query
from engine_host.protocol.operations.definition import Nothing, Operation
from engine_host.protocol.operations.table import OPERATIONS

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


# Where a request keeps its path as it was sent: spelt once, and not by each of the routes that look at it.
_SENT = "sndr.path_as_sent"


class _NamedRoute(Route):
    """A route that goes by the path as it was sent, so that a name in it may hold a slash."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Say whether a request is for it, and the names in its path."""
        sent = scope.get(_SENT)
        if sent is None:
            sent = scope[_SENT] = _as_sent(scope)
        if not sent.startswith(self.path.partition("{")[0], len(scope.get("root_path", ""))):
            return Match.NONE, {}
        match, found = super().matches({**scope, "path": sent})
        if named := found.get("path_params"):
            found["path_params"] = {name: unquote(value) for name, value in named.items()}
        return match, found


def _as_sent(scope: Scope) -> str:
    """Return the path with what stands between its slashes encoded in one way."""
    raw = scope.get("raw_path")
    parts = (raw.decode("ascii", "replace") if raw else quote(scope["path"])).split("/")
    return "/".join(quote(unquote(part), safe="") for part in parts)


def routes(services: Iterable[object], operations: Iterable[Operation[Any, Any]] = OPERATIONS) -> list[Route]:
    """The routes of these operations, performed by methods of these objects.

    Raises TypeError when no method performs one of them.
    """
    performed = functions(services)
    if missing := [operation.name for operation in operations if operation.name not in performed]:
        raise TypeError(f"no function performs {', '.join(missing)}")
    return available(performed, operations)


def available(
    performed: Mapping[str, Function],
    operations: Iterable[Operation[Any, Any]] = OPERATIONS,
    around: Callable[[Operation[Any, Any], Endpoint], Endpoint] = lambda _, perform: perform,
) -> list[Route]:
    """The routes of those operations that are performed; `around` may do more before and after."""
    # A path without names goes first: `/v1/patches/check` is no patch called check.
    ordered = sorted(operations, key=lambda operation: bool(operation.parameters))
    return [
        _NamedRoute(
            one.path, around(one, _endpoint(one, performed[one.name])), methods=[one.method], name=one.name
        )
        for one in ordered
        if one.name in performed
    ]


def _endpoint(operation: Operation[Any, Any], function: Function) -> Endpoint:
    """Return what answers a request: it is read, the function asked, its answer written."""

    async def perform(request: Request) -> Response:
        given: list[Any] = [request.path_params[name] for name in operation.parameters]
        if issubclass(operation.request, Query):
            if operation.request is not Nothing:
                given.append(checked_query(request, operation.request))
        else:
            given.append(await checked_body(request, operation.request))
        done = function(*given)
        return answer(await done if isawaitable(done) else done, operation.status)

    return perform
