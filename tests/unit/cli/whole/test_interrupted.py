"""Ctrl+C while the host does something: exit code 130, and what goes on is said."""

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from engine_host.core.outside import answers
from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.test_commands import ENGINE, engines

Sndr = Callable[..., tuple[int, str, str]]
At = Callable[[str], None]
JOB: dict[str, Any] = {
    "id": "j1",
    "kind": "engine.build",
    "touches": "x",
    "state": "running",
    "title": "Build llama.cpp",
    "created_at": 0,
}


@pytest.fixture
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have the person type Ctrl+C while the host is asked this: after it was sent, before it is answered.

    No signal: one that comes late would end the tests.
    """
    asked: set[str] = set()
    read_now = answers.read_now

    def reading(answer: httpx.Response, most: int) -> bytes:
        content = read_now(answer, most)
        if f"{answer.request.method} {answer.request.url.path}" in asked:
            raise KeyboardInterrupt
        return content

    monkeypatch.setattr(answers, "read_now", reading)
    return asked.add


@pytest.mark.parametrize(
    ("words", "asked", "said"),
    [
        (("settings", "set", "endpoint.port", "8001"), "PUT /v1/settings", "The engine host was asked for"),
        (("routes", "remove", "coder"), "DELETE /v1/routes/coder", "and may do it all the same: Forget"),
        (("stop", "demo"), "DELETE /v1/engines/engine-1", "demo goes on stopping: `sndr status` says"),
        (("jobs",), "GET /v1/jobs", ""),
    ],
)
def test_ctrl_c_while_the_host_is_asked(
    words: tuple[str, ...], asked: str, said: str, host: FakeHost, sndr: Sndr, interrupt_at: At
) -> None:
    host.answers["GET /v1/engines"] = engines(ENGINE)
    host.answers[asked] = (200, {"seq": 0, "jobs": []})
    host.lies = True
    interrupt_at(asked)
    code, out, err = sndr(*words)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    assert said in err
    assert (err == "") is (said == ""), err
    assert sndr(*words, "--json")[::2] == (130, "")


def test_ctrl_c_while_the_host_ends(host: FakeHost, sndr: Sndr, monkeypatch: pytest.MonkeyPatch) -> None:
    host.answers["GET /v1/engines"] = engines()
    host.answers["POST /v1/host/quit"] = (200, {})

    here, sleep = threading.get_ident(), time.sleep

    def interrupt(seconds: float) -> None:
        # In another thread it would end the tests.
        if threading.get_ident() != here:
            return sleep(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    code, _, err = sndr("quit")
    assert code == 130
    assert err == "\nThe host goes on ending: `sndr status` says when it has.\n"


def test_a_second_ctrl_c_does_not_wait_for_the_end_of_a_job(
    host: FakeHost, sndr: Sndr, interrupt_at: At
) -> None:
    host.answers["POST /v1/servers/build"] = (202, JOB)
    host.answers["GET /v1/jobs/j1"] = (200, JOB)
    host.answers["DELETE /v1/jobs/j1"] = (202, JOB)
    host.lies = True
    interrupt_at("GET /v1/jobs/j1")
    interrupt_at("DELETE /v1/jobs/j1")
    code, _, err = sndr("engine", "build", "llama.cpp")
    assert code == 130
    assert "Build llama.cpp is being cancelled; its end is not waited for any more." in err
