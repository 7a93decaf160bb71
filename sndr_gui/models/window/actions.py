"""The commands to engines and jobs; shared by the pages and the command palette."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.endpoint.on_demand import AddOnDemand
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Backend, Engine, ServerBuild, StopEngine
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.jobs import JobKind
from engine_host.protocol.launch.consents import ConsentNeeded
from engine_host.protocol.launch.plans import (
    EngineKind,
    Finding,
    LaunchPlan,
    LaunchRequest,
    Layer,
    ServerChoice,
    StartRequest,
)
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from sndr_gui.host.session import Session
from sndr_gui.host.state import HostState
from sndr_gui.models.window.replacing import Replacement, not_agreed, replacement


@dataclass(frozen=True)
class PendingConsent:
    """A start that waits for a person's consent to what its files ask for."""

    plan: LaunchPlan
    needed: ConsentNeeded

    @property
    def command(self) -> str:
        """The command line that gives the consent and starts."""
        return f"{self.plan.command} --accept {self.needed.digest}"


class Actions(QObject):
    """Sends the commands, and knows which are under way so that their buttons answer at once.

    Signals:
        asked: a start waits for a person's answer to `question`; with these actions
        changed: what is under way, or the last problem, is new
        started: an engine's start was accepted
        stale: a plan was refused because it is old or no longer known; it has to be made again
    """

    changed = Signal()
    asked = Signal(object)
    started = Signal()
    stale = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._pending: set[str] = set()
        self.problem: Problem | None = None
        self.question: PendingConsent | Replacement | None = None
        self.added_on_demand = ""

    @property
    def state(self) -> HostState:
        """The state of the host that these commands go to."""
        return self._session.state

    def pending(self, name: str) -> bool:
        """Return True while this command was sent and not yet answered."""
        return name in self._pending

    def stopping(self, engine: Engine | None) -> bool:
        """Return True while this engine's stop was sent and not yet answered."""
        return engine is not None and self.pending(f"stop {engine.id}")

    def relaunching(self, engine: Engine | None) -> bool:
        """Return True while this engine is being started again."""
        return engine is not None and self.pending(f"relaunch {engine.id}")

    @property
    def starting(self) -> bool:
        """True while a start was sent and not yet answered."""
        return any(name.partition(" ")[0] in ("start", "relaunch") for name in self._pending)

    def demo_model(self) -> ModelFile | None:
        """Return the bundled model."""
        page = self._session.state.models
        models = page.models if page else ()
        # It is there as a checkpoint too, which only vLLM runs; the GGUF runs everywhere.
        runs = (m for m in models if m.origin is ModelOrigin.BUNDLED and m.problem is None)
        return next((m for m in runs if m.format == "GGUF"), None)

    def start_model(self, model: str) -> None:
        """Plan and start a model as it is."""
        self._start_request(LaunchRequest(model=model))

    def start_preset(self, preset: str) -> None:
        """Plan and start a preset as it is."""
        self._start_request(LaunchRequest(preset=preset))

    def _start_request(self, request: LaunchRequest) -> None:
        async def work(client: AsyncControlClient) -> None:
            await self._start_unless_asked(client, await _planned(client, request), request)

        self._send("start", work)

    def start_plan(self, plan: LaunchPlan, request: LaunchRequest, agreed: Container[str] = ()) -> None:
        """Start a plan of a request; a person agreed to the end of the engines with the ids in `agreed`."""
        self._carry_out(plan, lambda client: self._start_unless_asked(client, plan, request, agreed))

    def start_agreed(self, plan: LaunchPlan, consent: str | None = None) -> None:
        """Start a plan whose ends a person agreed to; `consent` is the digest of what they consent to."""
        self._carry_out(plan, lambda client: self._start(client, plan, consent))

    def _carry_out(self, plan: LaunchPlan, start: Callable[[AsyncControlClient], Awaitable[None]]) -> None:
        async def work(client: AsyncControlClient) -> None:
            try:
                await start(client)
            except HostError as error:
                if error.problem.reason in (Reason.PLAN_STALE, Reason.NOT_FOUND):
                    self.stale.emit()
                raise

        self._send("start", work)

    def add_on_demand(self, launch: LaunchRequest) -> None:
        """Let requests load this start from now on, instead of carrying it out."""

        async def work(client: AsyncControlClient) -> None:
            added = await client.call(endpoint_ops.ADD_ON_DEMAND, AddOnDemand(launch=launch))
            self.added_on_demand = added.name

        self.added_on_demand = ""
        self._send("add on demand", work)

    def relaunch(self, engine: Engine) -> None:
        """Start the same again; planned anew when the machine or the file changed since."""

        request = request_of(engine)

        async def start(client: AsyncControlClient) -> None:
            plan = await _planned(client, request)
            # Who starts an engine again means its end; that of another with its name nobody has spoken of.
            await self._start_unless_asked(client, plan, request, {engine.id})

        async def work(client: AsyncControlClient) -> None:
            try:
                await start(client)
            except HostError as error:
                if error.problem.reason is not Reason.PLAN_STALE:
                    raise
                await start(client)

        self._send(f"relaunch {engine.id}", work)

    async def _start_unless_asked(
        self,
        client: AsyncControlClient,
        plan: LaunchPlan,
        request: LaunchRequest,
        agreed: Container[str] = (),
    ) -> None:
        """Start a plan, or ask first where it ends an engine whose end nobody agreed to."""
        if plan.startable and (ended := not_agreed(self._session.state, plan, agreed)):
            self._ask(await replacement(client, plan, request, ended))
        else:
            await self._start(client, plan)

    def _ask(self, question: PendingConsent | Replacement) -> None:
        self.question = question
        self.asked.emit(self)

    async def _start(self, client: AsyncControlClient, plan: LaunchPlan, consent: str | None = None) -> None:
        if not plan.startable:
            worst = next(finding for finding in plan.findings if finding.severity == "error")
            raise HostError(
                worst.reason or Reason.CONFLICT, worst.message, fix=worst.fix, evidence=worst.evidence
            )
        try:
            started = client.call(ops.START, StartRequest(plan=plan.id, consent=consent))
            engine = await self._session.state.take(started)
        except HostError as error:
            if error.problem.reason is not Reason.CONSENT_NEEDED:
                raise
            # No failure: the person is asked, and may start it with their answer.
            needed = ConsentNeeded.model_validate(error.problem.evidence)
            self._ask(PendingConsent(plan, needed))
            return
        # Whoever starts an engine wants to see it.
        self._session.state.choose(engine)
        self.started.emit()

    def stop(self, engine: Engine, now: bool = False) -> None:
        """Drain and stop an engine."""

        async def work(client: AsyncControlClient) -> None:
            await self._session.state.take(client.call(ops.STOP, StopEngine(now=now), id=engine.id))

        self._send(f"stop {engine.id}", work)

    def build(self, backend: Backend = Backend.AUTO) -> None:
        """Build the engine for this machine."""

        async def work(client: AsyncControlClient) -> None:
            await self._session.state.take(client.call(ops.BUILD_SERVER, ServerBuild(backend=backend)))

        self._send("build", work)

    def measure(self) -> None:
        """Measure the prebuilt engine against the built one."""

        async def work(client: AsyncControlClient) -> None:
            await self._session.state.take(client.call(ops.COMPARE_SERVERS))

        self._send("measure", work)

    def cancel_job(self, job: str) -> None:
        """Cancel a job."""

        async def work(client: AsyncControlClient) -> None:
            await self._session.state.take(client.call(ops.CANCEL_JOB, id=job))

        self._send(f"cancel {job}", work)

    def cancel_start(self, engine: Engine) -> None:
        """Cancel a start at any stage."""
        if engine.job is not None:
            self.cancel_job(engine.job)
        else:
            self.stop(engine, now=True)

    def apply_fix(self, problem: Problem | Finding) -> None:
        """Send the request that a problem's fix carries."""
        if problem.fix is None or problem.fix.action is None:
            return
        action = problem.fix.action

        async def work(client: AsyncControlClient) -> None:
            await client.send(action)

        self._send("apply fix", work)

    def live_job(self) -> str | None:
        """Return the id of the build or measurement under way."""
        job = self._session.state.live_job(JobKind.ENGINE_BUILD, JobKind.ENGINE_COMPARE)
        return job.id if job else None

    def dismiss(self) -> None:
        """Forget the last problem."""
        self.problem = None
        self.changed.emit()

    def _send(self, name: str, work: Callable[[AsyncControlClient], Awaitable[None]]) -> None:
        if name in self._pending:
            return
        self._pending.add(name)
        self.problem = None
        # Tried again: why it failed before no longer holds.
        self._session.notices.withdraw(name)
        self.changed.emit()

        def done() -> None:
            self._pending.discard(name)
            self.changed.emit()

        def failed(error: HostError) -> None:
            if not error.lost:
                self.problem = error.problem
                self._session.notices.problem(name, error.problem)
            else:
                self._session.notices.error(name, str(error))

        self._session.command(name, work, done=done, failed=failed)


