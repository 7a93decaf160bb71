"""The measurement of starts that were made before, with engines that only say when they were ready."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def modules(script: Callable[[str], ModuleType]) -> tuple[ModuleType, ModuleType]:
    """The rows, and the measurement."""
    return script("judge"), script("repeated_starts")


def measured(modules: tuple[ModuleType, ModuleType], fails: str = "", *, early: bool = True) -> Any:
    """The table, and the names of the starts with the patches that were asked for."""
    judge, starts = modules
    table, asked = judge.Table(), []
    seconds = iter([150.0, 40.0, 60.0, 37.0, 28.0, 36.0, 27.0])

    def once(part: str, more: tuple[str, ...]) -> Any:
        asked.append((part, more))
        if fails and fails in part:
            raise RuntimeError("it did not come up")
        return SimpleNamespace(verified=SimpleNamespace(ready_after=next(seconds)))

    starts.measure(table, once, lambda part, _: [judge.Row(part, "stops", True, "")], early=early)
    return table, asked


def test_both_kinds_are_made_by_turns_and_the_first_of_each_is_left_out(modules: Any) -> None:
    table, asked = measured(modules)
    assert [bool(more) for _, more in asked] == [False, False, True, False, True, False, True]
    told = {row.check: row.found for row in table.rows if row.check.startswith("ready again")}
    patch = "engine-core-imports-early"
    assert told == {
        f"ready again, without {patch}": "40.0 · 37.0 · 36.0 s, median but for the first 36.5 s",
        f"ready again, with {patch}": "60.0 · 28.0 · 27.0 s, median but for the first 27.5 s",
    }


def test_a_start_that_fails_keeps_the_others(modules: Any) -> None:
    table, asked = measured(modules, fails="with 1")
    assert len(asked) == 7
    assert [row.check for row in table.rows if row.passed is False] == ["starts, with 1"]


def test_where_the_patch_cannot_be_used_the_plain_starts_are_measured(modules: Any) -> None:
    table, asked = measured(modules, early=False)
    assert [more for _, more in asked] == [()] * 4
    assert sum(row.check.startswith("ready again") for row in table.rows) == 1
