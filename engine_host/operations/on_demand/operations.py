"""Models on demand as the control API tells and changes them."""

import logging
from collections.abc import Callable

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.gateway.directory import Target
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.operations.on_demand.entries import (
    Entries,
    Entry,
    check_launch,
    check_name,
    load_settings,
)
from engine_host.operations.on_demand.loads import OnDemandModels
from engine_host.operations.performs import performs
from engine_host.operations.plans import PlanOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.protocol.base import Severity
from engine_host.protocol.endpoint.on_demand import (
    DEFAULT_KEEP_ALIVE,
    AddOnDemand,
    LoadOnDemand,
    OnDemandChange,
    OnDemandDetail,
    OnDemandModel,
    OnDemandPage,
    OnDemandState,
)
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest
from engine_host.protocol.operations import endpoint as endpoint_ops

_log = logging.getLogger(__name__)
_MINUTE = 60
# What stands in the way now may be gone when a request comes.
_OF_NOW = {"no_room_beside", "name_taken", "vram_held", "port_in_use"}


class OnDemandOperations:
    """The models that requests may load: listed, added, removed, loaded and ended."""

    def __init__(
        self,
        entries: Entries,
        models: OnDemandModels,
        plans: PlanOperations,
        consents: PresetConsents,
        events: EventLog,
        shown: Callable[[LaunchPlan], Target],
    ) -> None:
        """`shown` is how the endpoint lists what a plan starts."""
        self._entries = entries
        self._models = models
        self._plans = plans
        self._consents = consents
        self._events = events
        self._shown = shown

    async def open(self, *, loads: bool) -> None:
        """Take in what was saved; with `loads`, load what is to come with the host.

        A model that cannot be planned now is known with its problem.
        """
        for entry in self._entries.read():
            self._models.put(entry, command_of(entry), None)
        for entry in self._entries.read():
            target, problem = None, None
            try:
                target = self._shown(await self._planned(entry.launch))
            except HostError as error:
                problem = error.problem
                _log.warning("%s cannot be loaded on demand: %s", entry.name, problem.sentence())
            except OSError as error:
                problem = Problem(
                    reason=Reason.MODEL_FILE_MISSING, message=tr("It cannot be read: {error}.", error=error)
                )
            if self._is_still(entry):
                self._models.put(entry, command_of(entry), target, problem)
                if loads and entry.at_start and target is not None:
                    self._models.leave(self._models.join(entry.name), goes_on=True)

    @performs(endpoint_ops.ON_DEMAND)
    def page(self) -> OnDemandPage:
        """Return every model as it is now."""
        return OnDemandPage(seq=self._events.seq, models=self._models.all())

    @performs(endpoint_ops.ON_DEMAND_MODEL)
    async def get(self, name: str) -> OnDemandDetail:
        """Return one with the settings that a load may be given. Raises HostError(not_found)."""
        model = self._models.get(name)
        plan = await self._planned(model.launch)
        return OnDemandDetail(model=model, settings=load_settings(model.launch, plan))

    @performs(endpoint_ops.ADD_ON_DEMAND)
    async def add(self, asked: AddOnDemand) -> OnDemandModel:
        """Let requests load a model; one of the same name is replaced.

        Raises HostError: what planning raises, setting_invalid, consent_needed, and what saving raises.
        """
        check_launch(asked.launch)
        plan = await self._planned(asked.launch)
        check_name(plan.name)
        launch = asked.launch.model_copy(update={"name": plan.name})
        entry = Entry(
            name=plan.name,
            launch=launch,
            keep_alive=asked.keep_alive,
            pinned=asked.pinned,
            at_start=asked.at_start,
        )
        command = command_of(entry)
        self._consents.check(plan.consent, asked.consent, "its start by a request", command)
        for finding in plan.findings:
            if finding.severity is Severity.ERROR and finding.id not in _OF_NOW:
                raise HostError(
                    finding.reason or Reason.ENGINE_START_FAILED,
                    finding.message,
                    fix=finding.fix,
                    evidence=finding.evidence,
                )
        self._entries.put(entry)
        self._models.put(entry, command, self._shown(plan))
        self._models.announce(entry.name, OnDemandChange.ADDED)
        return self._models.get(entry.name)

    @performs(endpoint_ops.REMOVE_ON_DEMAND)
    def remove(self, name: str) -> OnDemandPage:
        """Let no request load it any more. Raises HostError(not_found), and what saving raises."""
        self._models.entry(name)
        self._entries.remove(name)
        self._models.remove(name)
        return self.page()

    @performs(endpoint_ops.LOAD_ON_DEMAND)
    async def load(self, name: str, asked: LoadOnDemand) -> OnDemandModel:
        """Load one as a request would; the answer does not wait for it.

        Raises HostError(not_found), HostError(setting_invalid), and HostError(conflict) where other settings
        are wanted of one that is loaded.
        """
        model = self._models.get(name)
        other = asked.overrides != Overrides()
        if model.state is OnDemandState.LOADED and other and await self._has(model, asked.overrides):
            other = False
        if model.state is not OnDemandState.LOADABLE and other:
            raise HostError(
                Reason.CONFLICT,
                tr("{name} is {state}, with its own settings.", name=name, state=model.state.value),
                cause="Settings hold from a load until its end.",
                fix=Fix(
                    text="Unload it first, then load it with others.", command=f"sndr on-demand unload {name}"
                ),
            )
        if other:
            await self._planned(_with(model.launch, asked.overrides))
        if model.state is OnDemandState.LOADED:
            if model.engine is not None:
                self._models.touch(model.engine, asked.keep_alive)
            return self._models.get(name)
        load = self._models.join(name, asked.keep_alive, asked.overrides if other else None)
        self._models.leave(load, goes_on=True)
        return self._models.get(name)

    @performs(endpoint_ops.UNLOAD_ON_DEMAND)
    def unload(self, name: str) -> OnDemandModel:
        """Drain and stop one. Raises HostError(not_found), HostError(conflict) for one started by hand."""
        self._models.end(name)
        return self._models.get(name)

    async def _has(self, model: OnDemandModel, overrides: Overrides) -> bool:
        """Return True if a load with these settings would be as the one that runs."""
        engine = self._models.running(model.name)
        if engine is None:
            return False
        wanted = await self._planned(_with(model.launch, overrides))
        given = overrides.model_dump(exclude_none=True)
        planned, runs = (
            {setting.name: setting.value for setting in plan.settings if setting.name in given}
            for plan in (wanted, engine.plan)
        )
        # An engine may have got less than was planned for it, and is asked for just that.
        if planned.get("context") == engine.context:
            runs["context"] = engine.context
        return bool(planned) and planned == runs

    async def _planned(self, launch: LaunchRequest) -> LaunchPlan:
        """The plan of a load as it would be beside what runs."""
        return await self._plans.plan(launch.model_copy(update={"instead_of": ()}))

    def _is_still(self, entry: Entry) -> bool:
        """Return True unless an entry was replaced or removed meanwhile."""
        try:
            return self._models.entry(entry.name) == entry
        except HostError:
            return False


def command_of(entry: Entry) -> str:
    """Return the command line that adds an entry."""
    words = equivalent_command(entry.launch, ("on-demand", "add"))
    if entry.keep_alive != DEFAULT_KEEP_ALIVE:
        minutes = entry.keep_alive if entry.keep_alive < 0 else entry.keep_alive / _MINUTE
        words += f" --keep-alive {minutes:g}"
    words = f"{words} --pin" if entry.pinned else words
    return f"{words} --at-start" if entry.at_start else words


def _with(launch: LaunchRequest, overrides: Overrides) -> LaunchRequest:
    """Return a start with other settings where they are given."""
    given = overrides.model_dump(exclude_none=True)
    return launch.model_copy(update={"overrides": launch.overrides.model_copy(update=given)})
