"""How long a client of Ollama wants a model to stay, in each of the forms that it may say it in."""

import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.ollama.keep_alive import seconds


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, None),
        (0, 0.0),
        (0.5, 0.5),
        ("0", 0.0),
        ("0s", 0.0),
        ("300", 300.0),
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("1500ms", 1.5),
        (-1, -1.0),
        ("-1", -1.0),
        ("-1m", -1.0),
        (1e300, 31_536_000.0),
        ("999999999h", 31_536_000.0),
    ],
)
def test_a_duration(said: object, meant: float | None) -> None:
    assert seconds(said) == meant


NONE = ["", "m", "5 m", "5x", "1h-5m", "9" * 5000, "5m\n\x1b[2J", "NaN", "Infinity", "1e400", True, [], {}]
NUMBERS = [10**400, -(10**400), float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize("said", [*NONE, *NUMBERS], ids=lambda said: repr(said)[:20])
def test_what_is_none_is_refused(said: object) -> None:
    with pytest.raises(EndpointError) as refused:
        seconds(said)
    assert (refused.value.status, refused.value.param) == (400, "keep_alive")
