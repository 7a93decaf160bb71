"""The job that finds the patch which makes a start fail a check."""

import contextlib
import math
import shlex
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from engine_host.core.errors import HostError, consent_needed
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.engines.manager import EngineManager
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.launch.replacing import refuse_replacing
from engine_host.operations.patches.bisect_check import Judgement, StartCheck, Subject
from engine_host.operations.performs import performs
from engine_host.operations.plans import PlanOperations
from engine_host.overlay.bisect import culprits
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.language import ntr, tr
from engine_host.protocol.launch.plans import (
    BisectRequest,
    BisectResult,
    BisectTrial,
    BisectVerdict,
    LaunchPlan,
    LaunchRequest,
)
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import BisectCheck, PatchChoice

_TOUCHES = "bisection"
_SERVING = {EngineState.READY, EngineState.BUSY}


@dataclass(frozen=True)
class EndpointAddress:
    """The endpoint's address for a command of the person's, and a key for it where keys are required."""

    url: str
    key: str | None = None


class BisectOperations:
    """Starts bisections, one at a time."""

    def __init__(
        self,
        jobs: JobRunner,
        engines: EngineManager,
        plans: PlanOperations,
        door: Callable[[], EndpointAddress],
    ) -> None:
        self._jobs = jobs
        self._engines = engines
        self._plans = plans
        self._door = door

    def refuse_others(self) -> None:
        """Raises HostError(conflict) while a bisection or a sweep runs: another start would end its own."""
        for job in self._jobs.all():
            bisects = job.kind is JobKind.PATCH_BISECT and not job.ended
            if bisects or (job.kind is JobKind.BENCH_SWEEP and job.state is JobState.RUNNING):
                raise HostError(
                    Reason.CONFLICT,
                    tr("A {what} is under way.", what=tr("bisection") if bisects else tr("sweep")),
                    cause="Another start would take memory from its own, and change what comes of them.",
                    fix=Fix(text="Wait for its end, or cancel it.", command=f"sndr jobs cancel {job.id}"),
                    evidence={"job": job.id},
                )

    @performs(ops.BISECT_PATCHES)
    async def start(self, asked: BisectRequest) -> Job:
        """Find the culprit as a job.

        Raises HostError: conflict while another bisection runs and where a trial would end an engine that was
        not named, bad_request for a check that cannot be run, unsupported for a start without patches,
        consent_needed, and what planning the start raises.
        """
        self.refuse_others()
        check = StartCheck(asked.check)
        plan = await self._plans.plan(asked.launch)
        if plan.consent is not None:
            raise consent_needed(plan.consent, tr("its first start"), f"sndr launch {plan.preset}")
        if asked.launch.instead_of is None:
            refuse_replacing(plan, self._engines.alive())
        suspects = _suspects(plan)
        if not suspects:
            raise HostError(
                Reason.UNSUPPORTED,
                tr("A start of {plan} has no patch that could be left out.", plan=plan.name),
                cause="Patches are for vLLM." if plan.patches is None else "",
                fix="See which patches it would get: `sndr patches plan MODEL`.",
                evidence={"engine": plan.engine, "model": plan.model},
            )
        # A trial that is kept would outlive the host that compares it.
        request = asked.launch.model_copy(update={"keep": False})
        if request.preset is not None:
            # A preset has patches of its own, which the request does not name.
            request = request.model_copy(update={"patches": plan.choice})
        run = _Bisection(self._jobs, self._engines, self._plans, self._door, request, check)
        return self._jobs.start(
            JobKind.PATCH_BISECT,
            tr("Find the patch that breaks {plan}", plan=plan.name),
            _TOUCHES,
            _command(asked),
            lambda control: run.run(control, plan),
        )


