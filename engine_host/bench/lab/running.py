"""Carry out a workload: its parts one after another, saved after each, and cut short without loss."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence

import httpx

from engine_host.bench.lab import gates, load, store
from engine_host.bench.lab.figures import knee, part_result
from engine_host.bench.lab.workloads import Part, Workload, prompt, salt, workload_hash
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import LabAsk, LabRun, Sample
from engine_host.protocol.errors import Reason

CANCELLED = "cancelled"
_GIVE_UP = 3


class LabRunning:
    """One run; `run` is what is known of it at any moment."""

    def __init__(
        self, asked: LabAsk, workload: Workload, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        """`tell` hears each step in a sentence."""
        self._workload = workload
        self._folder = store.folder_of(asked.folder)
        self._tell = tell
        self._began = time.perf_counter()
        self._samples: list[Sample] = []
        seed = random.SystemRandom().getrandbits(32) if asked.seed is None else asked.seed
        now = time.time()
        self.run = LabRun(
            id=store.new_id(workload.name, now),
            workload=workload.name,
            started_at=now,
            seed=seed,
            engine=asked.engine,
            machine=asked.machine,
            sampling=workload.sampling,
            workload_hash=workload_hash(workload),
        )

    async def carry_out(self, client: httpx.AsyncClient) -> LabRun:
        """Ask everything; the run, also of a cancelled task, which is marked as cut short and kept.

        Raises HostError(engine_not_ready) where the first request fails, and HostError(disk_full) or
        HostError(not_writable) where the run cannot be kept.
        """
        done: list[Part] = []
        ended_by = ""
        try:
            for part in self._workload.parts:
                done.append(part)
                await self._part(client, part)
                self._keep(done)
        except asyncio.CancelledError:
            ended_by = CANCELLED
        except _GaveUpError as error:
            ended_by = str(error)
        self._keep(done, complete=not ended_by, ended_by=ended_by)
        return self.run

    def _keep(self, parts: Sequence[Part], *, complete: bool = False, ended_by: str = "") -> None:
        results = tuple(part_result(part, self._samples, self.run.seed) for part in parts)
        self.run = self.run.model_copy(
            update={
                "seconds": time.perf_counter() - self._began,
                "complete": complete,
                "ended_by": ended_by,
                "parts": results,
                "knee": knee(results) if self._workload.sweep else None,
                "samples": tuple(self._samples),
            }
        )
        if self._samples:
            store.save(self._folder, self.run)

    async def _part(self, client: httpx.AsyncClient, part: Part) -> None:
        failed = 0
        for turn in range(part.rounds):
            warm = turn < part.warm
            which = (
                f"warm-up {turn + 1} of {part.warm}" if warm else f"{turn - part.warm + 1} of {part.measured}"
            )
            first = turn * part.streams
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._one(client, part, first + place, turn, warm=warm))
                    for place in range(part.streams)
                ]
            asked = [task.result() for task in tasks]
            self._tell(f"{part.name}, {which}: {_told(asked)}")
            errors = [sample.error for sample in asked if sample.error]
            if errors and len(self._samples) == len(asked):
                raise _no_answer(self.run.engine.model, errors[0])
            failed = failed + 1 if len(errors) == len(asked) else 0
            if failed == _GIVE_UP:
                raise _GaveUpError(f"{failed} rounds without an answer: {errors[0]}")

    async def _one(
        self, client: httpx.AsyncClient, part: Part, number: int, turn: int, *, warm: bool
    ) -> Sample:
        salted = salt(self.run.seed, part.name, number)
        answer = await load.ask(
            client,
            self.run.engine.model,
            prompt(part, salted),
            max_tokens=part.max_tokens,
            seed=int(salted[:7], 16),
            sampling=self._workload.sampling,
        )
        sample = Sample(
            part=part.name,
            number=number,
            round=turn,
            warm=warm,
            salt=salted,
            started=answer.started - self._began,
            first=answer.arrivals[0] if answer.arrivals else None,
            last=answer.arrivals[-1] if answer.arrivals else None,
            total=answer.total,
            arrivals=tuple(round(arrival, 6) for arrival in answer.arrivals),
            prompt_tokens=answer.prompt_tokens,
            cached_tokens=answer.cached_tokens,
            tokens=answer.tokens,
            finish=answer.finish,
            text=answer.text,
            fault="" if answer.error else gates.fault(answer.text, least_variety=part.variety),
            error=answer.error,
        )
        self._samples.append(sample)
        return sample


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
        f"{model} does not answer, so it cannot be measured.",
        cause=error,
        fix="Is the address right, and the model's id one of its list? A key goes into SNDR_API_KEY; a"
        " context that is too short for the workload needs another one (`sndr bench run --help`).",
        evidence={"model": model, "answer": error},
    )
