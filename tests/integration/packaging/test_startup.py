"""The measurement of the first picture ends where a window never says that it is of use."""

import sys
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

PAINTED = """print('{"event": "painted", "seconds": 0.2}', flush=True)"""
USEFUL = """print('{"event": "useful", "seconds": 0.5}', flush=True)"""


def asked(script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, program: str) -> object:
    """Measure a FAKE window, and return the times or the words of the error; None after twenty seconds."""
    startup = script("startup")
    monkeypatch.setattr(startup, "WINDOW", (sys.executable, "-c", program))
    found: list[object] = []

    def measure() -> None:
        try:
            found.append(startup.first_picture(SimpleNamespace(environment={}), 4))
        except RuntimeError as error:
            found.append(str(error))

    thread = threading.Thread(target=measure, daemon=True)
    thread.start()
    thread.join(20)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (f"import time; {PAINTED}; time.sleep(30)", "it was useful: 4 s are over"),
        ("import time; time.sleep(30)", "it was painted and useful: 4 s are over"),
        (PAINTED, "it was useful: it ended"),
    ],
)
def test_a_window_that_never_shows_its_values_is_given_up_with_a_sentence(
    script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, program: str, told: str
) -> None:
    assert told in str(asked(script, monkeypatch, program))


def test_both_times_of_a_window_are_read(
    script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(script, monkeypatch, f"{PAINTED}; {USEFUL}; import time; time.sleep(30)") == (0.2, 0.5)