class _Bisection:
    """One run: starts with sets of patches until the culprits are known."""

    def __init__(
        self,
        jobs: JobRunner,
        engines: EngineManager,
        plans: PlanOperations,
        door: Callable[[], EndpointAddress],
        request: LaunchRequest,
        check: StartCheck,
    ) -> None:
        self._jobs = jobs
        self._engines = engines
        self._plans = plans
        self._door = door
        self._request = request
        self._check = check
        self._trials: list[BisectTrial] = []
        self._runs: Engine | None = None
        self._of = 0

    async def run(self, control: JobControl, plan: LaunchPlan) -> dict[str, Any]:
        """The work of the job. Raises HostError when a start could not be judged at all."""
        suspects = _suspects(plan)
        assert plan.patches is not None
        # What the search usually takes: none, all, halves, the culprit alone, all others.
        self._of = 4 + math.ceil(math.log2(len(suspects)))
        try:
            result = await self._search(control, suspects, plan.patches.required)
        except BaseException:
            await self._stop()
            raise
        if result.engine is None:
            await self._stop()
        return result.model_dump(mode="json")

    async def _search(
        self, control: JobControl, suspects: tuple[str, ...], required: tuple[str, ...]
    ) -> BisectResult:
        async def fails(chosen: tuple[str, ...]) -> bool:
            return not await self._try(control, (*required, *chosen), len(chosen), len(suspects))

        if await fails(()):
            why = self._trials[-1].why
            return self._result(
                BisectVerdict.NOT_PATCHES,
                tr("The patches are not the cause: without them the check fails as well ({why}).", why=why),
            )
        if not await fails(suspects):
            return self._result(
                BisectVerdict.NO_FAILURE,
                tr("Nothing to find: with all {count} patches the check passes.", count=len(suspects)),
            )
        found = await culprits(suspects, fails)
        guilty = {name for together in found for name in together}
        # The newest start is the one without them, unless that set was tried before.
        rest = tuple(name for name in suspects if name not in guilty)
        if set(self._trials[-1].patches) != {*required, *rest} or not self._trials[-1].passed:
            await fails(rest)
        named = "; ".join(" together with ".join(together) for together in found)
        return self._result(
            BisectVerdict.FOUND,
            tr(
                "{found}[ {then}]",
                found=ntr("The culprit is {named}.", "The culprits are {named}.", len(guilty), named=named),
                then=ntr("All others passed without it.", "All others passed without them.", len(guilty))
                if self._trials[-1].passed
                else "",
            ),
            culprits=found,
            command=equivalent_command(
                _without(self._request, tuple(name for name in suspects if name in guilty))
            ),
        )

    def _result(
        self,
        verdict: BisectVerdict,
        sentence: str,
        culprits: tuple[tuple[str, ...], ...] = (),
        command: str = "",
    ) -> BisectResult:
        runs = self._runs.id if self._runs is not None and self._trials[-1].passed else None
        return BisectResult(
            verdict=verdict,
            sentence=sentence,
            culprits=culprits,
            trials=tuple(self._trials),
            engine=runs,
            command=command,
        )

    async def _try(self, control: JobControl, patches: tuple[str, ...], count: int, of: int) -> bool:
        number = len(self._trials) + 1
        self._of = max(self._of, number)
        named = tr("with {count} of {of} patches", count=count, of=of)
        control.step(
            number,
            self._of,
            tr("Trial {number}: {named}", number=number, named=named),
            tr("starting the engine"),
        )
        choice = self._request.patches.model_copy(update={"only": patches})
        # The first trial ends what the person named, a later one the trial before it, and none anything else.
        ended = (self._request.instead_of or ()) if self._runs is None else (self._runs.id,)
        update = {"patches": choice, "instead_of": ended}
        plan = await self._plans.plan(self._request.model_copy(update=update))
        began = time.monotonic()
        problem = await self._start(plan)
        if problem is None:
            control.step(
                number, self._of, tr("Trial {number}: {named}", number=number, named=named), tr("checking it")
            )
            judged = await self._judge()
        else:
            judged = Judgement(False, problem.message)
        self._trials.append(
            BisectTrial(
                patches=plan.patches.chosen if plan.patches else (),
                passed=judged.passed,
                why=judged.why,
                reason=problem.reason if problem else None,
                seconds=round(time.monotonic() - began, 3),
            )
        )
        return judged.passed

    async def _start(self, plan: LaunchPlan) -> Problem | None:
        """Start an engine in place of the one before; its problem when it fails to start."""
        self._runs = self._engines.start(plan)
        assert self._runs.job is not None
        job = await self._jobs.ended(self._runs.job)
        if job.state is JobState.DONE:
            return None
        engine = self._engines.get(self._runs.id)
        if engine.state is EngineState.FAILED and engine.problem is not None:
            if engine.problem.reason is Reason.INTERNAL:
                raise HostError.from_problem(engine.problem)
            return engine.problem
        raise self._taken_away()

    async def _judge(self) -> Judgement:
        assert self._runs is not None
        door = self._door()
        engine = self._engines.get(self._runs.id)
        judged = await self._check.judge(
            Subject(engine.name, self._engines.socket(engine), door.url, door.key)
        )
        engine = self._engines.get(engine.id)
        if engine.state is EngineState.FAILED:
            return Judgement(False, engine.problem.message if engine.problem else "it ended")
        if engine.state not in _SERVING:
            raise self._taken_away()
        return judged

    def _taken_away(self) -> HostError:
        return HostError(
            Reason.CANCELLED,
            "The bisection was cut off: somebody stopped its engine or started another.",
            cause=tr("{count} trials had been made.", count=len(self._trials)),
            fix="Start it again, and leave the engine to it.",
            evidence={"engine": self._runs.id if self._runs else None},
        )

    async def _stop(self) -> None:
        """Leave no engine of a trial behind that nobody asked for."""
        if self._runs is None:
            return
        with contextlib.suppress(HostError):
            stopping = self._engines.stop(self._runs.id, now=True)
            if stopping.job is not None:
                await self._jobs.ended(stopping.job)


def _suspects(plan: LaunchPlan) -> tuple[str, ...]:
    """The patches of a start that may be left out, in order of application."""
    if plan.patches is None:
        return ()
    return tuple(name for name in plan.patches.chosen if name not in plan.patches.required)


def _without(request: LaunchRequest, patches: Collection[str]) -> LaunchRequest:
    choice = PatchChoice(
        off=tuple(dict.fromkeys((*request.patches.off, *patches))),
        on=tuple(name for name in request.patches.on if name not in patches),
        only=request.patches.only,
    )
    return request.model_copy(update={"patches": choice})


def _command(asked: BisectRequest) -> str:
    # No trial is kept, and the command has no word for it.
    words = equivalent_command(asked.launch.model_copy(update={"keep": False}), ("patches", "bisect"))
    if asked.check.command is not None:
        return f"{words} -- {shlex.join(asked.check.command)}"
    usual = BisectCheck.model_fields["prompt"].default
    prompt = "" if asked.check.prompt == usual else f" --prompt {shlex.quote(asked.check.prompt)}"
    return f"{words} --check {asked.check.builtin}{prompt}"
