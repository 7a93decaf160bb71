"""A command that waits for the host says so, and one that need not wait says nothing."""

import time
from collections.abc import Callable

import pytest

from engine_host.cli.text import waiting
from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(("seconds", "told"), [(0.4, True), (0.0, False)])
def test_a_slow_answer_is_said_to_be_waited_for(
    host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch, seconds: float, told: bool
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.2)

    def jobs() -> tuple[int, object]:
        time.sleep(seconds)
        return 200, {"seq": 1, "jobs": []}

    host.answers["GET /v1/jobs"] = jobs
    code, out, err = sndr("jobs")
    assert code == 0
    assert ("Waiting for the engine host" in err) is told
    assert "Waiting" not in out
    assert sndr("jobs", "--json")[2] == "", "programs are told nothing on the way"
