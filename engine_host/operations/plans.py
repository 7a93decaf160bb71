"""Launch plans: made by the engine that a model is for, kept, and refused once they are stale."""

import asyncio
import secrets
import shlex
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.launch.dependencies import PlannerDependencies
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.launch.fingerprints import (
    MEMORY_FINDINGS,
    InputFingerprints,
    PlanInputs,
    PlanResult,
    changed,
    fingerprint,
    gpus_fingerprint,
    worse,
)
from engine_host.launch.placement import (
    FoundMemory,
    Placement,
    found_memory,
    name_taken,
    no_room_beside,
    nothing_to_end,
    place,
    references,
    shares_processor,
)
from engine_host.launch.plans.llamacpp import LlamaCppPlans
from engine_host.launch.plans.vllm import CHECKPOINTS, VllmPlans
from engine_host.launch.preflight.machine import ports
from engine_host.launch.preflight.preset import other_versions
from engine_host.launch.replacing import replaced
from engine_host.launch.resolution import PresetStart
from engine_host.library.index import IndexedModel
from engine_host.operations.performs import performs
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind, Finding, LaunchPlan, LaunchRequest
from engine_host.protocol.operations import table as ops

_KEPT = 200
GGUF = ("GGUF",)
# What each engine reads; with no engine named, the model that is listed first is meant.
_FORMATS = {EngineKind.AUTO: (), EngineKind.LLAMA_CPP: GGUF, EngineKind.VLLM: CHECKPOINTS}


class EnginePlans(Protocol):
    """The plans of one kind of engine."""

    async def make(self, asked: PlanInputs, placement: Placement, found: FoundMemory) -> PlanResult:
        """The plan of a request beside the engines that go on. Raises HostError, OSError."""

    def again(self, plan: LaunchPlan, request: LaunchRequest) -> LaunchRequest:
        """The request that makes the same plan, where an engine was chosen for it."""


@dataclass(frozen=True)
class _Kept:
    plan: LaunchPlan
    request: LaunchRequest
    fingerprints: InputFingerprints


