"""Jobs: long work with named steps, progress, cancel, and a result or a reason-coded failure."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import ValidationError

from engine_host.core.errors import HostError, defect
from engine_host.core.store import Store
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import EventBase, JobDoneEvent, JobStepEvent
from engine_host.protocol.jobs import Job, JobKind, JobState, JobStep
from engine_host.protocol.language import tr

_log = logging.getLogger(__name__)
_KEPT = 200
# Progress is published at most ten times a second, so that a chatty compiler does not flood readers.
_QUIET = 0.1


class JobControl:
    """The handle with which a job's work reports its steps and progress."""

    def __init__(self, runner: "JobRunner", job_id: str) -> None:
        self._runner = runner
        self._job_id = job_id
        self._published_at = 0.0
        self._published_step = 0
        self.undone = ""
        self.left = ""

    def step(self, number: int, of: int, name: str, detail: str = "", progress: float | None = None) -> None:
        """Say which step the work is at; a new step is published at once, progress ten times a second."""
        now = time.monotonic()
        quiet = number == self._published_step and now - self._published_at < _QUIET
        self._runner._stepped(
            self._job_id, JobStep(number=number, of=of, name=name, detail=detail, progress=progress), quiet
        )
        if not quiet:
            self._published_step, self._published_at = number, now


