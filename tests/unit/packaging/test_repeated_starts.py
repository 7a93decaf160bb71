"""The measurement of starts that were made before, with engines that only say when they were ready."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def modules(script: Callable[[str], ModuleType]) -> tuple[ModuleType, ModuleType]:
    """The rows, and the measurement."""
    return script("judge"), script("repeated_starts")


def measured(
    modules: tuple[ModuleType, ModuleType], fails: str = "", *, kinds: tuple[bool, ...] = (True, False)
) -> Any:
    """The table, and the names of the starts with whether the patch was asked for."""
    judge, starts = modules
    table, asked = judge.Table(), []
    seconds = iter([150.0, 40.0, 60.0, 28.0, 37.0])

    def once(part: str, patched: bool) -> Any:
        asked.append((part, patched))
        if fails and fails in part:
            raise RuntimeError("it did not come up")
        return SimpleNamespace(verified=SimpleNamespace(ready_after=next(seconds)))

    starts.measure(table, once, lambda part, _: [judge.Row(part, "stops", True, "")], kinds=kinds)
    return table, asked


def test_both_kinds_are_made_by_turns_and_the_first_of_each_is_left_out(modules: Any) -> None:
    table, asked = measured(modules)
    assert [patched for _, patched in asked] == [True, True, False, True, False]
    told = {row.check: row.found for row in table.rows if row.check.startswith("ready again")}
    patch = "engine-core-imports-early"
    assert told == {
        f"ready again, without {patch}": "60.0 · 37.0 s, median but for the first 37.0 s",
        f"ready again, with {patch}": "40.0 · 28.0 s, median but for the first 28.0 s",
    }


def test_a_start_that_fails_keeps_the_others(modules: Any) -> None:
    table, asked = measured(modules, fails="with 1")
    assert len(asked) == 5
    assert [row.check for row in table.rows if row.passed is False] == ["starts, with 1"]


def test_where_the_patch_cannot_be_used_the_plain_starts_are_measured(modules: Any) -> None:
    table, asked = measured(modules, kinds=(False,))
    assert [patched for _, patched in asked] == [False] * 3
    assert sum(row.check.startswith("ready again") for row in table.rows) == 1
