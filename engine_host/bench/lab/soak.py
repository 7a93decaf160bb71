"""Drift over a soak: do answers get slower, or does memory grow, from session to session.

What counts are sessions: of each the median over its turns, every turn against the median of its kind,
so that long turns and short ones count alike. Readings within a session belong together, and would make an
interval narrower than it is.
"""

import statistics
from collections.abc import Callable, Sequence

import psutil

from engine_host.bench.trend import trend
from engine_host.protocol.bench.lab import Drift, DriftKind, MemoryReading, Sample
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.machine import process_memory

MOST_GROWTH = 200 << 20
"""Bytes by which memory may grow from the first half to the second. Source: the soak of the reference."""
LEAST_RETENTION = 0.8
"""The share of its speed that the second half has to keep."""


class MemoryWatch:
    """Reads the memory of an engine's processes, here and on the GPUs, as far as this machine tells."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._gpus = Gpus() if pid is not None else None

    def read(self, session: int, at: float) -> MemoryReading | None:
        """Return the memory now; None where nobody can say."""
        if self._pid is None or self._gpus is None:
            return None
        found = process_memory(self._pid)
        if found is None:
            return None
        try:
            process = psutil.Process(self._pid)
            family = {self._pid, *(child.pid for child in process.children(recursive=True))}
        except psutil.Error:
            return None
        held = [
            holder.memory
            for gpu in self._gpus.read_with_holders(str).gpus
            for holder in gpu.holders
            if holder.pid in family and holder.memory is not None
        ]
        return MemoryReading(at=at, session=session, resident=found.resident, gpu=sum(held) if held else None)

    def close(self) -> None:
        """Let go of the GPUs."""
        if self._gpus is not None:
            self._gpus.close()


def drifts_of(samples: Sequence[Sample], memory: Sequence[MemoryReading]) -> tuple[Drift, ...]:
    """Return what changed from the first half of the sessions to the second; nothing for a single one."""
    answered = [one for one in samples if not one.warm and not one.error]
    made = [
        _of_times(DriftKind.TTFT, answered, lambda one: one.first),
        _of_times(DriftKind.TPOT, answered, _tpot),
        _of_memory(DriftKind.MEMORY, memory, lambda one: one.resident),
        _of_memory(DriftKind.GPU_MEMORY, memory, lambda one: one.gpu),
    ]
    return tuple(one for one in made if one is not None)


def _of_times(
    kind: DriftKind, samples: Sequence[Sample], value: Callable[[Sample], float | None]
) -> Drift | None:
    of_part: dict[str, list[float]] = {}
    told = [(one, found) for one in samples if (found := value(one)) is not None and found > 0]
    for sample, found in told:
        of_part.setdefault(sample.part, []).append(found)
    usual = {part: statistics.median(values) for part, values in of_part.items()}
    of_session: dict[int, list[float]] = {}
    for sample, found in told:
        of_session.setdefault(sample.round, []).append(found / usual[sample.part])
    sessions = [statistics.median(values) for _, values in sorted(of_session.items())]
    return _drift(kind, sessions, lambda first, second: first / second < LEAST_RETENTION)


def _of_memory(
    kind: DriftKind, memory: Sequence[MemoryReading], value: Callable[[MemoryReading], int | None]
) -> Drift | None:
    of_session: dict[int, list[float]] = {}
    for reading in memory:
        if (found := value(reading)) is not None and found > 0:
            of_session.setdefault(reading.session, []).append(float(found))
    sessions = [max(values) for _, values in sorted(of_session.items())]
    # The first session fills what every engine fills once.
    return _drift(kind, sessions[1:], lambda first, second: second - first > MOST_GROWTH)


def _drift(kind: DriftKind, sessions: Sequence[float], bad: Callable[[float, float], bool]) -> Drift | None:
    half = len(sessions) // 2
    if not half:
        return None
    first, second = statistics.median(sessions[:half]), statistics.median(sessions[-half:])
    # From the middle of one half to that of the other.
    found = trend(sessions, len(sessions) - half)
    return Drift(
        kind=kind,
        sessions=len(sessions),
        first=first,
        second=second,
        change=found.change,
        low=found.low,
        high=found.high,
        told=found.told,
        # A change that cannot be told from noise fails nothing.
        failed=found.grows and bad(first, second),
    )


def _tpot(sample: Sample) -> float | None:
    if sample.first is None or sample.last is None or (sample.tokens or 0) < 2:
        return None
    return (sample.last - sample.first) / ((sample.tokens or 2) - 1)
