"""`@performs(ops.PRESETS)` marks the method that performs an operation; the API collects them."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import cache, partial
from typing import Any, Generic, ParamSpec, TypeVar, overload

from pydantic import BaseModel

from engine_host.protocol.operations.definition import Nothing, Operation

P = ParamSpec("P")
Answer = TypeVar("Answer", bound=BaseModel)
Function = Callable[..., Any]
_MARK = "_performs"


class performs(Generic[Answer]):  # noqa: N801 - a decorator
    """Mark the method that performs an operation.

    It takes the names in the operation's path, in order, and then its request, where it has one; it may be a
    coroutine. Who answers at once runs without anything else in between.
    """

    def __init__(self, operation: Operation[Any, Answer]) -> None:
        self._operation = operation

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, Answer]]
    ) -> Callable[P, Coroutine[Any, Any, Answer]]: ...

    @overload
    def __call__(self, function: Callable[P, Answer]) -> Callable[P, Answer]: ...

    def __call__(self, function: Function) -> Function:
        """The method itself, with its mark."""
        setattr(function, _MARK, self._operation)
        return function


class Later:
    """Operations of a service that is imported and built when one of them is first asked for.

    What few people ask for made a host load longer, and is held in memory by each.
    """

    def __init__(self, operations: Iterable[Operation[Any, Any]], build: Callable[[], object]) -> None:
        """`build` imports what it needs; it is called once, in a thread of its own."""
        self.names = frozenset(operation.name for operation in operations)
        self._build = build
        self._built: asyncio.Future[dict[str, Function]] | None = None

    def functions(self) -> dict[str, Function]:
        """Build the service. Raises TypeError where it performs other operations than were named."""
        found = functions((self._build(),))
        if found.keys() != self.names:
            raise TypeError(f"{sorted(found)} are performed, and {sorted(self.names)} were named")
        return found

    async def perform(self, operation: str, *given: Any) -> Any:
        """Ask the service, built now if it was not yet."""
        if self._built is None:
            # No stream waits for the imports.
            self._built = asyncio.ensure_future(asyncio.to_thread(self.functions))
        try:
            built = await asyncio.shield(self._built)
        except Exception:
            # Whoever asks next has another try.
            self._built = None
            raise
        done = built[operation](*given)
        return await done if inspect.isawaitable(done) else done


def functions(services: Iterable[object]) -> dict[str, Function]:
    """The methods of these objects that perform operations, by the operation's name.

    Raises TypeError when two perform the same one, or when one does not take what it will be given.
    """
    found: dict[str, Function] = {}
    for service in services:
        for operation, function in _performed(service):
            if operation in found:
                raise TypeError(f"two functions perform {operation}")
            found[operation] = function
    return found


def _performed(service: object) -> Iterator[tuple[str, Function]]:
    if isinstance(service, Later):
        yield from ((name, partial(service.perform, name)) for name in service.names)
        return
    kind: type = type(service)
    yield from ((operation, getattr(service, method)) for method, operation in _marked(kind))


@cache
def _marked(service: type) -> tuple[tuple[str, str], ...]:
    """The methods of a class that perform operations, and their names; each takes what it will be given."""
    attributes = {name: found for base in reversed(service.__mro__) for name, found in vars(base).items()}
    marked = []
    for name, found in attributes.items():
        operation = getattr(found, _MARK, None)
        if operation is not None:
            _check(operation, found)
            marked.append((name, operation.name))
    return tuple(marked)


def _check(operation: Operation[Any, Any], function: Function) -> None:
    """Raise TypeError unless a method takes itself, the names of the path as text, and the request."""
    wanted: list[object] = [str for _ in operation.parameters]
    if operation.request is not Nothing:
        wanted.append(operation.request)
    takes = [
        parameter.annotation
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ][1:]
    if takes != wanted:
        raise TypeError(f"{function.__qualname__} takes {takes}, and {operation.name} gives {wanted}")
