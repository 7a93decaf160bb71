"""A byte that goes to another process and comes back."""

import pytest

from packaging.bench.loopback_wait import main, measure


def test_bytes_come_back() -> None:
    waits = measure(0.05)
    assert waits.count >= 1
    assert 0 < waits.median <= waits.longest


def test_it_says_what_it_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "0.01"]) == 0
    assert "longest" in capsys.readouterr().out
