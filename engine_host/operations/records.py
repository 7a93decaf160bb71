"""Jobs, log lines and measured series, read as they were recorded."""

import time

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.store import Store
from engine_host.operations.performs import performs
from engine_host.protocol.jobs import Job, JobPage
from engine_host.protocol.logs import LogPage, LogQuery
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import (
    EnergyPage,
    EnergyQuery,
    MarkPage,
    MarkQuery,
    TelemetryPage,
    TelemetryQuery,
)
from engine_host.telemetry.energy import energy_of
from engine_host.telemetry.history import History
from engine_host.telemetry.marks import MarkBook

_MOST_LINES = 10_000
_ENERGY_OF = 3600.0


class RecordOperations:
    """The host's records."""

    def __init__(
        self,
        jobs: JobRunner,
        log_buffer: LogBuffer,
        history: History,
        store: Store,
        events: EventLog,
    ) -> None:
        self._jobs = jobs
        self._log_buffer = log_buffer
        self._history = history
        self._marks = MarkBook(store, events)
        self._events = events

    @performs(ops.JOBS)
    def jobs(self) -> JobPage:
        """Return every job, newest first."""
        return JobPage(seq=self._events.seq, jobs=tuple(self._jobs.all()))

    @performs(ops.JOB)
    def job(self, job_id: str) -> Job:
        """Return one job. Raises HostError(not_found)."""
        return self._jobs.get(job_id)

    @performs(ops.CANCEL_JOB)
    def cancel_job(self, job_id: str) -> Job:
        """Ask a job to stop. Raises HostError(not_found)."""
        return self._jobs.cancel(job_id)

    @performs(ops.LOGS)
    def logs(self, asked: LogQuery) -> LogPage:
        """Return log lines, oldest first."""
        limit = max(0, min(asked.limit, _MOST_LINES))
        lines = self._log_buffer.read(asked.source or None, asked.severity, asked.after, limit)
        return LogPage(seq=self._events.seq, lines=tuple(lines), sources=self._log_buffer.sources())

    @performs(ops.TELEMETRY)
    async def telemetry(self, asked: TelemetryQuery) -> TelemetryPage:
        """Return series over a range. Raises HostError where the disk cannot be read."""
        return await self._history.page(asked.names, asked.since, asked.step, seq=self._events.seq)

    @performs(ops.ENERGY)
    async def energy(self, asked: EnergyQuery) -> EnergyPage:
        """Return the energy since a time. Raises HostError where the disk cannot be read."""
        until = time.time()
        since = until - _ENERGY_OF if asked.since is None else min(asked.since, until)
        page = await self._history.page((), since, (until - since) / 720, seq=self._events.seq)
        return energy_of(page.series, page.step, since, until, page.seq)

    @performs(ops.MARKS)
    def marks(self, asked: MarkQuery) -> MarkPage:
        """Return what happened in a time."""
        return MarkPage(seq=self._events.seq, marks=self._marks.since(asked.since, asked.until))
