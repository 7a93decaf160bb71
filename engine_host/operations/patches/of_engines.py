"""The patches of running engines: their ledgers followed, their probes asked, starts without one of them."""

import asyncio
import contextlib
import shutil
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine_host.core.atomic_file import saving_failed
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.engines.manager import EngineManager
from engine_host.operations.performs import performs
from engine_host.operations.plans import PlanOperations
from engine_host.overlay.ledger import LedgerChange, LedgerReader
from engine_host.overlay.probing import probe
from engine_host.overlay.summary import REASONS, process_name, summary
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.events import PatchResultEvent, PatchSummaryEvent
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import (
    EnginePatches,
    PatchOutcome,
    PatchResult,
    PlannedPatches,
    ProcessRole,
)

OVERLAY = "Overlay applied"
# A look costs a listing and a stat for each process; modules may be imported at any time.
_EVERY = 0.2
_KEPT_ENDED = 20
_WENT_WRONG = {PatchOutcome.SKIPPED, PatchOutcome.FAILED, PatchOutcome.REVERTED}


def ledger_folder(run: Path, plan_id: str) -> Path:
    """Return the folder that the processes of one start write to."""
    return run / "ledger" / plan_id


@dataclass
class _Followed:
    engine: Engine
    planned: PlannedPatches
    reader: LedgerReader
    folder: Path
    refused: asyncio.Future[Problem]
    task: asyncio.Task[None] | None = None
    staged: bool = False
    told: dict[tuple[int, str], PatchResult] = field(default_factory=dict)


