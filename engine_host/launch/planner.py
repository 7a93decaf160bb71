"""Launch plans: made by the engine that a model is for, kept, and refused once they are stale."""

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from engine_host._errors import HostError
from engine_host.launch.llamacpp_plan import LlamaCppPlans
from engine_host.launch.surroundings import Surroundings
from engine_host.launch.vllm_plan import VllmPlans
from engine_host.library.shelf import ShelvedModel
from engine_host.protocol.errors import Reason
from engine_host.protocol.plans import EngineKind, LaunchPlan, LaunchRequest

_KEPT = 200
GGUF = ("GGUF",)
CHECKPOINTS = ("safetensors", "shape")
# What each engine reads; with no engine named, the model that is listed first is meant.
_FORMATS = {EngineKind.AUTO: (), EngineKind.LLAMA_CPP: GGUF, EngineKind.VLLM: CHECKPOINTS}


class EnginePlans(Protocol):
    """The plans of one kind of engine."""

    async def make(self, plan_id: str, request: LaunchRequest, model: ShelvedModel) -> LaunchPlan:
        """The plan of a request. Raises HostError."""

    async def fingerprint(self, plan: LaunchPlan, request: LaunchRequest, model: ShelvedModel) -> str:
        """What the plan would be known by if it were made now. Raises HostError, OSError."""


@dataclass(frozen=True)
class _Kept:
    plan: LaunchPlan
    request: LaunchRequest


class Planner:
    """Makes plans and keeps the newest ones."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._makers: dict[EngineKind, EnginePlans] = {
            EngineKind.LLAMA_CPP: LlamaCppPlans(surroundings),
            EngineKind.VLLM: VllmPlans(surroundings),
        }
        self._plans: OrderedDict[str, _Kept] = OrderedDict()

    def get(self, plan_id: str) -> LaunchPlan:
        """A plan by id. Raises HostError(not_found)."""
        return self._kept(plan_id).plan

    def request(self, plan_id: str) -> LaunchRequest:
        """What a plan was made from. Raises HostError(not_found)."""
        return self._kept(plan_id).request

    async def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Resolve a request into a plan.

        Raises HostError when there is no such model or engine, or when the engine refuses a setting.
        """
        if not request.model:
            raise HostError(
                Reason.BAD_REQUEST,
                "Neither a model nor a preset is named.",
                fix="Give one of them.",
                evidence={"field": "model"},
            )
        model = await self._around.find_model(request.model, _FORMATS[request.engine])
        kind = request.engine
        if kind is EngineKind.AUTO:
            kind = EngineKind.VLLM if model.file.format in CHECKPOINTS else EngineKind.LLAMA_CPP
        plan = await self._makers[kind].make(f"plan-{secrets.token_hex(4)}", request, model)
        self._plans[plan.id] = _Kept(plan, request)
        while len(self._plans) > _KEPT:
            self._plans.popitem(last=False)
        return plan

    async def fresh(self, plan_id: str) -> LaunchPlan:
        """The plan, if the model, the engine and the patches are still what they were when it was made.

        Raises HostError(plan_stale), HostError(not_found).
        """
        kept = self._kept(plan_id)
        plan = kept.plan
        model = await self._around.find_model(plan.model_path, ())
        try:
            fingerprint = await self._makers[EngineKind(plan.engine)].fingerprint(plan, kept.request, model)
        except OSError:
            fingerprint = ""  # It went away between the look at it and now.
        if fingerprint != plan.fingerprint:
            raise HostError(
                Reason.PLAN_STALE,
                "The model, the engine or its patches changed since this plan was made.",
                fix="Look at the new plan and start that.",
                evidence={"plan": plan_id},
            )
        return plan

    def _kept(self, plan_id: str) -> _Kept:
        if plan_id not in self._plans:
            raise HostError(Reason.NOT_FOUND, f"There is no plan {plan_id}.", fix="Make the plan again.")
        return self._plans[plan_id]
