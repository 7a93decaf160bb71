"""A Chrome trace of PyTorch's profiler, summed up by kernel."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from engine_host.bench.gpu.step_profile import profile_of
from engine_host.core.errors import HostError
from engine_host.protocol.bench.profiles import KernelTime, TraceSummary
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_MOST = 2 << 30
_SHOWN = 40
_LONGEST_NAME = 300
Event = tuple[str, float, float]


def summary(path: Path, steps: int) -> TraceSummary:
    """Sum up a trace by kernel: those of the GPU, or where none ran the operations of the processor.

    Raises HostError(bad_request) for a file that is no trace.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(_MOST + 1)
        if len(content) > _MOST:
            raise ValueError("it is larger than 2 GiB")
        events = [one for one in json.loads(content)["traceEvents"] if _is_span(one)]
    except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{path} cannot be read as a trace.", path=path.name),
            cause=str(error)[:200],
            fix="Give another file.",
            evidence={"path": str(path)},
        ) from error
    kernels = [
        (str(one["name"])[:_LONGEST_NAME], float(one["ts"]), float(one["ts"]) + float(one["dur"]))
        for one in events
        if one.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}
    ]
    of = "kernels of the GPU"
    if not kernels:
        of = "operations of the processor"
        kernels = list(own_times(one for one in events if one.get("cat") == "cpu_op"))
    if not kernels:
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{path} holds no kernel and no operation.", path=path.name),
            cause="It is a trace, but the profiler was off, or nothing was computed, while it was written.",
            fix="Give another file.",
        )
    found = profile_of(steps, 0.0, kernels)
    total = sum(one.ms_a_step for one in found.kernels) or 1.0
    return TraceSummary(
        of=of,
        busy_ms=found.busy_ms,
        kernels=tuple(
            KernelTime(
                name=one.name, ms=one.ms_a_step, calls=one.launches_a_step, share=one.ms_a_step / total
            )
            for one in found.kernels[:_SHOWN]
        ),
    )


def own_times(events: Iterable[dict[str, Any]]) -> Sequence[Event]:
    """Return spans without those inside them, so that no microsecond counts twice."""
    of_thread: defaultdict[object, list[Event]] = defaultdict(list)
    for one in events:
        begin = float(one["ts"])
        span = (str(one["name"])[:_LONGEST_NAME], begin, begin + float(one["dur"]))
        of_thread[(one.get("pid"), one.get("tid"))].append(span)
    own: list[Event] = []
    for spans in of_thread.values():
        # Of two that begin together the longer one holds the other.
        open_now: list[tuple[Event, float]] = []

        def close(until: float, open_now: list[tuple[Event, float]] = open_now) -> None:
            while open_now and open_now[-1][0][2] <= until:
                (name, begin, end), inside = open_now.pop()
                own.append((name, begin, max(begin, end - inside)))

        for span in sorted(spans, key=lambda one: (one[1], -one[2])):
            close(span[1])
            if open_now:
                outer, inside = open_now[-1]
                open_now[-1] = (outer, inside + min(span[2], outer[2]) - span[1])
            open_now.append((span, 0.0))
        close(float("inf"))
    return own


def _is_span(one: object) -> bool:
    return (
        isinstance(one, dict)
        and one.get("ph") == "X"
        and all(isinstance(one.get(name), int | float) for name in ("ts", "dur"))
        and "name" in one
    )