async def telling_what_is(control: JobControl, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Carry out work whose failure says what it undid and left, as its cancellation does."""
    try:
        return await work
    except HostError as error:
        said = tr(
            "{message}[ {undone}][ {left}]",
            message=error.problem.message,
            undone=control.undone or None,
            left=control.left or None,
        )
        raise HostError.from_problem(error.problem.model_copy(update={"message": said})) from error


Work = Callable[[JobControl], Awaitable[dict[str, Any]]]
Ended = Callable[[Job], object]


class JobRunner:
    """Runs jobs; those that touch the same thing run one after the other, in the order they came."""

    def __init__(self, publish: Callable[[EventBase], None], store: Store) -> None:
        self._publish = publish
        self._store = store
        self._jobs: dict[str, Job] = {}
        # Those that have not ended, in the order they came.
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._on_end: dict[str, Ended] = {}
        self.closing = False

    def restore(self) -> None:
        """Read the jobs of earlier runs; one that was still running has failed with `host_restarted`."""
        for body in reversed(self._store.newest("job", _KEPT)):
            try:
                job = Job.model_validate_json(body)
            except ValidationError as error:
                _log.warning("a job of another version of this program is left out: %s", error)
                continue
            if not job.ended:
                problem = Problem(
                    reason=Reason.HOST_RESTARTED,
                    message=tr("“{job}” was interrupted: the engine host ended while it ran.", job=job.title),
                )
                job = job.model_copy(
                    update={"state": JobState.FAILED, "error": problem, "ended_at": time.time()}
                )
                self._save(job)
            self._jobs[job.id] = job

    def start(
        self,
        kind: JobKind,
        title: str,
        touches: str,
        command: str,
        work: Work,
        ended: Ended | None = None,
        machines: Sequence[str] = (),
    ) -> Job:
        """Queue work and answer with its job at once.

        `machines` are others that the work is about. `ended` is told of the end, also of a job that was
        cancelled before its work began.
        """
        job_id = f"job-{secrets.token_hex(4)}"
        before = [other for other in self._tasks if self._jobs[other].touches == touches]
        job = Job(
            id=job_id,
            kind=kind,
            title=title,
            touches=touches,
            machines=tuple(machines),
            state=JobState.QUEUED,
            behind=before[-1] if before else None,
            created_at=time.time(),
            command=command,
        )
        if ended is not None:
            self._on_end[job_id] = ended
        self._change(job)
        task = asyncio.create_task(self._run(job_id, work, before), name=job_id)
        task.add_done_callback(lambda _task: self._finish(job_id, {"state": JobState.CANCELLED}))
        self._tasks[job_id] = task
        return job

    def all(self) -> list[Job]:
        """Every job known, newest first."""
        return sorted(self._jobs.values(), key=lambda job: job.created_at, reverse=True)

    def get(self, job_id: str) -> Job:
        """One job. Raises HostError(not_found)."""
        if job_id not in self._jobs:
            raise HostError(
                Reason.NOT_FOUND,
                tr("There is no job {job_id}.", job_id=job_id),
                cause=tr("The newest {kept} that ended are kept.", kept=_KEPT),
                fix=Fix(text="See which there are.", command="sndr jobs"),
            )
        return self._jobs[job_id]

    def cancel(self, job_id: str) -> Job:
        """Ask a job to stop; a job that ended is answered as it is. Raises HostError(not_found)."""
        job = self.get(job_id)
        if task := self._tasks.get(job_id):
            task.cancel()
        return job

    async def ended(self, job_id: str) -> Job:
        """Wait until a job has ended."""
        if task := self._tasks.get(job_id):
            await asyncio.wait({task})
        return self.get(job_id)

    async def close(self) -> None:
        """Cancel every job and wait for all of them; a job that sees `closing` starts nothing more."""
        self.closing = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job_id: str, work: Work, before: list[str]) -> None:
        control = JobControl(self, job_id)
        update: dict[str, Any]
        try:
            await self._turn(job_id, before)
            self._change(
                self._jobs[job_id].model_copy(
                    update={"state": JobState.RUNNING, "behind": None, "started_at": time.time()}
                )
            )
            update = {"state": JobState.DONE, "result": await work(control)}
        except asyncio.CancelledError:
            update = {"state": JobState.CANCELLED}
        except HostError as error:
            state = JobState.CANCELLED if error.reason is Reason.CANCELLED else JobState.FAILED
            update = {"state": state, "error": error.problem}
        except Exception as error:  # noqa: BLE001 - the boundary: a defect of ours must end as a failed job
            _log.exception("job %s failed", job_id)
            update = {"state": JobState.FAILED, "error": defect(error)}
        self._finish(job_id, update | {"undone": control.undone, "left": control.left})

    async def _turn(self, job_id: str, before: list[str]) -> None:
        """Wait for all that came before on this thing: the nearest may be cancelled while another runs."""
        while waiting := [other for other in before if other in self._tasks]:
            job = self._jobs[job_id]
            if job.behind != waiting[-1]:
                self._change(job.model_copy(update={"behind": waiting[-1]}))
            await asyncio.wait({self._tasks[waiting[-1]]})

    def _finish(self, job_id: str, update: dict[str, Any]) -> None:
        """End a job once; also called for a task that was cancelled before it ran at all."""
        self._tasks.pop(job_id, None)
        job = self._jobs.get(job_id)
        if job is None or job.ended:
            return
        job = job.model_copy(update=update | {"ended_at": time.time(), "behind": None})
        self._change(job)
        if on_end := self._on_end.pop(job_id, None):
            on_end(job)
        for old in [other for other in self._jobs.values() if other.ended][:-_KEPT]:
            del self._jobs[old.id]

    def _stepped(self, job_id: str, step: JobStep, quiet: bool) -> None:
        job = self._jobs[job_id]
        if job.ended:
            return
        self._jobs[job_id] = job = job.model_copy(update={"step": step})
        if not quiet:
            self._publish(JobStepEvent(job=job))

    def _change(self, job: Job) -> None:
        self._jobs[job.id] = job
        self._save(job)
        self._publish(JobDoneEvent(job=job) if job.ended else JobStepEvent(job=job))

    def _save(self, job: Job) -> None:
        try:
            self._store.put("job", job.id, job.created_at, job.model_dump_json())
            if job.ended:
                self._store.prune("job", _KEPT)
        except HostError as error:
            _log.warning("%s", error.problem.sentence())
