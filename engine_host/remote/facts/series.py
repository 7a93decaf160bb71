"""The series of an agentless machine: what one program there tells of its processor, memory and GPUs."""

import contextlib
import math
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping

from engine_host.gateway.metrics.remote import MachineSample
from engine_host.protocol.telemetry import Sample
from engine_host.protocol.text import first_break
from engine_host.remote.run import SCRIPTS, Feed, RemoteOutcome, RemoteScript, Take, fed
from engine_host.telemetry.history import History

_SERIES = RemoteScript.read(SCRIPTS / "read_series.sh")
PAUSE = 5
"""Seconds between two samples."""
STEP = 10.0
"""Seconds of one step of a graph: each holds some samples."""
_LONGEST = 64 << 10
_MIB, _KIB = 1 << 20, 1 << 10
_LARGEST = 1 << 60
_MOST_GPUS = 64
_MOST_DIGITS = 18
_LONGEST_NAME = 200
_GPU = ("memory.used", "memory.total", "utilization", "temperature", "power")
_UNITS = (_MIB, _MIB, 0.01, 1, 1)

Run = Callable[[RemoteScript, Feed, Take], Awaitable[RemoteOutcome]]


class MachineSeries:
    """Follows one machine, as long as its connection stands; `latest` is what it told last."""

    def __init__(self, history: History, clock: Callable[[], float] = time.time) -> None:
        self._history = history
        self._clock = clock
        self.latest: MachineSample | None = None
        self._times: tuple[float, float] | None = None
        self._kept = b""

    async def follow(self, run: Run) -> None:
        """Read until the program there ends. Raises what `run` raises."""
        mark = secrets.token_hex(16)
        begin, end = f"{mark} begin\n".encode(), f"{mark} end\n".encode()
        self._times, self._kept = None, b""

        async def take(piece: bytes) -> None:
            self._kept += piece
            while end in self._kept:
                sample, _, self._kept = self._kept.partition(end)
                self._add(sample.rpartition(begin)[2].decode("utf-8", "replace"))
            self._kept = self._kept[-_LONGEST:]

        await run(_SERIES, fed(_SERIES.sent(f"{mark}\n{PAUSE}\n".encode())), take)

    def _add(self, text: str) -> None:
        values: dict[str, float] = {}
        gpus: dict[str, Mapping[str, str]] = {}
        memory = dict(re.findall(r"^(Mem\w+):\s+(\d{1,15}) kB$", text, re.MULTILINE))
        if (total := memory.get("MemTotal")) is not None and (free := memory.get("MemAvailable")) is not None:
            values["ram.total"] = float(total) * _KIB
            values["ram.used"] = max(0.0, float(total) - float(free)) * _KIB
        if (share := self._share(text)) is not None:
            values["cpu.share"] = share
        for line in text.splitlines()[: _MOST_GPUS + 8]:
            if line.startswith("gpu "):
                index, told, names = _gpu(line.removeprefix("gpu "))
                values |= told
                gpus[index] = names
        now = self._clock()
        self._history.add(now, values)
        self.latest = MachineSample(Sample(at=now, values=values), gpus)

    def _share(self, text: str) -> float | None:
        """Return the share of the processor that was busy since the sample before; None at first."""
        # Split, not matched: a pattern for a list of numbers may try every way to divide a long one.
        fields = next((line.split()[1:] for line in text.split("\n") if line.startswith("cpu ")), [])
        if len(fields) < 5 or not all(map(_is_count, fields)):
            return None
        times = [float(one) for one in fields]
        # User time holds that of guests already, which come as the ninth and tenth.
        now = (times[3] + times[4], sum(times[:8]))
        before, self._times = self._times, now
        if before is None or now[1] <= before[1]:
            return None
        return min(1.0, max(0.0, 1.0 - (now[0] - before[0]) / (now[1] - before[1])))


def _is_count(field: str) -> bool:
    return len(field) <= _MOST_DIGITS and field.isascii() and field.isdecimal()


def _gpu(line: str) -> tuple[str, Mapping[str, float], Mapping[str, str]]:
    """Return the number of a GPU, what was measured of it, and its UUID and name as far as it has them."""
    # The name is the last, and may hold a comma.
    fields = [one.strip() for one in line.split(",", len(_GPU) + 2)]
    if len(fields) != len(_GPU) + 3 or not fields[0].isascii() or not fields[0].isdecimal():
        return "", {}, {}
    index = int(fields[0][:6])
    if index >= _MOST_GPUS:
        return "", {}, {}
    found = {}
    for name, unit, text in zip(_GPU, _UNITS, fields[1:-2], strict=True):
        # What a GPU does not tell is "[N/A]".
        with contextlib.suppress(ValueError):
            value = float(text) * unit
            if math.isfinite(value) and abs(value) < _LARGEST:
                found[f"gpu.{index}.{name}"] = value
    names = zip(("uuid", "name"), fields[-2:], strict=True)
    return (
        str(index),
        found,
        {key: text for key, text in names if 0 < len(text) <= _LONGEST_NAME and first_break(text) is None},
    )