class EnginePatchTracker:
    """The outcome of the patches of each engine, also after it ended."""

    def __init__(self, events: EventLog, run: Path) -> None:
        self._events = events
        self._run = run
        self._followed: dict[str, _Followed] = {}
        self._last: OrderedDict[str, EnginePatches] = OrderedDict()
        self.stage: Callable[[str, str, str], None] = lambda _engine, _name, _detail: None

    def begin(self, engine: Engine) -> None:
        """An engine is about to be started, or was found again: follow its ledger.

        Raises HostError(not_writable), HostError(disk_full).
        """
        planned = engine.plan.patches
        if planned is None or not planned.chosen:
            return
        folder = ledger_folder(self._run, engine.plan.id)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise saving_failed(folder, error) from error
        followed = _Followed(
            engine,
            planned,
            LedgerReader(folder, planned.chosen),
            folder,
            asyncio.get_running_loop().create_future(),
        )
        self._followed[engine.id] = followed
        followed.task = asyncio.create_task(self._follow(followed), name=f"ledger {engine.id}")

    async def refusal(self, engine_id: str) -> Problem:
        """Waits until a start must end because a required patch is not applied; often forever."""
        followed = self._followed.get(engine_id)
        never: asyncio.Future[Problem] = asyncio.get_running_loop().create_future()
        return await (never if followed is None else asyncio.shield(followed.refused))

    def end(self, engine_id: str) -> None:
        """An engine is gone: the last of its ledger is read, and its folder removed."""
        followed = self._followed.pop(engine_id, None)
        if followed is None:
            return
        if followed.task is not None:
            followed.task.cancel()
        self._tell(followed, followed.reader.read())
        self._last[engine_id] = self._summary(followed)
        while len(self._last) > _KEPT_ENDED:
            self._last.popitem(last=False)
        self._events.publish(PatchSummaryEvent(patches=self._last[engine_id]))
        shutil.rmtree(followed.folder, ignore_errors=True)

    async def close(self) -> None:
        """Stop following; engines that are kept go on writing."""
        tasks = [followed.task for followed in self._followed.values() if followed.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._followed.clear()

    def get(self, engine: Engine) -> EnginePatches:
        """The apply summary of an engine."""
        if followed := self._followed.get(engine.id):
            self._tell(followed, followed.reader.read())
            return self._summary(followed)
        if engine.id in self._last:
            return self._last[engine.id].model_copy(update={"seq": self._events.seq})
        return EnginePatches(seq=self._events.seq, engine=engine.id, planned=engine.plan.patches)

    def of_running(self) -> list[EnginePatches]:
        """The apply summary of each engine that runs, as of the last look at its ledger."""
        return [self._summary(followed) for followed in self._followed.values()]

    async def probe(self, engine: Engine) -> EnginePatches:
        """Ask every process of an engine what is live, then as `get`."""
        if followed := self._followed.get(engine.id):
            self._tell(followed, followed.reader.read())
            for pid, answered in (await probe(followed.reader.sockets())).items():
                followed.reader.probed(pid, answered)
            self._events.publish(PatchSummaryEvent(patches=self._summary(followed)))
        return self.get(engine)

    async def _follow(self, followed: _Followed) -> None:
        while True:
            if changes := followed.reader.read():
                self._tell(followed, changes)
                self._events.publish(PatchSummaryEvent(patches=self._summary(followed)))
            await asyncio.sleep(_EVERY)

    def _tell(self, followed: _Followed, changes: tuple[LedgerChange, ...]) -> None:
        for change in changes:
            if change.patch is None:
                continue
            result = followed.reader.result(change.pid, change.patch)
            if followed.told.get((change.pid, change.patch)) == result:
                continue
            followed.told[change.pid, change.patch] = result
            role, rank = followed.reader.role(change.pid)
            self._events.publish(
                PatchResultEvent(
                    engine=followed.engine.id, pid=change.pid, role=role, rank=rank, result=result
                )
            )
            if not followed.staged and role is ProcessRole.API_SERVER:
                followed.staged = True
                count = len(followed.planned.chosen)
                self.stage(followed.engine.id, OVERLAY, f"{count} patch{'es' if count != 1 else ''} chosen")
            self._check_required(followed, change.pid, result)

    def _check_required(self, followed: _Followed, pid: int, result: PatchResult) -> None:
        if (
            result.patch not in followed.planned.required
            or result.outcome not in _WENT_WRONG
            or followed.refused.done()
        ):
            return
        where = next((one for one in followed.reader.processes() if one.pid == pid), None)
        why = REASONS[result.reason] if result.reason else result.outcome.value
        followed.refused.set_result(
            Problem(
                reason=Reason.PATCH_REQUIRED_FAILED,
                message=tr(
                    "The patch {patch} is required and was not applied{what}: {why}.",
                    patch=result.patch,
                    what=tr(" in {process_name}", process_name=process_name(where)) if where else "",
                    why=why,
                ),
                cause=result.detail[:400],
                fix=Fix(text="See whether it fits this vLLM.", command="sndr patches check"),
                evidence={"patch": result.patch, "pid": pid, "reason": result.reason},
            )
        )

    def _summary(self, followed: _Followed) -> EnginePatches:
        processes = followed.reader.processes()
        return EnginePatches(
            seq=self._events.seq,
            engine=followed.engine.id,
            planned=followed.planned,
            processes=processes,
            summary=summary(processes),
        )


class EnginePatchOperations:
    """The patches of each engine, and its start without one of them."""

    def __init__(
        self,
        book: EnginePatchTracker,
        engines: EngineManager,
        plans: PlanOperations,
        refuse_others: Callable[[], None],
    ) -> None:
        """`refuse_others` raises while no other start may come in."""
        self._book = book
        self._engines = engines
        self._plans = plans
        self._refuse_others = refuse_others

    @performs(ops.ENGINE_PATCHES)
    def get(self, engine_id: str) -> EnginePatches:
        """The apply summary of an engine. Raises HostError(not_found)."""
        return self._book.get(self._engines.get(engine_id))

    @performs(ops.PROBE_PATCHES)
    async def probe(self, engine_id: str) -> EnginePatches:
        """Ask its processes what is live. Raises HostError(not_found), HostError(no_engine_runs)."""
        engine = self._engines.get(engine_id)
        if engine.pid is None:
            raise HostError(
                Reason.NO_ENGINE_RUNS,
                tr(
                    "{engine} does not run ({state}): nobody can be asked what is live.",
                    engine=engine.name,
                    state=engine.state.value,
                ),
                fix=Fix(
                    text="See what took effect while it ran.", command=f"sndr patches status {engine.id}"
                ),
                evidence={"engine": engine.id, "state": engine.state.value},
            )
        return await self._book.probe(engine)

    @performs(ops.START_WITHOUT)
    async def start_without(self, engine_id: str, patch: str) -> Engine:
        """Start the same again, without one patch. Raises HostError."""
        self._refuse_others()
        engine = self._engines.get(engine_id)
        request = self._plans.request(engine.plan.id)
        # A preset has patches of its own, which the request does not name.
        had = engine.plan.choice if request.preset is not None else request.patches
        choice = had.model_copy(
            update={
                "off": tuple(dict.fromkeys((*had.off, patch))),
                "on": tuple(name for name in had.on if name != patch),
            }
        )
        # In its own place; what its start ended is not there any more.
        update = {"patches": choice, "instead_of": None}
        plan = await self._plans.plan(request.model_copy(update=update))
        self._refuse_others()
        return self._engines.start(plan)


def remove_stale_ledgers(run: Path, alive: Mapping[str, object]) -> None:
    """Remove the ledgers of starts of earlier hosts; `alive` holds the plans of engines taken up again."""
    with contextlib.suppress(OSError):
        for folder in (run / "ledger").iterdir():
            if folder.name not in alive:
                shutil.rmtree(folder, ignore_errors=True)
