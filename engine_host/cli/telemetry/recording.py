"""The GPUs of a host written into a trace, moment by moment."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine_host.client.sync import ControlClient
from engine_host.core.atomic_file import saving_failed
from engine_host.core.errors import HostError
from engine_host.core.gpu_trace.format import LARGEST, TraceWriter, head_of
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops


@dataclass(frozen=True)
class Recorded:
    """A file that was recorded; bytes and seconds."""

    file: str
    gpus: int
    moments: int
    seconds: float
    size: int

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def record(
    client: ControlClient,
    file: Path,
    seconds: float | None,
    interval: float,
    *,
    processes: bool,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    begun: Callable[[], None] = lambda: None,
) -> Recorded:
    """Record until the seconds are over, Ctrl+C, or the file is as large as one may be.

    `begun` is called once the file is there.
    Raises HostError where there is no GPU, where the file is there or cannot be written, and what asking
    the host raises; what was written until then is a whole trace.
    """
    client.only_watch()
    host = client.call(ops.HOST)
    if not host.gpus:
        why = host.no_gpu.message if host.no_gpu is not None else host.gpu_absence_detail
        raise HostError(
            Reason.NOT_FOUND,
            "There is no GPU to record.",
            cause=why,
            fix="Record on a machine with an NVIDIA GPU: `sndr --host NAME telemetry record FILE`.",
        )
    writer = TraceWriter(
        head_of(host.gpus, time.time(), host.program, host.driver, host.cuda), processes=processes
    )
    moments, written, last, began = 0, 0, 0.0, clock()
    due = began
    try:
        with file.open("xb", buffering=0) as target, contextlib.suppress(KeyboardInterrupt):
            written += target.write(writer.first())
            begun()
            while True:
                last = clock() - began
                line = writer.line(last, host.gpus)
                if written + len(line) > LARGEST:
                    break
                written += target.write(line)
                moments += 1
                now = clock()
                due = max(due + interval, now)
                if seconds is not None and due - began > seconds:
                    break
                sleep(due - now)
                host = client.call(ops.HOST)
    except FileExistsError as error:
        raise HostError(
            Reason.CONFLICT,
            tr("{file} is there already; nothing was recorded.", file=file),
            fix="Give another name.",
        ) from error
    except OSError as error:
        raise saving_failed(file, error) from error
    return Recorded(str(file), len(writer.head.gpus), moments, last, written)
