"""One engine while its process lives: follows its log, its health and its readings."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Protocol

import httpx

from engine_host.core.bounds.cut_text import cut_text
from engine_host.core.bounds.newest import Newest
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import silent_engine, slow_start
from engine_host.engines.adapter import Adapter
from engine_host.engines.process.rates import prefill_rate
from engine_host.engines.process.spawn import EngineProcess
from engine_host.engines.process.worked_time import WorkedTime
from engine_host.protocol.engines import Attention, Engine, Readings, StageTime, Verification
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan

_log = logging.getLogger(__name__)
_HEALTH_EVERY = 0.05
_READ_BUSY = 0.5
# All processes of the machine are looked through for it, which takes as long as the rest of a reading.
_MEMORY_EVERY = 2.0
# Nothing changes in an engine without requests, and llama-server logs every look at it.
_READ_IDLE = 30.0
# Who asks the engine itself, and not the endpoint, is found by the time that its processes take.
_LOOK_IDLE = 1.0
_SETTLED = 3
_EXIT_GRACE = 1.0
# vLLM prints a traceback for each of its processes; the first of them holds the cause.
_TAIL, _TAIL_SIZE = 2_000, 4 << 20
_LONGEST = 8_000
START = "Start process"
VERIFY = "Verify"


class _Changed(Protocol):
    def __call__(self, **update: object) -> object: ...


def _ignore(*_arguments: object, **_update: object) -> None:
    return None


def connection(socket: str) -> httpx.AsyncClient:
    """Return a connection to an engine's own socket."""
    return httpx.AsyncClient(
        # llama-server closes an idle connection after 5 s; ours must be gone before.
        transport=httpx.AsyncHTTPTransport(
            uds=socket,
            verify=False,
            trust_env=False,
            limits=httpx.Limits(keepalive_expiry=2.0),
        ),
        base_url="http://engine",
        timeout=httpx.Timeout(5.0, read=60.0),
    )


