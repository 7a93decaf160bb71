"""What comes back from another machine may be anything."""

import asyncio
import errno
import json
import sys
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.remote.install import machine
from engine_host.remote.install.answers import Removed
from engine_host.remote.install.machine import Machine, do
from engine_host.remote.install.there.places import failure_of
from engine_host.remote.run import Feed, RemoteOutcome, RemoteScript, Take


class Says:
    """FAKE: a machine that prints a text."""

    def __init__(self, outcome: RemoteOutcome) -> None:
        self.outcome = outcome

    async def run(
        self, name: str, script: RemoteScript, data: bytes = b"", *, seconds: float = 30.0, most: int = 0
    ) -> RemoteOutcome:
        """Print it."""
        return self.outcome

    async def run_fed(
        self,
        name: str,
        script: RemoteScript,
        feed: Feed,
        seconds: float | None,
        most: int = 0,
        take: Take | None = None,
    ) -> RemoteOutcome:
        """Print it."""
        return self.outcome


def asked(printed: bytes, code: int | None = 0) -> Removed:
    machine = Machine("gpu", Says(RemoteOutcome(code, printed, "")))
    return asyncio.run(do(machine, "uninstall", Removed))


def answer(**value: Any) -> bytes:
    return b"sndr-answer " + json.dumps(value).encode() + b"\n"


def test_what_a_login_prints_before_the_answer_is_no_answer() -> None:
    printed = b"Welcome!\nsndr-answer not this\n" + answer(done={"removed": ["/a"], "kept": []}) + b"bye\n"
    assert asked(printed).removed == ("/a",)


@pytest.mark.parametrize(
    "printed",
    [
        b"",
        b"sndr-answer",
        b"sndr-answer {",
        b"sndr-answer []",
        b"sndr-answer " + b"[" * 100_000,
        b'sndr-answer {"done": 1e999}',
        b"\xff\xfe sndr-answer {}",
        answer(done=None),
        answer(done={"removed": 7, "kept": []}),
        answer(done={"removed": ["x" * 10_000], "kept": []}),
        answer(done={"removed": ["x"] * 10_000, "kept": []}),
        answer(failed=["no"], message={"a": 1}, evidence=[1]),
        b"sndr-answer " + b"x" * (5 << 20),
    ],
)
def test_an_answer_of_another_form_is_an_error_of_that_machine(printed: bytes) -> None:
    with pytest.raises(HostError) as failed:
        asked(printed)
    assert failed.value.reason is Reason.INSTALL_FAILED
    assert "gpu" in failed.value.problem.message
    assert len(failed.value.problem.message) < 1000


@pytest.mark.parametrize("code", [None, 1])
def test_an_end_without_an_answer_is_told(code: int | None) -> None:
    with pytest.raises(HostError) as failed:
        asked(b"", code)
    assert "gave no answer" in failed.value.problem.message


def test_a_failure_there_keeps_its_reason_and_its_last_line() -> None:
    printed = answer(failed="disk_full", message="A program there failed.", evidence={"lines": ["a", "full"]})
    with pytest.raises(HostError) as failed:
        asked(printed)
    problem = failed.value.problem
    assert (problem.reason, problem.cause) == (Reason.DISK_FULL, "full")


def test_a_python_that_is_too_old_says_so_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 6, 8, "final", 0))
    with pytest.raises(SystemExit):
        exec(machine._SCRIPT.text, {})
    with pytest.raises(HostError, match=r"python3 there is 3\.6\.") as failed:
        asked(capsys.readouterr().out.encode())
    problem = failed.value.problem
    assert (problem.reason, "3.11, 3.12 or 3.13" in problem.cause) == (Reason.UNSUPPORTED, True)
    assert problem.fix is not None
    assert "lead to a newer one" in problem.fix.text


@pytest.mark.parametrize(
    ("number", "reason", "message"),
    [
        (errno.ENOSPC, "disk_full", "The disk there is full."),
        (errno.EDQUOT, "disk_full", "The quota of that user there is used up."),
        (errno.EROFS, "not_writable", "A file there could not be written."),
    ],
)
def test_what_keeps_a_file_from_being_written_there(number: int, reason: str, message: str) -> None:
    failed = failure_of(OSError(number, "words of the system", "/far/file"))
    assert (failed.reason, failed.message) == (reason, message)
