"""`sndr bench endpoint` and the endpoint's key: never an option, and checked before anything starts."""

from collections.abc import Callable
from pathlib import Path

import pytest

Sndr = Callable[..., tuple[int, str, str]]


def test_a_key_is_no_option(sndr: Sndr, home: Path) -> None:
    code, _, err = sndr("bench", "endpoint", "--key", "sk-secret")
    assert (code, "No such option" in err) == (2, True)
    assert "SNDR_API_KEY" in sndr("bench", "endpoint", "--help")[1]


def test_a_key_that_no_header_carries_is_not_shown(
    sndr: Sndr, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_API_KEY", "sk-secret\r\nx")
    code, out, err = sndr("bench", "endpoint")
    assert code != 0
    assert "SNDR_API_KEY holds no key" in err
    assert "secret" not in out + err