async def _planned(client: AsyncControlClient, request: LaunchRequest) -> LaunchPlan:
    """Return the plan of a start; a refusal is kept among the failed starts. Raises HostError."""
    try:
        plan = await client.call(ops.PLAN, request)
    except HostError as error:
        if not error.lost:
            await _keep_refusal(client, request)
        raise
    if not plan.startable:
        await _keep_refusal(client, request)
    return plan


async def _keep_refusal(client: AsyncControlClient, request: LaunchRequest) -> None:
    with suppress(HostError):
        await client.call(ops.REFUSED, request)


def request_of(engine: Engine) -> LaunchRequest:
    """Return the request that led to an engine: its model or preset, its patches, and its overrides."""
    plan = engine.plan
    names = set(Overrides.model_fields)
    given = {
        setting.name: setting.value
        for setting in plan.settings
        if setting.layer is Layer.OVERRIDE and setting.name in names and setting.value is not None
    }
    layers = {setting.name: setting.layer for setting in plan.settings}
    return LaunchRequest(
        model=plan.model,
        preset=plan.preset or None,
        engine=EngineKind(plan.engine),
        server=ServerChoice.AUTO if plan.server is ServerChoice.VENV else plan.server,
        installation=plan.installation if layers.get("installation") is Layer.OVERRIDE else None,
        patches=plan.choice,
        name=plan.name if layers.get("name") is Layer.OVERRIDE else None,
        overrides=Overrides.model_validate(given),
        keep=plan.keep,
        # Named by the person; those that the planner chose are chosen again.
        gpus=plan.gpus if plan.gpus_named else (),
    )
