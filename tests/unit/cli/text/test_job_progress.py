"""A job of another machine is waited for without haste where its connection is lost again and again."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from engine_host.cli.output import Output
from engine_host.cli.start.follow import signals
from engine_host.cli.text import job_progress
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import JobDoneEvent, JobStepEvent
from engine_host.protocol.jobs import Job, JobKind, JobState, JobStep
from engine_host.protocol.operations import table as ops

JOB = Job(
    id="j", kind=next(iter(JobKind)), title="A job", touches="t", state=JobState.RUNNING, created_at=1.0
)


class FakeClient:
    """FAKE: a machine whose job answers always, and whose events end at once."""

    host = "gpu"

    def __init__(self, times: int) -> None:
        self.version = type("FakeVersion", (), {"seq": 0})()
        self.times = times
        self.streams = 0

    def again(self) -> "FakeClient":
        """Return itself, as connected as before."""
        return self

    def connect(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""

    def __enter__(self) -> "FakeClient":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def call(self, *_: object, **_more: object) -> Job:
        """Return the job, which ends after some streams of events."""
        if self.streams < self.times:
            return JOB
        return JOB.model_copy(update={"state": JobState.DONE, "ended_at": 2.0})

    def events(self, _after: int) -> Iterator[Any]:
        """Fail before the first one."""
        self.streams += 1
        raise HostError(Reason.HOST_UNREACHABLE, "The connection was closed.")


def test_events_that_fail_at_once_are_asked_for_with_pauses_that_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    here, sleep = threading.get_ident(), time.sleep

    def pause(seconds: float) -> None:
        if threading.get_ident() == here:
            pauses.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr(time, "sleep", pause)
    client: Any = FakeClient(times=8)
    ended = job_progress.begin(client, lambda: JOB, Output(as_json=False))
    assert ended.state is JobState.DONE
    assert pauses == [0.0, 1.0, 3.0, 7.0, 15.0, 30.0, 30.0, 30.0], "the first loss is no reason to wait"


def test_what_was_before_the_first_look_is_not_said_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    def at(number: int, progress: float | None, **more: Any) -> Job:
        step = JobStep(number=number, of=3, name="verify", progress=progress)
        return JOB.model_copy(update={"step": step, **more})

    class FakeSteps(FakeClient):
        """FAKE: a job that was looked at in the middle of its second step."""

        def call(self, *_: object, **_more: object) -> Job:
            """Return the job as it was at the look."""
            return at(2, 0.2)

        def events(self, _after: int) -> Iterator[Any]:
            """Tell of what was before the look, too."""
            for job in (at(1, None), at(2, 0.0), at(2, 0.2), at(2, 0.5), at(3, None)):
                yield JobStepEvent(seq=1, run_id="r", at=1.0, job=job)
            yield JobDoneEvent(seq=2, run_id="r", at=1.0, job=at(3, None, state=JobState.DONE, ended_at=2.0))

    client: Any = FakeSteps(times=1)
    job_progress.begin(client, lambda: JOB, Output(as_json=False))
    said = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert said == [["2/3", "verify", "20", "%"], ["2/3", "verify", "50", "%"], ["3/3", "verify"]]


def test_a_job_that_waits_for_another_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    queued = JOB.model_copy(update={"state": JobState.QUEUED})

    class FakeQueue(FakeClient):
        """FAKE: a job that stands behind another one, which then ends."""

        def call(self, *_: object, **_more: object) -> Job:
            """Return the job as it was at the look."""
            return queued

        def events(self, _after: int) -> Iterator[Any]:
            """Tell of the queue twice, and of the end."""
            for job in (queued, queued.model_copy(update={"behind": "other"})) * 2:
                yield JobStepEvent(seq=1, run_id="r", at=1.0, job=job)
            done = JOB.model_copy(update={"state": JobState.DONE, "ended_at": 2.0})
            yield JobDoneEvent(seq=2, run_id="r", at=1.0, job=done)

    client: Any = FakeQueue(times=1)
    job_progress.begin(client, lambda: queued, Output(as_json=False))
    said = capsys.readouterr().err
    assert said.count("A job waits until job other has ended") == 1
    job_progress.begin(client, lambda: queued, Output(as_json=True))
    assert '"note"' in capsys.readouterr().err


def test_what_is_begun_is_said_after_the_host_took_it_and_not_before_a_refusal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused() -> Job:
        raise HostError(Reason.CONFLICT, "Another one measures.")

    client: Any = FakeClient(times=0)
    with pytest.raises(HostError):
        job_progress.begin(client, refused, Output(as_json=False), "measuring")
    assert capsys.readouterr().err == ""
    job_progress.begin(client, lambda: JOB, Output(as_json=False), "measuring")
    assert capsys.readouterr().err == "measuring\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_the_host_begins_a_job_cancels_it(number: signal.Signals) -> None:
    asked: list[object] = []

    class FakeBeginning(FakeClient):
        """FAKE: a host that is told of its job's end."""

        def call(self, *words: object, **_more: object) -> Job:
            """Return the job, ended once it was cancelled."""
            asked.append(words[0])
            ended = {"state": JobState.CANCELLED, "ended_at": 2.0}
            return JOB.model_copy(update=ended if ops.CANCEL_JOB in asked else {})

    def begun() -> Job:
        os.kill(os.getpid(), number)
        return JOB

    client: Any = FakeBeginning(times=1)
    with signals(), pytest.raises(HostError) as caught:
        job_progress.begin(client, begun, Output(as_json=False))
    assert (caught.value.reason, asked) == (Reason.CANCELLED, [ops.CANCEL_JOB])


def test_a_second_ctrl_c_is_not_held_back_from_a_host_that_hangs() -> None:
    def hangs() -> Job:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the second one was held back too")

    client: Any = FakeClient(times=1)
    before = signal.getsignal(signal.SIGINT)
    with signals(), pytest.raises(KeyboardInterrupt):
        job_progress.begin(client, hangs, Output(as_json=False))
    assert signal.getsignal(signal.SIGINT) is before
