"""The look at free memory when a start's turn has come: it was planned before, and others may have come."""

import asyncio
import time
from collections.abc import Callable, Mapping

from engine_host.core.errors import HostError
from engine_host.core.sizes import size_text
from engine_host.launch.dependencies import PlannerDependencies
from engine_host.launch.fingerprints import MEMORY_FINDINGS
from engine_host.launch.placement import LEAVING, FoundMemory, Placement, found_memory
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan

_PATIENCE = 10.0
_EVERY = 0.25


class RoomCheck:
    """Refuses a start that would not fit beside the engines that run by now."""

    def __init__(
        self, dependencies: PlannerDependencies, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._dependencies = dependencies
        self._clock = clock

    async def __call__(self, plan: LaunchPlan) -> None:
        """Wait until the memory of what ended is back. Raises HostError(out_of_memory) when it is not enough.

        A start without an engine beside it, or one that was warned of its memory, is the person's to try.
        """
        if any(finding.id in MEMORY_FINDINGS for finding in plan.findings):
            return
        end = self._clock() + _PATIENCE
        while True:
            beside = self._beside(plan)
            if not beside:
                return
            found = await asyncio.to_thread(self._found, plan, Placement(beside=beside))
            short = found.missing(plan.needs)
            if not short:
                return
            if self._clock() >= end:
                raise _no_room(plan, beside, short)
            await asyncio.sleep(_EVERY)

    async def shortage(self, plan: LaunchPlan) -> tuple[dict[str, int], FoundMemory]:
        """Return the bytes that a plan misses now, by device, and the memory that it finds.

        What it ends first, and what is being stopped already, counts as free.
        """
        running = self._dependencies.running()
        ended = {ref.id for ref in plan.instead_of}
        others = [one for one in running if one.id not in ended and one.plan.id != plan.id]
        leaving = tuple(one for one in others if one.state in LEAVING)
        placement = Placement(
            ended=tuple(one for one in running if one.id in ended),
            beside=tuple(one for one in others if one not in leaving),
            leaving=leaving,
        )
        found = await asyncio.to_thread(self._found, plan, placement)
        # The planner has looked closer: it knows what is split over several devices.
        told = next((one.evidence for one in plan.findings if one.id == "no_room_beside"), {})
        return found.missing(plan.needs) or dict(told.get("missing_by_device", {})), found

    def _beside(self, plan: LaunchPlan) -> tuple[Engine, ...]:
        """The engines with a process that go on; those that wait for their own turn take nothing yet."""
        ended = {ref.id for ref in plan.instead_of}
        return tuple(
            engine
            for engine in self._dependencies.running()
            if engine.pid is not None and engine.plan.id != plan.id and engine.id not in ended
        )

    def _found(self, plan: LaunchPlan, placement: Placement) -> FoundMemory:
        sources = self._dependencies
        return found_memory(
            placement,
            plan.model_path,
            sources.free_memory(),
            sources.gpus(),
            sources.machine(),
            sources.held,
        )


def _no_room(plan: LaunchPlan, beside: tuple[Engine, ...], short: Mapping[str, int]) -> HostError:
    names = ", ".join(engine.name for engine in beside)
    missing = size_text(max(short.values()))
    return HostError(
        Reason.OUT_OF_MEMORY,
        tr(
            "There is no room for {plan} any more: {missing} are missing (estimated).",
            plan=plan.name,
            missing=missing,
        ),
        cause=tr("{names} runs beside it, and less is free than when it was planned.", names=names),
        fix=Fix(text="See what runs, stop one, and start it again.", command="sndr status"),
        evidence={"missing_by_device": dict(short), "engines": [engine.id for engine in beside]},
    )
