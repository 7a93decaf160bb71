"""The energy of GPUs in a time: by their own counters, else by their power summed up."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from engine_host.protocol.base import Seconds
from engine_host.protocol.telemetry import RECORDED_PREFIX, EnergyPage, EnergySource, GpuEnergy, Series

_GPU = re.compile(rf"({re.escape(RECORDED_PREFIX)})?gpu\.(\d{{1,3}})\.(energy|power)\Z")
_GENERATED = re.compile(r"engine\..+\.generated\Z")


def energy_of(
    series: Iterable[Series], step: float, since: Seconds, until: Seconds, seq: int = 0
) -> EnergyPage:
    """Return what the series of a time say of energy and of tokens; what they do not say is None."""
    known = {one.name: one for one in series}
    gpus: dict[tuple[bool, int], GpuEnergy] = {}
    for name, one in known.items():
        found = _GPU.match(name)
        if found is None:
            continue
        key = bool(found[1]), int(found[2])
        label = f"GPU {found[2]}"
        if found[3] == "energy":
            told = _by_counter(label, one, recorded=key[0])
            if told is not None:
                gpus[key] = told
        elif key not in gpus and (told := _by_power(label, one, step, recorded=key[0])) is not None:
            gpus[key] = told
    here = [gpu.joules for (recorded, _), gpu in gpus.items() if not recorded]
    counts = [
        tokens for one in known.values() if _GENERATED.match(one.name) and (tokens := _gain(one)) is not None
    ]
    joules, tokens = sum(here) if here else None, round(sum(counts)) if counts else None
    return EnergyPage(
        seq=seq,
        since=since,
        until=until,
        gpus=tuple(gpus[key] for key in sorted(gpus)),
        joules=joules,
        generated_tokens=tokens,
        per_thousand=joules * 1000 / tokens if joules is not None and tokens else None,
    )


def _by_counter(label: str, series: Series, *, recorded: bool) -> GpuEnergy | None:
    measured = _measured(series)
    gain = _gain(series)
    if gain is None:
        return None
    seconds = measured[-1][0] - measured[0][0]
    return GpuEnergy(name=label, joules=gain, source=EnergySource.COUNTER, seconds=seconds, recorded=recorded)


def _by_power(label: str, series: Series, step: float, *, recorded: bool) -> GpuEnergy | None:
    joules = seconds = 0.0
    for (at, watts), (then, more) in pairwise(_measured(series)):
        # What was not measured is not made up, and the ends count as far as they were seen.
        if then - at <= 1.5 * step:
            joules += (watts + more) / 2 * (then - at)
            seconds += then - at
    if not seconds:
        return None
    return GpuEnergy(name=label, joules=joules, source=EnergySource.POWER, seconds=seconds, recorded=recorded)


def _gain(series: Series) -> float | None:
    """Return by how much a counter grew; one that begins anew counts from 0. None with a single value."""
    values = [value for _, value in _measured(series)]
    if len(values) < 2:
        return None
    return sum(new - old if new >= old else new for old, new in pairwise(values))


def _measured(series: Series) -> Sequence[tuple[float, float]]:
    pairs = zip(series.at, series.values, strict=True)
    return [(at, value) for at, value in pairs if value is not None]
