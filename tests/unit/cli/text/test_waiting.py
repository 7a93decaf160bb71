"""A command that waits for the host says so, and one that need not wait says nothing."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from engine_host.cli.remote import connecting
from engine_host.cli.text import waiting
from engine_host.client.exchange import Sent
from engine_host.client.sync import ControlClient
from engine_host.protocol.operations import remote_hosts
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Operation
from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.remote.test_commands import GPU

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


@pytest.mark.parametrize(
    ("operation", "told"),
    [(remote_hosts.CONNECT_HOST, "Connect and stay connected."), (ops.JOBS, ops.JOBS.text)],
)
def test_what_is_waited_for_is_said_without_what_the_answer_is(
    monkeypatch: pytest.MonkeyPatch, operation: Operation[Any, Any], told: str
) -> None:
    said: list[str] = []

    def when_long(text: str) -> nullcontext[None]:
        said.append(text)
        return nullcontext()

    monkeypatch.setattr(waiting, "told_when_long", when_long)
    with waiting.waiting_for_host(operation):
        pass
    assert said == [f"Waiting for the engine host. Asked for: {told}"]


def _interrupted(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("words", [("stage", "gpu", "m"), ("send", "gpu", "m"), ("update", "gpu")])
@pytest.mark.parametrize("state", ["connecting", "connected"])
def test_ctrl_c_before_a_job_of_a_host_began_says_that_nothing_was_changed(
    host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], state: str
) -> None:
    shown = {**GPU, "state": state, "control_token": "/run/token"}
    host.answers |= {
        "GET /v1/hosts/gpu": (200, shown),
        "POST /v1/hosts/gpu/connect": (200, shown),
        "GET /v1/hosts/questions": (200, {"seq": 1, "questions": []}),
    }
    asked = ControlClient._send

    def send(client: ControlClient, what: Sent, seconds: float | None = None) -> bytes:
        return _interrupted() if "plan" in what.path else asked(client, what, seconds)

    monkeypatch.setattr(ControlClient, "_send", send)
    monkeypatch.setattr(connecting, "time", SimpleNamespace(sleep=_interrupted, monotonic=time.monotonic))
    code, _, err = sndr("host", *words, "--dry-run")
    assert code == 130
    assert waiting.NOTHING_DONE in err
