"""A start that would end engines which run: what ends, what is under way there, and how both can run."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.base import Severity
from engine_host.protocol.engines import EngineState
from engine_host.protocol.language import ntr, tr
from engine_host.protocol.launch.plans import EngineRef, LaunchPlan, LaunchRequest
from engine_host.protocol.operations import table as ops
from sndr_gui.host.choice import LIVE_STATES, STARTING_STATES
from sndr_gui.host.state import HostState
from sndr_gui.kit.formats import listed

_LEAVING = (EngineState.DRAINING, EngineState.STOPPING)


@dataclass(frozen=True)
class Replacement:
    """One start that waits for a yes to the end of `ended`.

    `beside` is the same start under a free name, with nothing ended; where there is none, `why` says so.
    """

    plan: LaunchPlan
    ended: tuple[EngineRef, ...]
    request: LaunchRequest
    beside: LaunchPlan | None = None
    why: str = ""

    @property
    def names(self) -> str:
        """The engines that end, in words."""
        return listed([ref.name for ref in self.ended])

    def under_way(self, state: HostState) -> tuple[str, ...]:
        """Return what each of the engines is doing right now, a sentence each."""
        return tuple(_doing(state, ref) for ref in self.ended)

    def both(self, state: HostState) -> str:
        """Return how both can run, or why they cannot."""
        plan = self.beside
        if plan is None:
            return self.why
        here = state.host.gpus if state.host is not None else ()
        gpus = [str(gpu.index) for gpu in here if gpu.uuid in plan.gpus]
        if len(here) > 1 and gpus:
            return tr(
                "Both can run: this one as {name}, on GPU {gpus}.", name=plan.name, gpus=", ".join(gpus)
            )
        return tr("Both can run: this one as {name}, beside it.", name=plan.name)


def not_agreed(state: HostState, plan: LaunchPlan, agreed: Container[str]) -> tuple[EngineRef, ...]:
    """Return the engines that a start ends, that run, and whose end nobody agreed to."""
    known = state.engines
    return tuple(
        ref
        for ref in plan.instead_of
        if ref.id not in agreed
        # One that was started elsewhere a moment ago may not be known here yet.
        and (ref.id not in known or known[ref.id].state in LIVE_STATES.difference(_LEAVING))
    )


def idle_ones(state: HostState, plan: LaunchPlan) -> frozenset[str]:
    """Return the ids of the engines that a start ends and that answer nothing right now."""
    busy = {engine.id for engine in state.live if engine.state is EngineState.BUSY}
    return frozenset(
        ref.id for ref in plan.instead_of if ref.id not in busy and not state.open_requests(ref.id)
    )


async def replacement(
    client: AsyncControlClient, plan: LaunchPlan, request: LaunchRequest, ended: tuple[EngineRef, ...]
) -> Replacement:
    """Return the question about a start, with the same start beside the engines where that is possible."""
    asked = request.model_copy(update={"instead_of": ()})
    found: LaunchPlan | None = None
    # To keep both is an offer: where it cannot be planned, the question stands without it.
    with suppress(HostError):
        found = await client.call(ops.PLAN, asked)
        free = next((one.evidence.get("free") for one in found.findings if one.id == "name_taken"), None)
        if isinstance(free, str):
            asked = asked.model_copy(update={"name": free})
            found = await client.call(ops.PLAN, asked)
        if not found.startable and asked.gpus:
            elsewhere = await client.call(ops.PLAN, asked.model_copy(update={"gpus": ()}))
            found = elsewhere if elsewhere.startable else found
    if found is None or found.startable:
        return Replacement(plan, ended, request, beside=found)
    worst = next(one for one in found.findings if one.severity is Severity.ERROR)
    return Replacement(plan, ended, request, why=tr("Both cannot run now: {why}", why=worst.message))


def _doing(state: HostState, ref: EngineRef) -> str:
    engine = state.engines.get(ref.id)
    count = state.open_requests(ref.id)
    if engine is None or engine.state not in LIVE_STATES:
        return tr("{name} has ended meanwhile.", name=ref.name)
    if count:
        return ntr(
            "{name} is answering {n} request: what is not finished in a few seconds is cut off.",
            "{name} is answering {n} requests: what is not finished in a few seconds is cut off.",
            count,
            name=ref.name,
        )
    if engine.state is EngineState.BUSY:
        return tr("{name} is answering: what is not finished in a few seconds is cut off.", name=ref.name)
    if engine.state in STARTING_STATES:
        return tr("{name} is still starting.", name=ref.name)
    return tr("{name} is ready and answers nothing right now.", name=ref.name)
