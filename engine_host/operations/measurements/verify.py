"""Verifications of engines that run: a job that asks, judges, and leaves the engine as it was."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from engine_host.bench.checks.levels import LEVELS, CutShortError, verified
from engine_host.bench.checks.live_patches import live_patches
from engine_host.bench.checks.subject import Subject, Verdict, failed, passed, skipped
from engine_host.bench.lab.load import beside, client_of
from engine_host.core.errors import HostError
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.operations.measurements.engine_choice import ready_engine
from engine_host.operations.performs import performs
from engine_host.protocol.bench.checks import Check, VerifyAfterStart, VerifyEngine, VerifyLevel, VerifyReport
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.operations import bench as ops
from engine_host.protocol.patches import EnginePatches

_log = logging.getLogger(__name__)
_LEAST_ACCEPTANCE = 2.0
_READING_SECONDS = 6.0
_LOOK = 0.1


class VerifyOperations:
    """Verifies the engines of this host, one at a time and never beside a measurement."""

    def __init__(
        self,
        jobs: JobRunner,
        run_folder: Path,
        alive: Callable[[], Sequence[Engine]],
        get: Callable[[str], Engine],
        probe: Callable[[Engine], Awaitable[EnginePatches]],
        level: Callable[[], VerifyAfterStart],
    ) -> None:
        """`probe` asks an engine's processes which patches are live, `level` is what every start gets."""
        self._jobs = jobs
        self._run_folder = run_folder
        self._alive = alive
        self._get = get
        self._probe = probe
        self._level = level

    @performs(ops.VERIFY_ENGINE)
    def verify(self, asked: VerifyEngine) -> Job:
        """Verify as a job whose result is a VerifyReport.

        Raises HostError: not_found, no_engine_runs, engine_not_ready, conflict where several could be meant.
        """
        engine = ready_engine(self._alive(), asked.engine)
        asked = asked.model_copy(update={"engine": engine.name})
        return self._jobs.start(
            JobKind.BENCH_VERIFY,
            tr("Verify {engine} ({level})", engine=engine.name, level=asked.level),
            # Beside a measurement it would make the figures worse.
            "bench",
            asked.command,
            lambda control: self._carry_out(control, engine, asked),
        )

    def after_start(self, engine: Engine) -> None:
        """Verify an engine that serves for the first time, where the settings ask for it."""
        level = self._level()
        if level != "off":
            try:
                self.verify(VerifyEngine(engine=engine.id, level=VerifyLevel(level)))
            except HostError as error:
                # It ended in this moment.
                _log.warning("%s was not verified: %s", engine.name, error.problem.sentence())

    async def _carry_out(self, control: JobControl, engine: Engine, asked: VerifyEngine) -> dict[str, Any]:
        started_at, began = time.time(), time.monotonic()
        number, of = 0, len(LEVELS[asked.level])

        def tell(title: str) -> None:
            nonlocal number
            number += 1
            control.step(number, of, title)

        seed = secrets.randbits(32) if asked.seed is None else asked.seed

        def report(checks: Sequence[Check], *, complete: bool) -> dict[str, Any]:
            return VerifyReport(
                engine=engine.id,
                name=engine.name,
                model_path=engine.plan.model_path,
                level=asked.level,
                seed=seed,
                started_at=started_at,
                seconds=round(time.monotonic() - began, 3),
                complete=complete,
                of=of,
                checks=tuple(checks),
                command=asked.command,
            ).model_dump(mode="json")

        socket = str(self._run_folder / f"{engine.plan.id}.sock")
        async with client_of(socket, socket=socket) as client:
            subject = Subject(
                client,
                engine.name,
                seed,
                context=engine.context,
                beside=beside(engine.engine),
                patches=lambda: self._patches(engine),
                acceptance=lambda since: self._acceptance(engine, since),
            )
            try:
                return report(await verified(subject, asked.level, tell), complete=True)
            except CutShortError as cut:
                control.left = tr("What was checked until then is part of its error.")
                raise HostError(
                    Reason.CANCELLED,
                    tr(
                        "The verification was cancelled after {count} of {of} checks.",
                        count=len(cut.done),
                        of=of,
                    ),
                    fix=Fix(text="Do it again.", command=asked.command),
                    evidence={"report": report(cut.done, complete=False)},
                ) from cut

    async def _patches(self, engine: Engine) -> Verdict:
        if engine.plan.patches is None:
            return skipped(f"{engine.engine} has no patches: they are for vLLM")
        return live_patches(await self._probe(engine))

    async def _acceptance(self, engine: Engine, since: float) -> Verdict:
        """Wait for a reading from after a moment, and judge the acceptance length since the start."""
        deadline = time.monotonic() + _READING_SECONDS
        while True:
            readings = self._get(engine.id).readings
            if readings is not None and readings.at > since:
                break
            if time.monotonic() > deadline:
                return skipped("it has told no readings since")
            await asyncio.sleep(_LOOK)
        length = readings.acceptance_length
        if not readings.draft_tokens_total or length is None:
            return skipped("it does not speculate")
        drafts = next((one.value for one in engine.plan.settings if one.name == "draft_tokens"), None)
        if drafts == 1:
            return skipped("one draft token a step cannot gain two", acceptance_length=length)
        if length < _LEAST_ACCEPTANCE:
            why = f"{length:.2f} tokens a step; {_LEAST_ACCEPTANCE:g} are asked for"
            return failed(why, acceptance_length=length)
        return passed(acceptance_length=length)
