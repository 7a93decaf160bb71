"""Follow a job of the host from the command line."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

from engine_host.cli.output import Output, echo, writes_to_terminal
from engine_host.cli.text.lost_connection import found_again, goes_on, is_lost
from engine_host.cli.text.waiting import told_if_interrupted
from engine_host.client import failures
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.visible import visible
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import JobDoneEvent, JobStepEvent
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.language import formed
from engine_host.protocol.operations import table as ops

_LONGEST_PAUSE = 30.0
_STEADY = 60.0
"""Seconds after which a connection that is lost was no bad one."""


def begin(client: ControlClient, job: Callable[[], Job], out: Output, begun: str = "") -> Job:
    """Begin a job, wait for its end and say its steps; Ctrl+C cancels it, also while the host begins it.

    `begun` is said once the host has taken it, and so never before a refusal.
    One of another machine goes on there when the connection is lost, and is found again.
    Raises HostError with the job's own error, or HostError(cancelled), and what beginning it raises.
    """
    with _held_back() as let_go:
        taken = job()
        if begun:
            out.note(begun)
        return _follow(client, taken, out, let_go)


def cancel(client: ControlClient, name: str, out: Output) -> Job:
    """Cancel a job, say its steps until it has ended, and return what became of it. Raises HostError."""
    steps = _Steps(out)
    job = client.call(ops.CANCEL_JOB, id=name)
    with told_if_interrupted(f"{job.title} is being cancelled; its end is not waited for any more."):
        ended = job if job.ended else _wait(client, job, steps)
    steps.finish()
    return ended


def _follow(client: ControlClient, job: Job, out: Output, let_go: Callable[[], None]) -> Job:
    """Wait for the end of a job and say its steps; Ctrl+C cancels it, also one that `let_go` raises."""
    steps = _Steps(out)
    try:
        let_go()
        ended = job if job.ended else _wait_steadily(client, job, steps)
    except KeyboardInterrupt:
        steps.finish()
        with told_if_interrupted(f"{job.title} is being cancelled; its end is not waited for any more."):
            ended = _cancelled(client, job, steps)
    steps.finish()
    if ended.error is not None:
        raise HostError.from_problem(ended.error)
    if ended.state is JobState.CANCELLED:
        parts = [f"{ended.title} was cancelled.", ended.undone, ended.left]
        raise HostError(Reason.CANCELLED, " ".join(part for part in parts if part))
    return ended


@contextmanager
def _held_back() -> Iterator[Callable[[], None]]:
    """Keep Ctrl+C, and what counts as it, until what is yielded is called, which raises it.

    Between the two a second one is raised at once: what is waited for may never come.
    """
    came = 0
    ours = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # Not one that ends the program, or that it does not hear.
    before = {one: handler for one in ours if callable(handler := signal.getsignal(one))}

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came > 1:
            raise KeyboardInterrupt

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    def let_go() -> None:
        restore()
        if came:
            raise KeyboardInterrupt

    for one in before:
        signal.signal(one, note)
    try:
        yield let_go
    finally:
        restore()


def _wait_steadily(client: ControlClient, job: Job, steps: "_Steps") -> Job:
    """Wait for its end, on other connections where the one to another machine is lost."""
    try:
        return _wait(client, job, steps)
    except HostError as error:
        lost = error
    pause = 0.0
    while is_lost(client, lost):
        steps.finish()
        # The job may answer where its events do not come: it would be asked at once, again and again.
        time.sleep(pause)
        with found_again(client, job, steps.say) as fresh:
            began = time.monotonic()
            try:
                return _wait(fresh, job, steps)
            except HostError as error:
                lost = error
            pause = 0.0 if time.monotonic() - began > _STEADY else min(2 * pause + 1, _LONGEST_PAUSE)
    raise lost


def _cancelled(client: ControlClient, job: Job, steps: "_Steps") -> Job:
    try:
        with client.again() as fresh:
            ended = fresh.call(ops.CANCEL_JOB, id=job.id)
            return ended if ended.ended else _wait(fresh, ended, steps)
    except HostError as error:
        if is_lost(client, error):
            raise goes_on(client, job) from error
        raise


def _wait(client: ControlClient, job: Job, steps: "_Steps") -> Job:
    # The number is read before the job, so that nothing falls between the two.
    assert client.version is not None
    after = client.version.seq
    now = client.call(ops.JOB, id=job.id)
    if now.ended:
        return now
    steps.show(now)
    # Events since the version was read may be of what was before that which was just shown.
    behind = _place(now)
    for event in client.events(after):
        if isinstance(event, JobStepEvent | JobDoneEvent) and event.job.id == job.id:
            if _place(event.job) >= behind:
                behind = (0, 0.0)
                steps.show(event.job)
            if event.job.ended:
                return event.job
        if event.kind in {"reset", "missed"}:
            now = client.call(ops.JOB, id=job.id)
            if now.ended:
                return now
    raise failures.gone("The engine host has ended.", host=client.host)


def _place(job: Job) -> tuple[int, float]:
    return (job.step.number, job.step.progress or 0.0) if job.step is not None else (0, 0.0)


class _Steps:
    """The steps of a job on stderr: one line a step, its progress in place at a terminal."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._number = 0
        self._tenth = -1
        self._behind: str | None = None
        self._open = False

    def show(self, job: Job) -> None:
        """Say where the job is, and once what it waits for."""
        step = job.step
        if job.state is JobState.QUEUED and job.behind not in {None, self._behind}:
            self._behind = job.behind
            self.say(f"{job.title} waits until job {job.behind} has ended: see `sndr jobs`.")
        if step is None or job.ended:
            return
        if self._out.as_json:
            self._out.record({"job": job.id, "step": step.model_dump(mode="json")}, err=True)
            return
        tenth = int((step.progress or 0) * 10)
        text = f"  {step.number}/{step.of} {step.name}"
        if step.progress is not None:
            text += f" {formed(step.progress, '.0%'):>5}"
        if step.detail:
            text += f"  {step.detail}"
        if writes_to_terminal():
            if self._number != step.number:
                self.finish()
            click.echo(f"\r\033[K{visible(text[:110])}", err=True, nl=False)
            self._open = True
        elif (step.number, tenth) != (self._number, self._tenth):
            echo(text[:160], err=True)
        self._number, self._tenth = step.number, tenth

    def say(self, text: str) -> None:
        """Say something of the job's connection."""
        self.finish()
        if self._out.as_json:
            self._out.record({"note": text}, err=True)
        self._out.note(text)

    def finish(self) -> None:
        """Leave the line of the last step."""
        if self._open:
            echo(err=True)
            self._open = False
