"""Profile a step on the GPU: the time of each kernel, and the time in which none ran."""

import importlib
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class KernelShare:
    """The share of one kernel in a step: its milliseconds and its number of launches."""

    name: str
    ms_a_step: float
    launches_a_step: float


@dataclass(frozen=True, slots=True)
class StepProfile:
    """Milliseconds of a step by the clock, those in which kernels ran, and the kernels, the longest first."""

    steps: int
    wall_ms: float
    busy_ms: float
    kernels: tuple[KernelShare, ...]

    def lines(self, shown: int = 40) -> list[str]:
        """The profile as text."""
        return [
            f"{self.steps} steps of {self.wall_ms:.3f} ms, kernels in {self.busy_ms:.3f} ms of them",
            *(
                f"{one.ms_a_step:9.4f} ms {one.launches_a_step:7.1f} x  {one.name[:120]}"
                for one in self.kernels[:shown]
            ),
        ]

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def profile_of(steps: int, seconds: float, events: Iterable[tuple[str, float, float]]) -> StepProfile:
    """The profile from what ran: of each event name, begin and end in microseconds.

    Kernels that ran side by side count once in `busy_ms`. Raises ValueError for no steps.
    """
    if steps < 1:
        raise ValueError("no step was profiled")
    totals: dict[str, tuple[float, int]] = {}
    busy, reached = 0.0, float("-inf")
    for name, begin, end in sorted(events, key=lambda event: event[1]):
        time_of, count = totals.get(name, (0.0, 0))
        totals[name] = (time_of + end - begin, count + 1)
        busy += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    kernels = sorted(totals.items(), key=lambda item: -item[1][0])
    return StepProfile(
        steps,
        round(1000 * seconds / steps, 4),
        round(busy / 1000 / steps, 4),
        tuple(
            KernelShare(name, round(total / 1000 / steps, 4), round(count / steps, 2))
            for name, (total, count) in kernels
        ),
    )


class Recorder:
    """Records the GPU's work between `start` and `stop`, in this process, with torch's profiler."""

    def __init__(self) -> None:
        self._torch = importlib.import_module("torch")
        activity = self._torch.profiler.ProfilerActivity
        self._recorded = self._torch.profiler.profile(activities=[activity.CUDA])
        self._started = 0.0

    def start(self) -> None:
        """Begin; work that was queued before is waited for."""
        self._torch.cuda.synchronize()
        self._recorded.start()
        self._started = time.perf_counter()

    def stop(self, steps: int) -> StepProfile:
        """End, after so many steps. Raises ValueError for no steps."""
        self._torch.cuda.synchronize()
        seconds = time.perf_counter() - self._started
        self._recorded.stop()
        on_gpu = self._torch.autograd.DeviceType.CUDA
        events = (
            (str(event.name), float(event.time_range.start), float(event.time_range.end))
            for event in self._recorded.events()
            if event.device_type == on_gpu
        )
        return profile_of(steps, seconds, events)
