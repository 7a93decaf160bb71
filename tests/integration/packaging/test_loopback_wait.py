"""A byte that goes to another process and comes back."""

from collections.abc import Callable
from types import ModuleType

import pytest


def test_bytes_come_back(script: Callable[[str], ModuleType]) -> None:
    waits = script("loopback_wait").measure(0.05)
    assert waits.count >= 1
    assert 0 < waits.median <= waits.longest


def test_it_says_what_it_measured(
    script: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    assert script("loopback_wait").main(["--seconds", "0.01"]) == 0
    assert "longest" in capsys.readouterr().out
