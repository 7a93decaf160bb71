"""Engines: started from plans, watched, stopped."""

import shlex
from collections.abc import Callable

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.engines.beginnings import is_unplanned, names_nothing, unplanned
from engine_host.engines.last_ran import LastRan
from engine_host.engines.manager import EngineManager
from engine_host.engines.unstartable import refuse_unstartable
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.launch.replacing import refuse_namesake, refuse_replacing
from engine_host.operations.performs import performs
from engine_host.operations.plans import PlanOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.protocol.engines import Engine, EnginePage, StopEngine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest, StartRequest
from engine_host.protocol.operations import table as ops


class EngineOperations:
    """Starts of plans, and the engines that came of them."""

    def __init__(
        self,
        engines: EngineManager,
        plans: PlanOperations,
        refuse_others: Callable[[], None],
        events: EventLog,
        consents: PresetConsents,
        last_ran: LastRan,
    ) -> None:
        """`refuse_others` raises while no other start may come in."""
        self._last_ran = last_ran
        self._consents = consents
        self._engines = engines
        self._plans = plans
        self._refuse_others = refuse_others
        self._events = events

    @performs(ops.ENGINES)
    def page(self) -> EnginePage:
        """Return every engine, and the one that ran last."""
        return EnginePage(
            seq=self._events.seq, engines=tuple(self._engines.all()), last=self._last_ran.engine
        )

    @performs(ops.START)
    async def start(self, asked: StartRequest) -> Engine:
        """Start a plan.

        Raises HostError: plan_stale, not_found, conflict while a bisection runs or, without `replace`, an
        engine; consent_needed for a preset from somebody else.
        """
        # A bisection's own engine would make the plan stale, and hide why nothing can start.
        self._refuse_others()
        plan = await self._plans.fresh(asked.plan)
        command = f"sndr launch {shlex.quote(plan.preset)}"
        self._consents.check(plan.consent, asked.consent, "its first start", command)
        plan = plan.model_copy(update={"consent": None})
        # Nothing is awaited from here to the start: no other start can come in between.
        self._refuse_others()
        refuse_namesake(plan, self._engines.alive())
        if not asked.replace:
            refuse_replacing(plan, self._engines.alive())
        try:
            return self._engines.start(plan)
        except HostError as error:
            # What is merely in the way of another engine has not failed.
            if not plan.startable and error.reason is not Reason.CONFLICT:
                self._engines.refused(plan, error.problem)
            raise

    @performs(ops.REFUSED)
    async def refused(self, asked: LaunchRequest) -> Engine:
        """Remember a start that somebody asked for and whose plan is refused, as one that failed.

        It is planned once more here, so that what is remembered is what is so. Raises HostError: conflict
        for one that can start, or that another engine is in the way of, and what planning raises where
        nothing is called so: a mistake in a name is no engine that failed.
        """
        try:
            plan = await self._plans.plan(asked)
        except HostError as error:
            if names_nothing(asked, error.problem):
                raise
            return self._engines.refused(unplanned(asked, equivalent_command(asked)), error.problem)
        try:
            refuse_unstartable(plan.model_copy(update={"consent": None}))
        except HostError as error:
            if error.reason is Reason.CONFLICT:
                raise
            return self._engines.refused(plan, error.problem)
        raise HostError(
            Reason.CONFLICT,
            tr("The start of {plan} is not refused.", plan=plan.name),
            cause="Only a start that cannot work is kept as a refused one, and its plan says that it can.",
            fix=Fix(text="Start it.", command=plan.command),
        )

    def start_planned(self, plan: LaunchPlan) -> Engine:
        """Start a plan that was made a moment ago, for a request.

        Raises HostError(consent_needed) for a preset that changed since somebody consented, and conflict
        while a bisection runs.
        """
        self._refuse_others()
        command = f"sndr launch {shlex.quote(plan.preset)}"
        self._consents.check(plan.consent, None, "its start by a request", command)
        return self._engines.start(plan.model_copy(update={"consent": None}))

    @performs(ops.ENGINE)
    def get(self, engine_id: str) -> Engine:
        """Return one engine by id or public name. Raises HostError(not_found)."""
        return self._engines.get(engine_id)

    @performs(ops.PLAN_AGAIN)
    async def plan_again(self, engine_id: str) -> LaunchPlan:
        """Plan the start of an engine once more, in its place while it runs.

        Raises HostError: not_found, also where the start is not known any more, and what planning raises.
        """
        engine = self._engines.get(engine_id)
        try:
            request = self._plans.request(engine.plan.id)
        except HostError as error:
            raise _not_again(engine) from error
        running = any(one.id == engine.id for one in self._engines.alive())
        # Under its own name, also where the model's would be another one by now.
        update = {"instead_of": (engine.id,) if running else (), "name": engine.name}
        return await self._plans.plan(request.model_copy(update=update))

    @performs(ops.STOP)
    def stop(self, engine_id: str, asked: StopEngine) -> Engine:
        """Drain and stop an engine, or end it at once. Raises HostError(not_found)."""
        return self._engines.stop(engine_id, now=asked.now, drain=asked.wait)


def _not_again(engine: Engine) -> HostError:
    """Return why an engine's start cannot be planned once more: it was refused, or is not known any more."""
    if is_unplanned(engine.plan) and engine.problem is not None:
        return HostError(
            Reason.ENGINE_UNUSABLE,
            tr(
                "{engine} never started, so it cannot be started again: {message}",
                engine=engine.name,
                message=engine.problem.message,
            ),
            cause=engine.problem.cause,
            fix=engine.problem.fix or Fix(text="Try that start once more.", command=engine.plan.command),
            evidence={"engine": engine.id, "refused": engine.problem.reason.value},
        )
    return HostError(
        Reason.NOT_FOUND,
        tr("How {engine} was started is not known any more.", engine=engine.name),
        cause="The engine host was started anew since then." if engine.adopted else "",
        fix=Fix(text="Start it with its own command.", command=engine.plan.command),
        evidence={"engine": engine.id, "plan": engine.plan.id},
    )
