"""Carry out a workload: its parts one after another, saved after each, and cut short without loss.

Two engines are asked in turns, A B B A A B …, so that a machine that drifts does so for both.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import httpx

from engine_host.bench.checks.for_runs import failure, gate_of, parity_of
from engine_host.bench.checks.subject import Subject
from engine_host.bench.conditions.gpu_watch import GpuWatch
from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.kept.under_way import measuring
from engine_host.bench.lab import gates, load
from engine_host.bench.lab.asking import Asking, Prepared
from engine_host.bench.lab.figures import knee, part_result
from engine_host.bench.lab.idle import idle_after
from engine_host.bench.lab.ladder import ended_ladder, rungs_of
from engine_host.bench.lab.soak import MemoryWatch, drifts_of
from engine_host.bench.lab.workloads import Part, Workload, workload_hash
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import (
    Drift,
    LabAsk,
    LabCut,
    LabEngine,
    LabRun,
    LabStep,
    MemoryReading,
    Sample,
)
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import formed, tr
from engine_host.protocol.launch.plans import EngineKind

CANCELLED = "cancelled"
_GIVE_UP = 3
_TOLD_EACH = 10.0
"""Seconds between two words on how far a prompt was read; most are read sooner."""
# A trend costs as many slopes as there are pairs of sessions: 0.3 s of a thousand, each time they are kept.
_TREND_EACH = 100


class LabRunning:
    """One run; `run` is what is known of it at any moment."""

    def __init__(
        self,
        asked: LabAsk,
        engine: LabEngine,
        workload: Workload,
        client: httpx.AsyncClient,
        seed: int,
        before: LabRun | None = None,
    ) -> None:
        """`before` is a run that was cut short: its whole rounds count, and the others are asked."""
        self.workload = workload
        self._client = client
        self._folder = kept_runs.folder_of(asked.folder)
        self._began = time.perf_counter()
        self._samples: list[Sample] = []
        self._failed = 0
        self._before: frozenset[tuple[str, int]] = frozenset()
        self._asking: Asking | None = None
        self._memory: list[MemoryReading] = []
        self._watch = MemoryWatch(engine.pid if workload.watched else None)
        self._gpus = GpuWatch(engine.pid)
        self._room = room_of(engine)
        self.cancelled_at: float | None = None
        self.read: Callable[[float], None] | None = None
        now = time.time()
        self.run = LabRun(
            id=kept_runs.new_id(workload.name, now),
            workload=workload.name,
            started_at=now,
            seed=seed,
            engine=engine,
            measuring=measuring(),
            machine=asked.machine,
            sampling=workload.sampling,
            workload_hash=workload_hash(workload),
        )
        if before is not None:
            self._go_on_with(before, now)

    def _go_on_with(self, before: LabRun, now: float) -> None:
        # Its clock goes on too, so that samples stay in their order.
        self._began -= now - before.started_at
        again = {"resumed_at": (*before.resumed_at, now), "checks": (), "measuring": self.run.measuring}
        self.run = before.model_copy(update=again)
        answered = [sample for sample in before.samples if not sample.error]
        rounds = Counter((sample.part, sample.round) for sample in answered)
        whole = {
            (part.name, turn)
            for part in self.workload.parts
            for turn in range(part.rounds)
            if rounds[part.name, turn] == len(part.requests(turn))
        }
        if self.workload.by_round:
            # A conversation is asked whole: without its first turns, the cache has nothing of the others.
            names = [part.name for part in self.workload.parts]
            whole = {(part, turn) for part, turn in whole if whole.issuperset((one, turn) for one in names)}
        for part in self.workload.parts:
            # The server may be another by now, or cold: what is measured of it comes after warm rounds.
            if not whole.issuperset((part.name, turn) for turn in range(part.warm, part.rounds)):
                whole -= {(part.name, turn) for turn in range(part.warm)}
        self._samples = [sample for sample in answered if (sample.part, sample.round) in whole]
        self._before = frozenset(whole)

    def begin(self) -> None:
        """Make sure that it can be kept, before anything is asked.

        Of one that is gone on with, that is kept: after a kill too it is asked by others next time.

        Raises HostError(disk_full), HostError(not_writable).
        """
        if self.run.resumed_at:
            self.run = kept_runs.save(self._folder, self.run)
        else:
            kept_runs.can_keep(self._folder, self.run)

    def has(self, part: Part, turn: int) -> bool:
        """Tell whether a round was measured before the run was cut short."""
        return (part.name, turn) in self._before

    def keep(self, parts: Sequence[Part], *, complete: bool = False, ended_by: str = "") -> None:
        """Save what was measured so far. Raises HostError(disk_full), HostError(not_writable)."""
        failed = failure(self.run.checks)
        rounds = self._gpus.rounds
        measured = any(not sample.warm for sample in self._samples)
        results = tuple(part_result(part, self._samples, failed=failed, gpu_rounds=rounds) for part in parts)
        whole = tuple(one.name for one in results if one.done >= one.measured)
        begun = [part.name for part in parts]
        cut = LabCut(
            whole=whole,
            cut=tuple(name for name in begun if name not in whole),
            missing=tuple(part.name for part in self.workload.parts if part.name not in begun),
        )
        found_knee = knee(results) if self.workload.sweep else None
        if not complete and found_knee is not None and found_knee.streams is None:
            # It was not looked for to the end.
            found_knee = None
        if ended_by == CANCELLED:
            # A part of which nothing was measured is a table of n/a.
            results = tuple(one for one in results if one.done)
        self.run = self.run.model_copy(
            update={
                "seconds": time.perf_counter() - self._began,
                "complete": complete,
                "ended_by": ended_by,
                "measuring": None if complete or ended_by else self.run.measuring,
                "cut": cut if ended_by else None,
                "parts": results,
                "knee": found_knee,
                "rungs": rungs_of(parts, self._samples),
                "memory": tuple(self._memory),
                "gpu_rounds": tuple(rounds),
                "drifts": self._drifts(ended=complete or bool(ended_by)),
                "samples": tuple(self._samples) if measured else (),
            }
        )
        self._save()

    def _save(self) -> None:
        # Warm rounds alone are no measurement: nothing of them is figures that anybody could use.
        if self.run.samples:
            self.run = kept_runs.save(self._folder, self.run)

    async def watch_until_idle(self) -> None:
        """Wait until the engine says that nothing is at work after a cancel, and keep when that was."""
        since = time.perf_counter() if self.cancelled_at is None else self.cancelled_at
        found = await idle_after(self._client, self.run.engine.engine, since)
        if found is not None and self.run.cut is not None:
            running, seconds = found
            told = {"idle": running == 0, "after_cancel_seconds": seconds, "running": running}
            self.run = self.run.model_copy(update={"cut": self.run.cut.model_copy(update=told)})
            self._save()

    def _drifts(self, *, ended: bool) -> tuple[Drift, ...]:
        """Return the drifts; of many sessions not anew after each of them, but all at the end."""
        sessions = len({sample.round for sample in self._samples})
        if not self.workload.watched:
            return ()
        if not ended and sessions > _TREND_EACH and sessions % _TREND_EACH:
            return self.run.drifts
        return drifts_of(self._samples, self._memory)

    def close(self) -> None:
        """Let go of what was watched."""
        self._watch.close()
        self._gpus.close()

    async def check(self) -> str:
        """Check what the engine answers besides, where the workload asks for it; the outcome in words."""
        made = await gate_of(self._subject, self.workload.check, self._longest())
        self.run = self.run.model_copy(update={"checks": (*self.run.checks, *made)})
        return ", ".join(f"{one.title}: {one.outcome}" for one in made)

    async def equal_to(self, other: "LabRunning") -> str:
        """Compare greedy answers with those of the other side; the outcome in words."""
        made = await parity_of(self._subject, other._subject, self.run.engine, other.run.engine)
        self.run = self.run.model_copy(update={"checks": (*self.run.checks, made)})
        return f"{made.title}: {made.outcome}"

    @property
    def _subject(self) -> Subject:
        # Of an address nobody knows whether it means to offer tools.
        engine = self.run.engine
        return Subject(
            self._client,
            engine.model,
            self.run.seed,
            strict=bool(engine.id),
            beside=load.beside(engine.engine),
        )

    def _longest(self) -> int:
        return max((sample.prompt_tokens or 0 for sample in self._samples), default=0)

    async def round(self, part: Part, turn: int) -> str:
        """Ask one round; what came of it, in words.

        Raises HostError(engine_not_ready) where the first one of all fails.
        """
        first = turn * part.streams
        requests = part.requests(turn)
        place = self.workload.parts.index(part)
        asking = await self._how_to_ask()
        # All before the first: what it takes to make them is nobody's waiting.
        prepared = [
            await asking.prepare(part, one, first + number, turn, place)
            for number, one in enumerate(requests)
        ]
        async with self._gpus.during(part.name, turn), asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._one(part, each, one.at, first + number, turn))
                for number, (each, one) in enumerate(zip(prepared, requests, strict=True))
            ]
        asked = [task.result() for task in tasks]
        if self.workload.watched:
            at = time.perf_counter() - self._began
            # Between two turns: what it takes is nobody's waiting.
            if (reading := await asyncio.to_thread(self._watch.read, turn, at)) is not None:
                self._memory.append(reading)
        errors = [sample.error for sample in asked if sample.error]
        if errors and len(self._samples) == len(asked):
            raise _no_answer(self.run.engine.model, errors[0])
        self._failed = self._failed + 1 if len(errors) == len(asked) else 0
        if self._failed == _GIVE_UP:
            raise _GaveUpError(f"{self._failed} rounds without an answer: {errors[0]}")
        return _told(asked)

    async def _how_to_ask(self) -> Asking:
        if self._asking is None:
            # Only the turns of an agent have any.
            turns = any(part.turn for part in self.workload.parts)
            tools = turns and not await self._subject.takes_no_tools()
            run, again = self.run, len(self.run.resumed_at)
            self._asking = Asking(self._client, run.engine.model, run.seed, again=again, tools=tools)
        return self._asking

    async def _one(self, part: Part, asked: Prepared, at: float, number: int, turn: int) -> Sample:
        if at:
            await asyncio.sleep(at)
        salted = asked.salt
        due = time.perf_counter()
        async with self._room:
            answer = await load.ask(
                self._client,
                self.run.engine.model,
                asked.messages,
                max_tokens=asked.max_tokens,
                seed=int(salted[:7], 16),
                sampling=self.workload.sampling,
                more={**load.beside(self.run.engine.engine), **asked.more},
                read=self.read,
                due=due,
            )
        text = None if answer.error or answer.calls else answer.text
        fault = "" if text is None else gates.fault(text, least_variety=part.variety)
        sample = Sample(
            part=part.name,
            number=number,
            round=turn,
            warm=turn < part.warm,
            salt=salted,
            started=answer.started - self._began,
            first=answer.arrivals[0] if answer.arrivals else None,
            last=answer.arrivals[-1] if answer.arrivals else None,
            total=answer.total,
            arrivals=tuple(round(arrival, 6) for arrival in answer.arrivals),
            aimed=asked.aimed,
            max_tokens=asked.max_tokens if part.planned else None,
            prompt_tokens=answer.prompt_tokens,
            cached_tokens=answer.cached_tokens,
            tokens=answer.tokens,
            drafted=answer.drafted,
            accepted=answer.accepted,
            decoding=answer.decoding,
            found=asked.fact in answer.text if asked.fact and not answer.error else None,
            finish=answer.finish,
            text=answer.text,
            fault=fault,
            unjudged="" if fault else gates.too_short(text or "", least_variety=part.variety),
            error=answer.error,
        )
        self._samples.append(sample)
        return sample


async def carry_out(
    sides: Sequence[LabRunning], tell: Callable[[LabStep], None] = lambda step: None
) -> list[LabRun]:
    """Ask everything of one engine, or of two in turns; the runs, also of a cancelled task, which are kept.

    Runs that were cut short are marked so. `tell` hears of each round. Raises HostError(engine_not_ready)
    where the first request fails, and HostError(disk_full) or HostError(not_writable) where a run cannot be
    kept.
    """
    if len(sides) == 2:
        for side, other in (sides, reversed(sides)):
            side.run = side.run.model_copy(update={"turns_with": other.run.id})
    for side in sides:
        side.begin()
    parts = sides[0].workload.parts
    ended_by = ""
    done: list[Part] = []
    try:
        for part, turn, last in _schedule(sides[0].workload):
            if part not in done:
                done.append(part)
            # The order turns each time: neither side is always the one after the other.
            for place, side in enumerate(sides if turn % 2 == 0 else reversed(sides), 1):
                if side.has(part, turn):
                    continue
                which = _which(part, turn)
                if len(sides) > 1:
                    which = f"{side.run.engine.model}, {which}"
                step = LabStep(
                    part=part.name, number=parts.index(part) + 1, of=len(parts), progress=0.0, words=which
                )
                rounds, before = part.rounds * len(sides), turn * len(sides) + place - 1
                side.read = (
                    _Reading(tell, step, before, rounds).read if len(part.requests(turn)) == 1 else None
                )
                words = await side.round(part, turn)
                tell(
                    step.model_copy(update={"progress": (before + 1) / rounds, "words": f"{which}: {words}"})
                )
            if last:
                for side in sides:
                    side.keep(done)
                if any(ended_ladder(part, side.run.rungs) for side in sides):
                    break
        await _check(sides, tell)
    except asyncio.CancelledError:
        ended_by = CANCELLED
    except _GaveUpError as error:
        ended_by = str(error)
    for side in sides:
        side.keep(done, complete=not ended_by, ended_by=ended_by)
        side.close()
    if ended_by == CANCELLED and done:
        await asyncio.gather(*(side.watch_until_idle() for side in sides))
    return [side.run for side in sides]


def room_of(engine: LabEngine) -> contextlib.AbstractAsyncContextManager[object]:
    """Return what a request passes before it is sent: of llama.cpp no more than one waits in the server.

    A client that has gone while it waited there is noticed only once a batch of its prompt was read: 48 that
    were cancelled at once kept the server at work for all their prompts.
    """
    if engine.engine == EngineKind.LLAMA_CPP and engine.slots is not None:
        return asyncio.Semaphore(engine.slots + 1)
    return contextlib.nullcontext()


class _Reading:
    """Tells how far the one prompt of a round was read, where that takes long."""

    def __init__(self, tell: Callable[[LabStep], None], step: LabStep, before: int, rounds: int) -> None:
        """`step` is the round, with its name as its words; `before` are rounds of all `rounds`."""
        self._tell = tell
        self._step = step
        self._before = before
        self._rounds = rounds
        self._told = time.perf_counter()

    def read(self, share: float) -> None:
        """Hear of the share of the prompt that was read."""
        now = time.perf_counter()
        if now - self._told < _TOLD_EACH:
            return
        self._told = now
        words = f"{self._step.words}: {formed(share, '.0%')} of the prompt read"
        progress = (self._before + share) / self._rounds
        self._tell(self._step.model_copy(update={"progress": progress, "words": words}))


def _schedule(workload: Workload) -> Iterator[tuple[Part, int, bool]]:
    """Yield each part with its rounds, and True with a round after which the run is saved."""
    if workload.by_round:
        for turn in range(max(part.rounds for part in workload.parts)):
            yield from ((part, turn, part is workload.parts[-1]) for part in workload.parts)
        return
    for part in workload.parts:
        yield from ((part, turn, turn == part.rounds - 1) for turn in range(part.rounds))


async def _check(sides: Sequence[LabRunning], tell: Callable[[LabStep], None]) -> None:
    """Check the answers of each side after all that is measured, and of two whether they are equal."""
    of = len(sides[0].workload.parts)
    if sides[0].workload.check is None:
        return
    for side in sides:
        words = await side.check()
        tell(LabStep(part="output checks", number=of, of=of, progress=1.0, words=words))
    if len(sides) == 2:
        words = await sides[1].equal_to(sides[0])
        tell(LabStep(part="output checks", number=of, of=of, progress=1.0, words=words))


def new_seed() -> int:
    """Return a seed that no run before has had."""
    return random.SystemRandom().getrandbits(32)


def _which(part: Part, turn: int) -> str:
    if turn < part.warm:
        return f"warm-up {turn + 1} of {part.warm}"
    return f"{turn - part.warm + 1} of {part.measured}"


class _GaveUpError(Exception):
    """The server stopped answering."""


def _told(asked: Sequence[Sample]) -> str:
    answered = [sample for sample in asked if not sample.error]
    if not answered:
        return "no answer"
    seconds = max(sample.total for sample in answered)
    tokens = sum(sample.tokens or 0 for sample in answered)
    said = f"{tokens} tokens in {seconds:.1f} s" if tokens else f"{seconds:.1f} s"
    faulty = sum(bool(sample.fault) for sample in answered)
    if faulty:
        said += ", not coherent" if len(asked) == 1 else f", {faulty} not coherent"
    return said


def _no_answer(model: str, error: str) -> HostError:
    return HostError(
        Reason.ENGINE_NOT_READY,
        tr("{model} does not answer, so it cannot be measured.", model=model),
        cause=error,
        fix="Is the address right, and the model's id one of its list? A key goes into SNDR_API_KEY; a"
        " context that is too short for the workload needs another one (`sndr bench run --help`).",
        evidence={"model": model, "answer": error},
    )