class RunningEngine:
    """A process, the connection to it, and the tasks that watch both."""

    def __init__(
        self,
        engine_id: str,
        process: EngineProcess,
        adapter: Adapter,
        client: httpx.AsyncClient,
        engine: Engine,
    ) -> None:
        self.id = engine_id
        self.process = process
        self.client = client
        self._adapter = adapter
        self._plan = engine.plan
        self._stages = list(engine.stages)
        self._buffers = dict(engine.buffers)
        self._attention = engine.attention
        self._readings: Readings | None = None
        self._tail: Newest[str] = Newest(_TAIL, _TAIL_SIZE)
        self._tasks: list[asyncio.Task[None]] = []
        self._following: asyncio.Task[None] | None = None
        self._began = time.monotonic()
        self._worked = WorkedTime()
        self._woken = asyncio.Event()
        self._look = _LOOK_IDLE
        self.log: Callable[[list[str]], object] = _ignore
        self.changed: _Changed = _ignore
        self.stage_ended: Callable[[StageTime], object] = _ignore
        self._starting = not self._stages
        self.on_stage: Callable[[str, str], object] = _ignore
        self.ended: Callable[[Problem], object] = _ignore

    def follow(self) -> None:
        """Follow the log until the process ends."""
        self._following = asyncio.create_task(self._follow(), name=f"follow-{self.id}")
        self._tasks.append(self._following)

    def poll(self) -> None:
        """Read the engine's own numbers from now on."""
        self._tasks.append(asyncio.create_task(self._poll(), name=f"poll-{self.id}"))

    def set_busy(self, busy: bool) -> None:
        """Told when requests begin and end: a graph begins with them, and rates are of the time worked."""
        if busy and not self._worked.working:
            self._woken.set()
        self._worked.set(busy, time.monotonic())

    def wake(self) -> None:
        """Told that it is asked directly, past the endpoint: it is read as a busy one for a while."""
        self._woken.set()

    async def wait_until_healthy(self, seconds: float | None) -> None:
        """Wait until the engine says that it can answer.

        Raises HostError with the reason when the process ends first, HostError(engine_start_timeout).
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while not await self._adapter.healthy(self.client):
            if not self.process.running:
                raise HostError.from_problem(await self.exit_problem())
            if deadline is not None and time.monotonic() > deadline:
                raise HostError(
                    Reason.ENGINE_START_TIMEOUT,
                    tr(
                        "{plan} did not answer within {seconds:.0f} s.", plan=self._plan.name, seconds=seconds
                    ),
                    cause=slow_start(),
                    fix=tr("See its log: sndr logs {id}", id=self.id),
                )
            await asyncio.sleep(_HEALTH_EVERY)

    async def verify(self, plan: LaunchPlan) -> Verification:
        """Prove that the engine answers, as the last stage of its start. Raises HostError."""
        self.begin_stage(VERIFY)
        try:
            verified = await self._adapter.verify(self.client, plan, self._began)
        except httpx.HTTPError as error:
            # A connection that breaks is often the first sign of a process that is about to end.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_EXIT_GRACE):
                    await self.process.ended()
            if not self.process.running:
                raise HostError.from_problem(await self.exit_problem()) from error
            raise HostError(
                Reason.ENGINE_NOT_READY,
                tr(
                    "{plan} listens but did not answer the first request: {error}.",
                    plan=plan.name,
                    error=repr(error),
                ),
                cause=silent_engine(),
                fix=tr("See its log: sndr logs {id}", id=self.id),
            ) from error
        self.end_stage()
        return verified

    async def exit_problem(self) -> Problem:
        """Why the process ended, once its whole log was read."""
        if self._following is not None:
            await asyncio.wait({self._following}, timeout=10.0)
        return await self._explained()

    async def _explained(self) -> Problem:
        """The reason of its end; thousands of lines are looked through in a thread."""
        code, tail = self.process.exit_code, tuple(self._tail)
        return await asyncio.to_thread(self._adapter.explain_exit, code, tail, self._plan)

    def begin_stage(self, name: str, detail: str = "") -> None:
        """A stage begins; the one before it ends."""
        now = time.time()
        self.end_stage(now)
        self._stages.append(StageTime(name=name, detail=detail, started_at=now))
        self.stage_ended(self._stages[-1])
        self.on_stage(name, detail)
        self._tell_stages()

    def end_stage(self, now: float | None = None) -> None:
        """The running stage ends."""
        if self._stages and self._stages[-1].ended_at is None:
            self._stages[-1] = self._stages[-1].model_copy(update={"ended_at": now or time.time()})
            self.stage_ended(self._stages[-1])
            self._tell_stages()

    def _tell_stages(self) -> None:
        self.changed(stages=tuple(self._stages), buffers=dict(self._buffers), attention=self._attention)

    async def release(self) -> None:
        """Stop watching and close the connection; the process is not touched."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.process.release()
        await self.client.aclose()

    async def _follow(self) -> None:
        reader = self._adapter.stage_reader()
        async for lines in self.process.lines():
            for line in lines:
                self._tail.add(cut_text(line, _LONGEST), len(line[:_LONGEST]))
            if shown := [line for line in lines if not self._adapter.is_noise(line)]:
                self.log(shown)
            for line in lines:
                stage = reader.feed(line)
                if stage is None:
                    continue
                self._buffers.update(stage.buffers)
                if reader.attention != Attention():
                    self._attention = reader.attention
                # Once it is being verified, a late line of the log says nothing new about the start.
                current = self._stages[-1].name if self._stages else ""
                if current not in {stage.name, VERIFY} and self._starting:
                    self.begin_stage(stage.name, stage.detail)
        self._woken.set()
        self.end_stage()
        self.ended(await self._explained())

    async def _until_asked(self) -> None:
        """Wait for a request, or work of another origin, but not longer than an idle engine is left alone."""
        working = self.process.working()
        await asyncio.to_thread(working.begin)
        ends = time.monotonic() + _READ_IDLE
        while self.process.running and (left := ends - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), min(left, self._look))
                return
            if working.since_last():
                # One that spins while it waits is asked less and less often.
                self._look = min(2 * self._look, _READ_IDLE)
                self._woken.set()
                return

    async def _poll(self) -> None:
        quiet = 0
        held: dict[str, int] = {}
        memory_due = 0.0
        while self.process.running:
            if self._woken.is_set():
                # Before the reading: what begins and ends beside it is seen by the next ones.
                self._woken.clear()
                quiet = 0
            asked = self._worked.working
            try:
                async with asyncio.timeout(5.0):
                    now = await self._adapter.read(self.client)
            except (httpx.HTTPError, TimeoutError, ValueError) as error:
                # During a long prefill the engine may answer late; the graph shows the gap.
                _log.debug("%s gave no readings: %r", self.id, error)
            else:
                others = bool(now.slots_busy) and not (asked or self._worked.working)
                rates = {
                    "decode_rate": self._worked.rate(now, time.monotonic(), others=others),
                    "prefill_rate": prefill_rate(self._readings, now),
                }
                if time.monotonic() >= memory_due:
                    memory_due = time.monotonic() + _MEMORY_EVERY
                    memory = await asyncio.to_thread(self.process.memory)
                    held = {"memory": memory.resident, "memory_of_files": memory.of_files} if memory else {}
                self._readings = now.model_copy(update={**rates, **held})
                self.changed(readings=self._readings)
            busy = self._worked.working or bool(self._readings and self._readings.slots_busy)
            quiet = 0 if busy else quiet + 1
            self._look = _LOOK_IDLE if busy else self._look
            if quiet >= _SETTLED:
                await self._until_asked()
            if self.process.running:
                # Not at once: the request that ends the silence is answered first.
                await asyncio.sleep(_READ_BUSY)
