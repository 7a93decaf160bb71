"""Checks of the machine before a start: driver, GPUs, who holds their memory, disk, ports, versions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.findings.table import finding
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import Finding

_GIB = 2**30
# What vLLM compiles for one model; less ends a start in the middle of it.
_COMPILED, _LEAST = 2 * _GIB, 200 * 2**20
# NCCL and vLLM's queues between processes; a container has 64 MiB unless it is told otherwise.
_SHARED = 512 * 2**20
# Named in a message; the rest are counted.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds memory of a GPU, in bytes; `engine` is the id of the engine that it is of."""

    gpu: int
    pid: int
    name: str
    size: int
    engine: str = ""


@dataclass(frozen=True, slots=True)
class MachineState:
    """The machine as checks see it; bytes, None where the system does not tell.

    `endpoint` is what is wrong with the public endpoint; `compat`: libraries for newer CUDA are here.
    """

    driver: str | None = None
    cuda: str | None = None
    holders: tuple[Holder, ...] = ()
    cache_free: int | None = None
    shared: int | None = None
    endpoint: tuple[Finding, ...] = ()
    compat: bool = False


@dataclass(frozen=True, slots=True)
class BuildNeeds:
    """The needs of a build of an engine: CUDA it was made with, oldest driver and GPU for that."""

    label: str
    cuda: str
    driver: str
    sm: str


def driver(state: MachineState, needs: BuildNeeds) -> Iterator[Finding]:
    """A driver that is too old for the build.

    A driver runs what was made with its own CUDA or an older one, and within a major version with newer ones
    (CUDA Compatibility, NVIDIA).
    """
    if state.cuda is not None:
        old = version_numbers(state.cuda)[:1] < version_numbers(needs.cuda)[:1]
    elif state.driver is not None:
        old = version_numbers(state.driver) < version_numbers(needs.driver)
    else:
        return
    if not old:
        return
    has = f"{state.driver or 'of unknown version'} (CUDA {state.cuda})" if state.cuda else str(state.driver)
    yield finding(
        "driver_too_old",
        # Data centre cards run newer CUDA with the libraries of the package cuda-compat.
        severity=Severity.WARNING if state.compat else Severity.ERROR,
        evidence={"driver": state.driver, "cuda": state.cuda},
        build=needs.label,
        built_with=needs.cuda,
        needs=needs.driver,
        driver_text=has,
    )


def architecture(gpus: Sequence[Gpu], needs: BuildNeeds) -> Iterator[Finding]:
    """GPUs that the build has no kernels for."""
    for gpu in gpus:
        sm = gpu.compute_capability
        if sm is not None and version_numbers(sm) < version_numbers(needs.sm):
            yield finding(
                "gpu_too_old", name=gpu.name, gpu=gpu.index, sm=sm, build=needs.label, needs=needs.sm
            )


def share(gpus: Sequence[Gpu], requested: float, state: MachineState) -> Iterator[Finding]:
    """A share of the memory that is not free: vLLM refuses to start then (request_memory)."""
    fullest = min(gpus, key=lambda gpu: gpu.memory_free / gpu.memory_total, default=None)
    if fullest is None:
        return
    free = fullest.memory_free
    if free >= fullest.memory_total * requested:
        return
    possible = math.floor(free / fullest.memory_total * 100 - 1) / 100
    others = [holder for holder in state.holders if holder.gpu == fullest.index]
    yield finding(
        "vram_held",
        settings={"gpu_memory": possible} if possible > 0 else {},
        evidence={
            "total": fullest.memory_total,
            "holders": [{"pid": one.pid, "name": one.name, "bytes": one.size} for one in others],
        },
        wanted=requested,
        gpu=fullest.index,
        name=fullest.name,
        share=fullest.memory_total * requested,
        free=free,
        held=held_by(others),
    )


def held_by(holders: Sequence[Holder]) -> str:
    """Return the holders of GPU memory, the largest first."""
    if not holders:
        return "The driver does not say who holds the rest."
    largest = sorted(holders, key=lambda holder: -holder.size)
    named = [f"{one.name} (pid {one.pid}) holds {one.size / _GIB:.1f} GiB" for one in largest[:_NAMED]]
    if len(largest) > _NAMED:
        named.append(f"{len(largest) - _NAMED} more hold the rest")
    return f"{', '.join(named)}."


def disk(state: MachineState, cache: Path) -> Iterator[Finding]:
    """Too little room for what vLLM compiles."""
    free = state.cache_free
    if free is None or free >= _COMPILED:
        return
    yield finding(
        "disk_short",
        severity=Severity.ERROR if free < _LEAST else Severity.WARNING,
        free=free,
        cache=str(cache),
        compiled=_COMPILED,
    )


def shared_memory(state: MachineState, processes: int) -> Iterator[Finding]:
    """Too little shared memory for several processes on GPUs, as in a container that was not given more."""
    if processes < 2 or state.shared is None or state.shared >= _SHARED:
        return
    yield finding("shared_memory_small", shared=state.shared, processes=processes)


def ports(state: MachineState) -> Iterator[Finding]:
    """A public endpoint that is not where editors look for it; the engine itself needs no port."""
    for one in state.endpoint:
        yield one.model_copy(update={"severity": min(one.severity, Severity.WARNING, key=_GRAVE.index)})


_GRAVE = list(Severity)


def version(environment: str, found: str, pinned: Sequence[str], install: Fix) -> Iterator[Finding]:
    """A version of vLLM that the program's patches and figures are not made for; `install` a pinned one."""
    if found in pinned:
        return
    yield finding(
        "version_not_pinned",
        fix=install,
        evidence={"installation": environment, "pins": list(pinned)},
        label=environment,
        version=found,
        pinned=" and ".join(pinned),
    )


def version_numbers(text: str) -> tuple[int, ...]:
    """A version as numbers that compare."""
    return tuple(int(part) for part in text.split(".") if part.isdigit())
