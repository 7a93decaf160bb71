"""JSON values as nobody should write them: other types, other numbers, and depths."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.hostile.making.text import long_words, words

NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 7, 8, 64, 128, 255, 256, 1024, 4096),
    *(2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**47, 2**48, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30),
    *(10**308, 10**400, 10**4000, -(10**400)),
    *(0.0, -0.0, 0.5, 1e-320, 1e300, -1e300, 1.5e308, float("inf"), float("-inf"), float("nan")),
)

ABSURD: tuple[Any, ...] = (-1, 2**20, 2**31, 2**48, 2**63, 10**30, 10**400, 1e300, float("inf"), float("nan"))
"""The most telling of them, for checks that try each."""

numbers = st.one_of(st.sampled_from(NUMBERS), st.integers(-3, 300), st.floats())
scalars = st.one_of(st.none(), st.booleans(), numbers, words)
values = st.recursive(
    st.one_of(scalars, long_words),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(words, inner, max_size=4)),
    max_leaves=12,
)
"""Any value."""


def written(value: Any) -> bytes:
    """Return a value as JSON, with the numbers that no JSON has as Python writes them."""
    return json.dumps(value).encode()


def changed(sound: dict[str, Any], most: int = 6) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects like a sound one, with some of its values and names replaced, taken away or added."""
    paths = _paths(sound)

    def change(changes: list[tuple[tuple[Any, ...], Any, int]]) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(json.dumps(sound))
        for path, value, kind in changes:
            _put(made, path, value, kind)
        return made

    one = st.tuples(st.sampled_from(paths), values, st.integers(0, 5))
    return st.lists(one, min_size=1, max_size=most).map(change)


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path for key, one in inner for path in _paths(one, (*at, key))]
    return [at, *found] if at else found


def _put(made: Any, path: tuple[Any, ...], value: Any, kind: int) -> None:
    for key in path[:-1]:
        try:
            made = made[key]
        except (KeyError, IndexError, TypeError):
            return
    try:
        if kind == 0:
            del made[path[-1]]
        elif kind == 1:
            made[path[-1]] = [made[path[-1]]]
        elif kind == 2:
            made[path[-1]] = {"x": made[path[-1]]}
        else:
            made[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        return


def nested(kind: str, depth: int) -> bytes:
    """Return a text of lists or objects in one another."""
    if kind == "list":
        return b"[" * depth + b"]" * depth
    return b'{"a":' * depth + b"1" + b"}" * depth
