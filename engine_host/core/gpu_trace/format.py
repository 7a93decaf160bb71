"""The file of a recorded trace: a head, then a line for each moment with what changed since the one before.

Lines of JSON in UTF-8. The head holds what does not change, each moment `{"t": seconds, "gpus": [...]}` with
the changed values of each GPU in the order of the head. A file comes from anybody: everything is bounded.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu, GpuHolder, PcieLink, ThrottleReason
from engine_host.protocol.language import tr

VERSION = 1
LARGEST = 256 << 20
"""Bytes of a file at most: eight GPUs for a day at twice a second, where most values change."""
_LONGEST_LINE = 256 << 10
_MOST_GPUS, _MOST_HOLDERS = 64, 64
_LONGEST = 31 * 86400.0

_Bytes = Annotated[int, Field(ge=0, le=1 << 50)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Degrees = Annotated[int, Field(ge=-300, le=1000)]
_Watts = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
_Joules = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
_MHz = Annotated[int, Field(ge=0, le=100_000)]
_Small = Annotated[int, Field(ge=0, le=1 << 31)]
_Text = Annotated[str, Field(max_length=200)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _TracedHolder(_Strict):
    pid: _Small
    name: _Text = ""
    memory: _Bytes | None = None


class _TracedLink(_Strict):
    generation: _Small
    width: _Small
    most_generation: _Small | None = None
    most_width: _Small | None = None


class _Fixed(_Strict):
    """The properties of one GPU that do not change."""

    index: Annotated[int, Field(ge=0, lt=_MOST_GPUS)]
    name: _Text
    memory_total: _Bytes
    compute_capability: _Text | None = None
    slowdown_temperature: _Degrees | None = None
    most_clock: _MHz | None = None


class _Changed(_Strict):
    """Values of one GPU; what is not there is as it was, and null is what the GPU does not tell."""

    memory_used: _Bytes | None = None
    utilization: _Share | None = None
    temperature: _Degrees | None = None
    power: _Watts | None = None
    memory_utilization: _Share | None = None
    memory_temperature: _Degrees | None = None
    power_limit: _Watts | None = None
    clock: _MHz | None = None
    memory_clock: _MHz | None = None
    throttled_by: Annotated[tuple[ThrottleReason, ...], Field(max_length=16)] | None = None
    pcie: _TracedLink | None = None
    ecc_errors: _Small | None = None
    energy: _Joules | None = None
    holders: Annotated[tuple[_TracedHolder, ...], Field(max_length=_MOST_HOLDERS)] = ()


class TraceHead(_Strict):
    """The first line of a trace."""

    sndr_gpu_trace: int = VERSION
    recorded_at: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
    program: _Text = ""
    driver: _Text | None = None
    cuda: _Text | None = None
    gpus: Annotated[tuple[_Fixed, ...], Field(min_length=1, max_length=_MOST_GPUS)]


class _Moment(_Strict):
    t: Annotated[float, Field(ge=0, le=_LONGEST, allow_inf_nan=False)]
    gpus: tuple[_Changed, ...]


_FIXED = frozenset(_Fixed.model_fields)
_CHANGING = tuple(_Changed.model_fields)


def head_of(gpus: Sequence[Gpu], at: float, program: str, driver: str | None, cuda: str | None) -> TraceHead:
    """Return the head of a trace of these GPUs; their UUIDs, which name one card in the world, stay out."""
    fixed = tuple(_Fixed.model_validate(gpu.model_dump(include=set(_FIXED))) for gpu in gpus)
    return TraceHead(recorded_at=at, program=program, driver=driver, cuda=cuda, gpus=fixed)


class TraceWriter:
    """Turns moments into lines; `processes` keeps the names of those that hold memory."""

    def __init__(self, head: TraceHead, *, processes: bool) -> None:
        self.head = head
        self._processes = processes
        self._before: list[dict[str, Any]] = [{} for _ in head.gpus]

    def first(self) -> bytes:
        """Return the line of the head."""
        return self.head.model_dump_json().encode() + b"\n"

    def line(self, t: float, gpus: Sequence[Gpu]) -> bytes:
        """Return the line of a moment. Raises HostError(conflict) where other GPUs are there than before."""
        if [gpu.index for gpu in gpus] != [gpu.index for gpu in self.head.gpus]:
            raise HostError(
                Reason.CONFLICT,
                "The GPUs are others than when the recording began; it ends here.",
                cause="A GPU went away, or the driver stopped to answer.",
                fix="Do it again.",
            )
        changed = []
        for place, gpu in enumerate(gpus):
            now = gpu.model_dump(mode="json", include=set(_CHANGING))
            now["holders"] = now["holders"][:_MOST_HOLDERS] if self._processes else []
            before, self._before[place] = self._before[place], now
            fresh = {
                name: value for name, value in now.items() if name not in before or before[name] != value
            }
            changed.append(_Changed.model_validate(fresh))
        moment = _Moment(t=round(t, 3), gpus=tuple(changed))
        return moment.model_dump_json(exclude_unset=True).encode() + b"\n"


class Trace:
    """A trace that is open for reading: its head, and its moments one after another.

    Only the newest moment is in memory. `rewind` begins anew.
    """

    def __init__(self, path: Path) -> None:
        """Open it and read its head. Raises HostError(not_found), HostError(setting_invalid)."""
        self.path = path
        try:
            self._file: BinaryIO = files.open_regular(path)
        except FileNotFoundError as error:
            raise HostError(
                Reason.NOT_FOUND,
                tr("There is no trace {path}.", path=path),
                fix="Record one with `sndr telemetry record FILE` on a machine with a GPU.",
                evidence={"file": str(path)},
            ) from error
        except OSError as error:
            raise refusal(path, tr("cannot be opened: {error}", error=error.strerror or error)) from error
        try:
            self._number = 0
            if path.stat().st_size > LARGEST:
                raise self.refused(tr("is larger than {largest} MiB", largest=LARGEST >> 20))
            self.head = self._read_head()
            self._begin = self._file.tell()
            self.rewind()
        except OSError as error:
            self.close()
            raise refusal(path, tr("cannot be read: {error}", error=error.strerror or error)) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def rewind(self) -> None:
        """Go back to the first moment."""
        self._file.seek(self._begin)
        self._number, self._t = 1, -1.0
        self._ahead: _Moment | None = None
        self._now: list[dict[str, Any]] = [{"memory_used": 0} for _ in self.head.gpus]

    def next(self) -> float | None:
        """Go to the next moment and return its time in seconds; None at the end.

        Raises HostError(setting_invalid).
        """
        t = self.ahead()
        if self._ahead is not None:
            for now, changed in zip(self._now, self._ahead.gpus, strict=True):
                now.update((name, getattr(changed, name)) for name in changed.model_fields_set)
            self._ahead = None
        return t

    def ahead(self) -> float | None:
        """Return the time of the next moment, without going there; None at the end.

        Raises HostError(setting_invalid).
        """
        if self._ahead is not None:
            return self._ahead.t
        try:
            line = self._file.readline(_LONGEST_LINE + 1)
        except OSError as error:
            raise self.refused(tr("cannot be read: {error}", error=error.strerror or error)) from error
        # A recorder that was killed leaves half a line.
        if not line.endswith(b"\n") and len(line) <= _LONGEST_LINE:
            return None
        self._number += 1
        if len(line) > _LONGEST_LINE:
            raise self.refused(
                tr("has a line of more than {longest_line} KiB", longest_line=_LONGEST_LINE >> 10)
            )
        try:
            moment = _Moment.model_validate_json(line)
        except ValidationError as error:
            raise self.refused(_said(error)) from error
        if len(moment.gpus) != len(self.head.gpus):
            raise self.refused(
                tr(
                    "tells of {count} GPUs, and its head of {count2}",
                    count=len(moment.gpus),
                    count2=len(self.head.gpus),
                )
            )
        if moment.t <= self._t:
            raise self.refused(tr("goes back in time"))
        self._t, self._ahead = moment.t, moment
        return moment.t

    def gpus(self) -> tuple[Gpu, ...]:
        """Return the GPUs of this moment; no UUID of theirs is one of a real card."""
        return tuple(
            _gpu(fixed, place, now)
            for place, (fixed, now) in enumerate(zip(self.head.gpus, self._now, strict=True))
        )

    def moments(self) -> Iterator[float]:
        """Read to the end. Raises HostError(setting_invalid)."""
        while (t := self.next()) is not None:
            yield t

    def _read_head(self) -> TraceHead:
        line = self._file.readline(_LONGEST_LINE + 1)
        self._number = 1
        if not line.startswith(b"{") or b'"sndr_gpu_trace"' not in line[:4096]:
            raise self.refused(tr('does not begin with {"sndr_gpu_trace": …}: it is no trace'))
        try:
            head = TraceHead.model_validate_json(line)
        except ValidationError as error:
            version = next((one for one in error.errors() if one["loc"][:1] == ("sndr_gpu_trace",)), None)
            raise self.refused(_said(error) if version is None else tr("has no version")) from error
        if head.sndr_gpu_trace != VERSION:
            raise self.refused(
                tr(
                    "has version {sndr_gpu_trace}; this program reads version {version}",
                    sndr_gpu_trace=head.sndr_gpu_trace,
                    version=VERSION,
                )
            )
        if len({gpu.index for gpu in head.gpus}) != len(head.gpus):
            raise self.refused(tr("has two GPUs of one number"))
        return head

    def refused(self, why: str) -> HostError:
        """Return the error of a trace that cannot be played on, with the line."""
        return refusal(self.path, why, self._number)


def check(path: Path) -> tuple[TraceHead, int, float]:
    """Read a trace to its end: its head, number of moments and seconds. Raises HostError(setting_invalid)."""
    trace = Trace(path)
    try:
        number, last = 0, 0.0
        for t in trace.moments():
            number, last = number + 1, t
        if not number or not math.isfinite(last):
            raise refusal(path, tr("has no moment: nothing was recorded"), 1)
        return trace.head, number, last
    finally:
        trace.close()


def refusal(path: Path, why: str, line: int = 0) -> HostError:
    """Return the error of a file that cannot be played."""
    where = tr(", line {line},", line=line) if line > 1 else ""
    return HostError(
        Reason.SETTING_INVALID,
        tr("The trace {path}{where} {why}.", path=path, where=where, why=why),
        fix="Record one with `sndr telemetry record FILE` on a machine with a GPU.",
        evidence={"file": str(path), "line": line},
    )


def _gpu(fixed: _Fixed, place: int, now: dict[str, Any]) -> Gpu:
    values = dict(now)
    link = values.pop("pcie", None)
    holders = values.pop("holders", ())
    return Gpu(
        **fixed.model_dump(),
        **{name: value for name, value in values.items() if name != "memory_used"},
        memory_used=values.get("memory_used") or 0,
        uuid=f"recorded-{place}",
        pcie=PcieLink(**link.model_dump()) if link is not None else None,
        holders=tuple(GpuHolder(**holder.model_dump()) for holder in holders),
    )


def _said(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part)[:40] for part in first["loc"][:4])
    return tr(
        "is no moment of a trace: {where}{first}",
        where=where + ": " if where else "",
        first=first["msg"][:120],
    )
