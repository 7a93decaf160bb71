"""The GPUs of an engine during each round: energy, clocks, and whether they were slowed down."""

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import psutil

from engine_host.protocol.bench.lab import GpuRound
from engine_host.protocol.host import SLOWED_BY, THROTTLE_WORDS, Gpu, ThrottleReason
from engine_host.protocol.language import formed
from engine_host.telemetry.gpus import Gpus

EVERY = 1.0
"""Seconds between two readings of a round."""
HOT = SLOWED_BY - {ThrottleReason.POWER_CAP}
"""Reasons for a speed that is not that of the GPU; a power limit is a setting."""
MOST_SLOWED = 0.1
"""The share of the readings of a part from which on its speed is that of a GPU which was slowed down."""

Read = Callable[[], Sequence[Gpu]]


class GpuWatch:
    """Reads the GPUs that an engine's processes hold memory of; without such GPUs it does nothing."""

    def __init__(self, pid: int | None, read: Read | None = None) -> None:
        self.rounds: list[GpuRound] = []
        self._gpus: Gpus | None = None
        if pid is not None and read is None:
            self._gpus = Gpus()
            read = self._of_engine(self._gpus, pid)
        self._read = read

    @contextlib.asynccontextmanager
    async def during(self, part: str, turn: int) -> AsyncIterator[None]:
        """Watch them while a round is asked."""
        if self._read is None:
            yield
            return
        readings = [await asyncio.to_thread(self._read)]
        if not readings[0]:
            # A machine without such GPUs has none in the next round either.
            self._read = None
            yield
            return
        began = time.monotonic()
        watching = asyncio.create_task(self._again(readings))
        try:
            yield
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        readings.append(await asyncio.to_thread(self._read))
        self.rounds.append(round_of(part, turn, time.monotonic() - began, readings))

    def close(self) -> None:
        """Let go of the GPUs."""
        if self._gpus is not None:
            self._gpus.close()

    async def _again(self, readings: list[Sequence[Gpu]]) -> None:
        assert self._read is not None
        while True:
            await asyncio.sleep(EVERY)
            readings.append(await asyncio.to_thread(self._read))

    @staticmethod
    def _of_engine(gpus: Gpus, pid: int) -> Read:
        def read() -> Sequence[Gpu]:
            try:
                family = {pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))}
            except psutil.Error:
                return ()
            found = gpus.read_with_holders(str).gpus
            return [gpu for gpu in found if any(holder.pid in family for holder in gpu.holders)]

        return read


def round_of(part: str, turn: int, seconds: float, readings: Sequence[Sequence[Gpu]]) -> GpuRound:
    """Return a round from its readings: energy by the counters of all GPUs, where each has one."""
    ends = [{gpu.index: gpu.energy for gpu in reading} for reading in (readings[0], readings[-1])]
    slowed = [_slowed(reading) for reading in readings]
    clocks = [gpu.clock for reading in readings for gpu in reading if gpu.clock is not None]
    return GpuRound(
        part=part,
        round=turn,
        seconds=seconds,
        gpus=tuple(sorted(ends[0])),
        energy=_spent(*ends),
        slowed=sum(map(bool, slowed)) / len(slowed),
        slowed_by=tuple(sorted({THROTTLE_WORDS[reason] for reasons in slowed for reason in reasons})),
        clock=statistics.median(clocks) if clocks else None,
    )


def throttled(rounds: Sequence[GpuRound], part: str) -> str:
    """Return why the measured rounds of a part are those of a GPU that was slowed down; empty otherwise."""
    own = [one for one in rounds if one.part == part]
    seconds = sum(one.seconds for one in own)
    share = sum(one.slowed * one.seconds for one in own) / seconds if seconds else 0.0
    if share < MOST_SLOWED:
        return ""
    words = ", ".join(sorted({word for one in own for word in one.slowed_by}))
    return f"a GPU was slowed down ({words}) in {formed(share, '.0%')} of the time"


def _slowed(reading: Sequence[Gpu]) -> set[ThrottleReason]:
    return {reason for gpu in reading for reason in gpu.throttled_by or () if reason in HOT}


def _spent(first: Mapping[int, float | None], last: Mapping[int, float | None]) -> float | None:
    total = 0.0
    for index, before in first.items():
        after = last.get(index)
        # A counter that went back is one of a driver that was loaded anew.
        if before is None or after is None or after < before:
            return None
        total += after - before
    return total
