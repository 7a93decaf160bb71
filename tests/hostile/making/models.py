"""Values of the wire with everything replaced that their types let be replaced."""

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tests.hostile.making.text import HOSTILE

M = TypeVar("M", bound=BaseModel)
LONG = "W" * 20_000
TEXTS = (*HOSTILE, LONG)
NUMBERS = (0, -1, 2**31, 2**53, -(2**53), 1e300, -1e300, 5e-324)


def spoiler(first: int) -> Callable[[Any], Any]:
    """Return a function that spoils one model after the other, with the values from a place on."""
    numbers = count(first)
    return lambda model: spoiled(model, lambda choices: choices[next(numbers) % len(choices)])


def spoiled(model: M, choose: Callable[[tuple[Any, ...]], Any]) -> M:
    """Return the model with every value replaced that its type lets be replaced."""
    data = model.model_dump(mode="json")
    kind = type(model)

    def places(value: Any, path: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        if isinstance(value, dict):
            return [one for key, part in value.items() for one in places(part, (*path, key))]
        if isinstance(value, list):
            return [one for number, part in enumerate(value) for one in places(part, (*path, number))]
        return [path]

    for path in places(data, ()):
        parent = data
        for key in path[:-1]:
            parent = parent[key]
        old = parent[path[-1]]
        # An id ties parts to each other: with another one nothing would be shown of them.
        if old is None or isinstance(old, bool) or path[-1] in {"id", "engine", "kind", "seq", "state"}:
            continue
        parent[path[-1]] = choose(TEXTS if isinstance(old, str) else NUMBERS)
        try:
            kind.model_validate(data)
        except ValidationError:
            parent[path[-1]] = old
    return kind.model_validate(data)
