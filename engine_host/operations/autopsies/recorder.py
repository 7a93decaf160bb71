"""The flight recorder: when an engine dies, what was measured before becomes a file."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from engine_host import __version__
from engine_host.core.diagnosis.kill import judged, was_killed
from engine_host.core.diagnosis.reading import LET_GO, end_of
from engine_host.core.diagnosis.shelf import AutopsyShelf
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.engines.exit_rules import signal_name
from engine_host.gateway.inspection.client_name import known_part
from engine_host.gateway.request_log import RequestLog
from engine_host.operations.autopsies.oom_kills import oom_kills
from engine_host.operations.fit import request_of
from engine_host.protocol.base import Severity
from engine_host.protocol.bench.autopsy import Autopsy, RecordedRequest, RecordedSeries
from engine_host.protocol.engines import Engine, EngineState, Request, RequestState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import EngineReadingsEvent, EngineStateEvent, EventBase, NoticeEvent
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import FitReport, FitRequest
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.history import History
from engine_host.telemetry.machine import process_name

_log = logging.getLogger(__name__)
SECONDS = 600.0
"""Seconds before the end that are kept."""
_MOST_REQUESTS = 50
_MOST_LINES, _LONGEST_LINE = 200, 1000
_CUT_OFF = 10.0
"""Seconds before the end in which a request that failed as its engine died was ended by that."""
_FIT_SECONDS = 10.0
_OF_THE_MACHINE = ("ram.", "cpu.", "disk.", "network.")
_ENDED = {RequestState.DONE, RequestState.FAILED, RequestState.CANCELLED}


class FlightRecorder:
    """Hears what happens to engines, and saves a record of each that fails with a process of its own."""

    def __init__(
        self,
        shelf: AutopsyShelf,
        history: History,
        requests: RequestLog,
        gpus: Gpus,
        fit: Callable[[FitRequest], Awaitable[FitReport]],
        events: EventLog,
    ) -> None:
        """`fit` counts what a start needs on this machine as it is; it may raise HostError."""
        self.shelf = shelf
        self._history = history
        self._requests = requests
        self._gpus = gpus
        self._fit = fit
        self._events = events
        self._kills: dict[str, int | None] = {}
        self._saving: set[asyncio.Task[None]] = set()

    def take(self, event: EventBase) -> None:
        """Hear of an engine: its readings, or another state of it."""
        if isinstance(event, EngineReadingsEvent):
            self._kills[event.engine] = oom_kills()
        elif isinstance(event, EngineStateEvent):
            engine = event.engine
            if engine.state is EngineState.FAILED:
                # Whoever asked for a start that was refused was told; nothing died.
                if not engine.was_refused:
                    self._begin(engine)
                self._kills.pop(engine.id, None)
            elif engine.state is EngineState.UNLOADED:
                self._kills.pop(engine.id, None)
            elif engine.id not in self._kills:
                # Requests move it between ready and busy: each look reads a long file of the kernel's.
                self._kills[engine.id] = oom_kills()

    async def explain(self, engine: Engine, problem: Problem) -> Problem:
        """Return the problem of an end, with who sent a SIGKILL as far as that was measured."""
        if not was_killed(problem):
            return problem
        when = "while it served" if engine.ready_at is not None else "while it started"
        share = await self._ram_share()
        return judged(problem, when, self._counted(engine), share, engine.plan.command)

    async def close(self) -> None:
        """Wait until what is being saved is on the disk."""
        await asyncio.gather(*self._saving, return_exceptions=True)

    def _begin(self, engine: Engine) -> None:
        told = engine.problem.evidence.get("oom_kills") if engine.problem is not None else None
        kills = told if isinstance(told, int) else self._counted(engine)
        # As they are now: in a moment the endpoint has told each client that its answer broke off.
        requests = self._requests.requests(engine.id)
        task = asyncio.create_task(self._record(engine, kills, requests), name=f"autopsy {engine.id}")
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)

    def _counted(self, engine: Engine) -> int | None:
        """Count what the kernel ended since the last readings; None where it does not say."""
        before, now = self._kills.get(engine.id), oom_kills()
        return None if before is None or now is None else max(0, now - before)

    async def _ram_share(self) -> float | None:
        """Return how full RAM was in the last seconds: what died gave its memory back before."""
        try:
            page = await self._history.page(("ram.used", "ram.total"), time.time() - LET_GO)
        except HostError as error:
            _log.warning("RAM is not told of an end: %s", error.problem.sentence())
            return None
        highest = {
            one.name: max((value for value in one.values if value is not None), default=0.0)
            for one in page.series
        }
        used, total = highest.get("ram.used"), highest.get("ram.total")
        return used / total if used is not None and total else None

    async def _record(self, engine: Engine, kills: int | None, requests: Sequence[Request]) -> None:
        ended = engine.ended_at if engine.ended_at is not None else engine.created_at
        gpus = await self._gpus_of(engine)
        step, series = await self._series(engine, gpus, ended)
        code = engine.problem.evidence.get("exit_code") if engine.problem is not None else None
        code = code if isinstance(code, int) else None
        # A shell tells the signal of what it ran as 128 and more.
        number = (
            -code
            if code is not None and code < 0
            else (code - 128 if code is not None and code > 128 else None)
        )
        record = Autopsy(
            id=self.shelf.new_id(ended),
            at=ended,
            program=__version__,
            engine=engine.model_copy(
                update={
                    "last_lines": tuple(line[:_LONGEST_LINE] for line in engine.last_lines[-_MOST_LINES:])
                }
            ),
            exit_code=code,
            signal=None if number is None else signal_name(number),
            oom_kills=kills,
            seconds=SECONDS,
            step=step,
            series=series,
            requests=tuple(_recorded(one, ended) for one in requests[:_MOST_REQUESTS]),
            gpus=gpus,
            no_gpu=self._gpus.last.no_gpu,
            fit=await self._needed(engine),
        )
        _, sentence = end_of(record)
        try:
            await asyncio.to_thread(self.shelf.save, record)
        except HostError as error:
            _log.warning("the end of %s was not recorded: %s", engine.name, error.problem.sentence())
            return
        text = tr(
            "{engine} died: {sentence} sndr autopsy {record} shows what was measured.",
            engine=engine.name,
            sentence=sentence,
            record=record.id,
        )
        self._events.publish(NoticeEvent(key=f"autopsy {engine.id}", severity=Severity.WARNING, text=text))

    async def _series(
        self, engine: Engine, gpus: Sequence[Gpu], ended: float
    ) -> tuple[float, tuple[RecordedSeries, ...]]:
        try:
            page = await self._history.page((), ended - SECONDS)
        except HostError as error:
            _log.warning("the series of %s are not in its record: %s", engine.name, error.problem.sentence())
            return 1.0, ()
        wanted = (*_OF_THE_MACHINE, f"engine.{engine.id}.", *(f"gpu.{gpu.index}." for gpu in gpus))
        return page.step, tuple(
            RecordedSeries(
                name=one.name,
                unit=one.unit,
                title=one.title,
                first=one.at[0],
                values=tuple(
                    None if value is None else float(f"{value:.7g}")
                    for at, value in zip(one.at, one.values, strict=True)
                    if at <= ended
                ),
            )
            for one in page.series
            # What was measured after the end is about others.
            if one.name.startswith(wanted) and one.at[0] <= ended
        )

    async def _gpus_of(self, engine: Engine) -> tuple[Gpu, ...]:
        """The GPUs that it computed on, or all where the plan names none, with who holds their memory now."""
        # A driver in trouble can hold a call for seconds.
        reading = await asyncio.to_thread(self._gpus.read_with_holders, process_name)
        return tuple(gpu for gpu in reading.gpus if not engine.plan.gpus or gpu.uuid in engine.plan.gpus)

    async def _needed(self, engine: Engine) -> FitReport | None:
        """Return the needs of its start and what would need less; None where that cannot be computed."""
        if not engine.plan.argv:
            # There was no plan.
            return None
        try:
            async with asyncio.timeout(_FIT_SECONDS):
                found = await self._fit(request_of(engine.plan))
        except (HostError, TimeoutError) as error:
            _log.debug("what %s needed is not in its record: %s", engine.name, error)
            return None
        return found.model_copy(update={"grid": (), "curve": (), "kv_choices": ()})


def _recorded(request: Request, ended: float) -> RecordedRequest:
    """Return a request without key, conversation and words of its client; of a failure its reason alone."""
    reason = request.problem.reason if request.problem is not None else None
    late = request.ended_at is not None and request.ended_at >= ended - _CUT_OFF
    return RecordedRequest(
        id=request.id,
        route=request.route,
        client_name=known_part(request.client_name),
        stream=request.stream,
        state=request.state,
        cut_off=request.state not in _ENDED or (reason is Reason.ENGINE_CRASHED and late),
        created_at=request.created_at,
        ended_at=request.ended_at,
        waited=request.waited,
        ttft=request.ttft,
        prompt_tokens=request.prompt_tokens,
        cached_tokens=request.cached_tokens,
        generated_tokens=request.generated_tokens,
        prefill_tokens=request.prefill_tokens,
        prefill_of=request.prefill_of,
        decode_rate=request.decode_rate,
        reason=reason,
    )