class PlanOperations:
    """Answers `/v1/plans`: makes plans and keeps the newest ones."""

    def __init__(self, dependencies: PlannerDependencies) -> None:
        self._dependencies = dependencies
        self._makers: dict[EngineKind, EnginePlans] = {
            EngineKind.LLAMA_CPP: LlamaCppPlans(dependencies),
            EngineKind.VLLM: VllmPlans(dependencies),
        }
        self._plans: OrderedDict[str, _Kept] = OrderedDict()

    @performs(ops.PLANNED)
    def get(self, plan_id: str) -> LaunchPlan:
        """A plan by id. Raises HostError(not_found)."""
        return self._kept(plan_id).plan

    def request(self, plan_id: str) -> LaunchRequest:
        """Return the request of a plan. Raises HostError(not_found)."""
        return self._kept(plan_id).request

    @performs(ops.PLAN)
    async def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Resolve a request into a plan.

        Raises HostError when there is no such model or engine, or when the engine refuses a setting.
        """
        result = await self._make(f"plan-{secrets.token_hex(4)}", request)
        self._plans[result.plan.id] = _Kept(result.plan, request, result.fingerprints)
        while len(self._plans) > _KEPT:
            self._plans.popitem(last=False)
        return result.plan

    async def fresh(self, plan_id: str) -> LaunchPlan:
        """The plan, if everything that it was made from is as it was, and there is as much room for it.

        Raises HostError(plan_stale) that names what changed, HostError(not_found), and what making a plan
        raises.
        """
        kept = self._kept(plan_id)
        plan, request = kept.plan, kept.request
        if request.preset is None:
            request = request.model_copy(update={"model": plan.model_path})
        try:
            now = await self._make(plan_id, self._makers[EngineKind(plan.engine)].again(plan, request))
        except OSError as error:
            # It went away between the look at it and now.
            raise _stale(plan_id, tr("The model or the engine is gone.")) from error
        found = changed(kept.fingerprints, now.fingerprints)
        if found:
            what = " and ".join((", ".join(found[:-1]), found[-1])) if found[1:] else found[0]
            message = tr(
                "{what}{what2} changed since this plan was made.", what=what[:1].upper(), what2=what[1:]
            )
            raise _stale(plan_id, message, changed=list(found))
        if (finding := worse(plan.findings, now.plan.findings)) is not None:
            raise _stale(
                plan_id,
                tr("Since this plan was made: {message}", message=finding.message),
                finding=finding.id,
            )
        if more := [ref.name for ref in now.plan.instead_of if ref not in plan.instead_of]:
            message = tr(
                "Since this plan was made, {more} was started, which it would end.", more=" and ".join(more)
            )
            raise _stale(plan_id, message, instead_of=more)
        return plan

    async def _make(self, plan_id: str, request: LaunchRequest) -> PlanResult:
        """A plan with everything that it is made from."""
        preset = None
        if request.preset is not None:
            preset = await self._dependencies.find_preset(request)
        elif not request.model:
            raise HostError(
                Reason.BAD_REQUEST,
                "Neither a model nor a preset is named.",
                cause="A plan is of one model with its settings.",
                fix="Give one of them.",
                evidence={"field": "model"},
            )
        name = request.model if preset is None else preset.model
        kind = request.engine if preset is None else EngineKind(preset.resolved.engine.value)
        model = await self._find(name, kind, preset)
        if kind is EngineKind.AUTO:
            kind = EngineKind.VLLM if model.file.format in CHECKPOINTS else EngineKind.LLAMA_CPP
        running = self._dependencies.running()
        placement = place(request.name or model.file.name, request.instead_of, running)
        found = await asyncio.to_thread(self._found, placement, model.file.path)
        asked = PlanInputs(plan_id, request, model, preset)
        result = await self._makers[kind].make(asked, placement, found)
        gpus, state = found.gpus, found.state
        fingerprints = {**result.fingerprints, **gpus_fingerprint(gpus, state.driver)}
        update: dict[str, Any] = {
            "findings": (
                *_of_room(request, result, placement, found),
                *ports(state),
                *_hidden(result.plan.name, self._dependencies.route(result.plan.name)),
            ),
            "changes": () if not placement.ended else result.plan.changes,
            "instead_of": references(placement.ended),
            "beside": references(placement.beside),
            "command": equivalent_command(request, instead_of=placement.names),
        }
        if preset is not None:
            fingerprints["the preset"] = preset.mark
            update["preset"] = preset.resolved.preset.id
            update["consent"] = preset.consent
            update["findings"] = (
                *preset.findings,
                *update["findings"],
                *other_versions(preset.resolved.preset, result.plan.server_version),
            )
        update["findings"] = tuple(_with_command(one, request, placement.names) for one in update["findings"])
        update["fingerprint"] = fingerprint(fingerprints)
        return PlanResult(result.plan.model_copy(update=update), fingerprints)

    def _found(self, placement: Placement, model_path: str) -> FoundMemory:
        """The memory as this start finds it."""
        sources = self._dependencies
        return found_memory(
            placement, model_path, sources.free_memory(), sources.gpus(), sources.machine(), sources.held
        )

    async def _find(self, name: str, kind: EngineKind, preset: PresetStart | None) -> IndexedModel:
        try:
            return await self._dependencies.find_model(name, _FORMATS[kind])
        except HostError as error:
            missing = error.reason is Reason.MODEL_FILE_MISSING and preset is None
            if not missing or not await self._dependencies.is_preset(name):
                raise
            raise HostError(
                Reason.MODEL_FILE_MISSING,
                tr("{name} is a preset, and no model of this machine is called so.", name=name),
                cause="A preset has a command of its own, which brings its settings too.",
                fix=Fix(text="Start the preset.", command=f"sndr launch {name}"),
                evidence={"wanted": name},
            ) from error

    def _kept(self, plan_id: str) -> _Kept:
        if plan_id not in self._plans:
            raise HostError(
                Reason.NOT_FOUND,
                tr("There is no plan {plan_id}.", plan_id=plan_id),
                cause=tr("The newest {kept} are kept, and while the host runs.", kept=_KEPT),
                fix="Make the plan again.",
            )
        return self._plans[plan_id]


def _of_room(
    request: LaunchRequest, result: PlanResult, placement: Placement, found: FoundMemory
) -> tuple[Finding, ...]:
    """The findings of a plan with what the engines beside it mean for it."""

    def instead_of(ended: Sequence[str]) -> str:
        return equivalent_command(request.model_copy(update={"instead_of": tuple(ended)}))

    def as_named(name: str) -> str:
        return equivalent_command(request.model_copy(update={"name": name}), instead_of=placement.names)

    findings = [
        *replaced(placement.ended),
        *nothing_to_end(placement),
        *shares_processor(result.plan.needs, placement),
        *name_taken(result.plan.name, placement, as_named),
    ]
    lacking = no_room_beside(result.short, placement, found, instead_of)
    if lacking is None:
        return (*findings, *result.plan.findings)
    # It says what these say, and what helps.
    others = [one for one in result.plan.findings if one.id not in MEMORY_FINDINGS]
    return (*findings, lacking, *others)


def _hidden(name: str, led_to: Sequence[str]) -> tuple[Finding, ...]:
    """The finding that requests for a start's name would go elsewhere."""
    if not led_to or name in led_to:
        return ()
    word = shlex.quote(name)
    return (finding("route.takes_name", route=name, targets=list(led_to), route_word=word),)


def _with_command(one: Finding, request: LaunchRequest, instead_of: Sequence[str]) -> Finding:
    """The finding with the command of the start that its settings make, where it names none of its own."""
    fix = one.fix
    if fix is None or not fix.settings or fix.command:
        return one
    given = request.overrides.model_copy(update=fix.settings)
    command = equivalent_command(request.model_copy(update={"overrides": given}), instead_of=instead_of)
    return one.model_copy(update={"fix": fix.model_copy(update={"command": command})})


def _stale(plan_id: str, message: str, **evidence: object) -> HostError:
    return HostError(
        Reason.PLAN_STALE,
        message,
        cause="What is started is what was looked at, and that changed since.",
        fix="Look at the new plan and start that.",
        evidence={"plan": plan_id} | evidence,
    )
