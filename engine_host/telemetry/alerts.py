"""Judges measurements: an alert begins when a value stays beyond its threshold, and ends well within it."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from engine_host.core.settings import AlertSettings
from engine_host.protocol.bench.alerts import AlertKind

GIB = 1 << 30
_GPU = re.compile(r"gpu\.(\d{1,3})\.(temperature|memory\.used|ecc\.errors)\Z")
_HOLDS = {
    AlertKind.GPU_TEMPERATURE: 10.0,
    AlertKind.GPU_MEMORY: 30.0,
    AlertKind.RAM: 10.0,
    AlertKind.DISK: 0.0,
}
"""Seconds for which a value has to be beyond its threshold, or back, before that counts."""
_COOLER = 5.0
"""Degrees below the threshold at which a GPU is cool again."""
_EMPTIER = 0.02
"""Share below the threshold at which memory has room again."""
_ROOMIER = 1.1
"""Times the threshold of free bytes at which a disk has room again."""

Key = tuple[AlertKind, str]


@dataclass(frozen=True)
class Measured:
    """One value beside its threshold: `beyond` it, or well `within` it; neither in between."""

    kind: AlertKind
    subject: str
    value: float
    threshold: float
    unit: str
    beyond: bool
    within: bool

    @property
    def key(self) -> Key:
        """The alert that this value would begin or end."""
        return self.kind, self.subject


@dataclass(frozen=True)
class Judged:
    """The values whose alerts begin now, those that go on, and the alerts that end."""

    begun: tuple[Measured, ...]
    going_on: tuple[Measured, ...]
    ended: tuple[Key, ...]


@dataclass
class AlertWatch:
    """Remembers since when each value is beyond or within its threshold."""

    _beyond: dict[Key, float] = field(default_factory=dict)
    _within: dict[Key, float] = field(default_factory=dict)
    _errors: dict[str, float] = field(default_factory=dict)

    def judge(
        self, at: float, measured: Collection[Measured], settings: AlertSettings, is_open: Collection[Key]
    ) -> Judged:
        """Judge the values of one moment; alerts whose threshold was switched off end."""
        begun, going_on, ended = [], [], []
        for one in measured:
            if one.beyond:
                self._within.pop(one.key, None)
                since = self._beyond.setdefault(one.key, at)
                if one.key in is_open:
                    going_on.append(one)
                elif at - since >= _HOLDS[one.kind]:
                    begun.append(one)
                continue
            self._beyond.pop(one.key, None)
            if not one.within:
                self._within.pop(one.key, None)
            if (
                one.key in is_open
                and one.within
                and at - self._within.setdefault(one.key, at) >= _HOLDS[one.kind]
            ):
                self._within.pop(one.key, None)
                ended.append(one.key)
        ended += [key for key in is_open if _is_off(key[0], settings)]
        return Judged(tuple(begun), tuple(going_on), tuple(ended))

    def new_errors(self, values: Mapping[str, float], settings: AlertSettings) -> list[tuple[str, int]]:
        """Return the GPUs that counted more memory errors than before, each with how many more."""
        found = []
        for name, value in values.items():
            match = _GPU.match(name)
            if match is None or match[2] != "ecc.errors":
                continue
            before = self._errors.get(name)
            self._errors[name] = value
            if settings.gpu_ecc and before is not None and value > before:
                found.append((f"GPU {match[1]}", int(value - before)))
        return found


def measurements(values: Mapping[str, float], settings: AlertSettings) -> Iterator[Measured]:
    """Yield what a sample says of temperature and memory, beside the thresholds that are on."""
    for name, value in values.items():
        match = _GPU.match(name)
        if match is None:
            continue
        subject = f"GPU {match[1]}"
        if match[2] == "temperature" and settings.gpu_temperature:
            most = float(settings.gpu_temperature)
            yield Measured(
                AlertKind.GPU_TEMPERATURE,
                subject,
                value,
                most,
                "celsius",
                value >= most,
                value <= most - _COOLER,
            )
        elif match[2] == "memory.used" and (total := values.get(f"gpu.{match[1]}.memory.total")):
            yield from _share(AlertKind.GPU_MEMORY, subject, value / total, settings.gpu_memory)
    used, total = values.get("ram.used"), values.get("ram.total")
    if used is not None and total:
        yield from _share(AlertKind.RAM, "RAM", used / total, settings.ram)


def disk(folder: str, free: float, settings: AlertSettings) -> Iterator[Measured]:
    """Yield the free bytes of a folder's disk beside the threshold, where that is on."""
    if settings.disk_free:
        least = settings.disk_free * GIB
        yield Measured(AlertKind.DISK, folder, free, least, "bytes", free < least, free >= least * _ROOMIER)


def _share(kind: AlertKind, subject: str, share: float, most: float) -> Iterator[Measured]:
    if most:
        yield Measured(kind, subject, share, most, "share", share >= most, share <= most - _EMPTIER)


def _is_off(kind: AlertKind, settings: AlertSettings) -> bool:
    thresholds = {
        AlertKind.GPU_TEMPERATURE: settings.gpu_temperature,
        AlertKind.GPU_MEMORY: settings.gpu_memory,
        AlertKind.RAM: settings.ram,
        AlertKind.DISK: settings.disk_free,
    }
    return not thresholds.get(kind, 1)
