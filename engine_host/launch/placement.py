"""The engines that a start ends first, those that go on beside it, and the memory that this leaves it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine_host.core.findings.table import finding
from engine_host.launch.preflight.machine import MachineState
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import ALL_ENGINES, MAIN_MEMORY, DeviceNeed, EngineRef, Finding
from engine_host.telemetry.machine import ProcessMemory

LEAVING = {EngineState.DRAINING, EngineState.STOPPING}
_LOADING = {EngineState.PREPARING, EngineState.STARTING}

Held = Callable[[Engine], ProcessMemory | None]


def held_by_readings(engine: Engine) -> ProcessMemory | None:
    """Return the memory that an engine held when it was last read."""
    readings = engine.readings
    if readings is None or readings.memory is None:
        return None
    return ProcessMemory(readings.memory, readings.memory_of_files or 0)


@dataclass(frozen=True)
class Placement:
    """The engines as a start finds them: `ended` are ended by it first, `beside` go on.

    `leaving` are being stopped already, or will be by a start before this one. `absent` are words that were
    to name an engine and name none.
    """

    ended: tuple[Engine, ...] = ()
    beside: tuple[Engine, ...] = ()
    leaving: tuple[Engine, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The public names of the engines that are ended."""
        return tuple(engine.name for engine in self.ended)


def place(name: str, instead_of: Sequence[str] | None, running: Iterable[Engine]) -> Placement:
    """Return what a start under this public name does to the engines that run."""
    alive = list(running)
    ending = {
        ref.id for engine in alive if engine.state is EngineState.PREPARING for ref in engine.plan.instead_of
    }
    leaving = [one for one in alive if one.state in LEAVING or one.id in ending]
    there = [one for one in alive if one not in leaving]
    wanted = {name} if instead_of is None else set(instead_of)
    ended = [one for one in there if ALL_ENGINES in wanted or not wanted.isdisjoint({one.id, one.name})]
    beside = [one for one in there if one not in ended]
    named = {ALL_ENGINES, name} | {word for one in alive for word in (one.id, one.name)}
    absent = sorted(set(instead_of or ()) - named)
    return Placement(tuple(ended), tuple(beside), tuple(leaving), tuple(absent))


def nothing_to_end(placement: Placement) -> list[Finding]:
    """Return a finding for each name of an engine that does not run."""
    return [finding("nothing_to_end", name=name) for name in placement.absent]


def references(engines: Iterable[Engine]) -> tuple[EngineRef, ...]:
    """Return engines by id and name."""
    return tuple(EngineRef(id=engine.id, name=engine.name) for engine in engines)


@dataclass(frozen=True)
class FoundMemory:
    """The machine's memory as a start finds it: what the engines that end give back is free.

    What engines that still load will yet take is not, nor are the files that running ones have mapped.
    `gpus` say so in what is used of them; `held` are the bytes of each engine beside, by device.
    """

    main: int
    gpus: tuple[Gpu, ...] = ()
    state: MachineState = field(default_factory=MachineState)
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def missing(self, needs: Iterable[DeviceNeed]) -> dict[str, int]:
        """Return the bytes that needs go beyond what is free, by device."""
        free = {MAIN_MEMORY: self.main} | {gpu.uuid: gpu.memory_free for gpu in self.gpus}
        short = {need.device: (need.bytes or 0) - free.get(need.device, 0) for need in needs}
        return {device: missing for device, missing in short.items() if missing > 0}


def found_memory(
    placement: Placement, model_path: str, free: int, gpus: Sequence[Gpu], state: MachineState, held: Held
) -> FoundMemory:
    """Return the memory that a start of this model finds; `free` are the bytes of main memory now."""
    given_back = (*placement.ended, *placement.leaving)
    beside: dict[str, dict[str, int]] = {}
    for engine in given_back:
        memory = held(engine)
        free += memory.resident - memory.of_files if memory is not None else 0
    mapped: dict[str, int] = {}
    for engine in placement.beside:
        memory = held(engine) or ProcessMemory(0)
        yet = _yet(engine, MAIN_MEMORY, memory.resident)
        beside[engine.id] = {MAIN_MEMORY: memory.resident + yet}
        free -= yet
        path = engine.plan.model_path
        # Who maps the same file shares its pages.
        if path != model_path:
            mapped[path] = max(mapped.get(path, 0), memory.of_files)
    cards = tuple(_card(gpu, placement, state, beside) for gpu in gpus)
    gone = {engine.id for engine in given_back}
    holders = tuple(holder for holder in state.holders if holder.engine not in gone)
    return FoundMemory(max(free - sum(mapped.values()), 0), cards, replace(state, holders=holders), beside)


def _card(gpu: Gpu, placement: Placement, state: MachineState, beside: dict[str, dict[str, int]]) -> Gpu:
    """Return a GPU as the start finds it."""
    held: dict[str, int] = {}
    for holder in state.holders:
        if holder.gpu == gpu.index and holder.engine:
            held[holder.engine] = held.get(holder.engine, 0) + holder.size
    told = {holder.engine for holder in state.holders}
    used = gpu.memory_used
    for engine in (*placement.ended, *placement.leaving):
        if engine.id in told or engine.pid is None:
            used -= held.get(engine.id, 0)
        elif engine.plan.needs and all(need.bytes is not None for need in engine.plan.needs):
            # In a container the driver does not say who holds what.
            used -= _need(engine, gpu.uuid)
        else:
            # Nobody can say how much comes back.
            used = 0
    for engine in placement.beside:
        now = held.get(engine.id, 0)
        yet = _yet(engine, gpu.uuid, now)
        used += yet
        # Where nobody tells what it holds, it holds what was planned.
        beside[engine.id][gpu.uuid] = now + yet or _need(engine, gpu.uuid)
    most = gpu.memory_total - (gpu.memory_reserved or 0)
    return gpu.model_copy(update={"memory_used": min(max(used, 0), most)})


def _need(engine: Engine, device: str) -> int:
    return sum(need.bytes or 0 for need in engine.plan.needs if need.device == device)


def _yet(engine: Engine, device: str, now: int) -> int:
    """Bytes that an engine which still loads will take beyond what it holds now."""
    return max(_need(engine, device) - now, 0) if engine.state in _LOADING else 0


def computes_on_processor(engine: Engine) -> bool:
    """Return True for an engine whose model lies in main memory."""
    return any(need.device == MAIN_MEMORY for need in engine.plan.needs)


def shares_processor(needs: Iterable[DeviceNeed], placement: Placement) -> list[Finding]:
    """Return a finding where a start and engines beside it compute on the same cores."""
    names = [engine.name for engine in placement.beside if computes_on_processor(engine)]
    here = any(need.device == MAIN_MEMORY for need in needs)
    return [finding("shares_processor", beside=names)] if here and names else []


def name_taken(name: str, placement: Placement, command_as: Callable[[str], str]) -> list[Finding]:
    """Return a finding where an engine that goes on has the public name of the start.

    `command_as` is the start's command line with another name.
    """
    taken = {engine.name for engine in placement.beside}
    if name not in taken:
        return []
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    other = next(engine for engine in placement.beside if engine.name == name)
    free = f"{name}-{number}"
    return [finding("name_taken", command=command_as(free), name=name, engine=other.id, free=free)]


def no_room_beside(
    short: Mapping[str, int],
    placement: Placement,
    found: FoundMemory,
    command_instead_of: Callable[[Sequence[str]], str],
) -> Finding | None:
    """Return the finding on a start that fits once engines beside it end; None where that does not help.

    `short` are the missing bytes by device; `command_instead_of` is the start's command line where it ends
    these engines.
    """
    enough = _fewest(short, placement.beside, found)
    if not enough:
        return None
    names = {gpu.uuid: f"GPU {gpu.index} ({gpu.name})" for gpu in found.gpus}
    worst = max(short, key=lambda device: short[device])
    ended = [*placement.names, *(engine.name for engine in enough)]
    return finding(
        "no_room_beside",
        command=command_instead_of(ended),
        evidence={"missing_by_device": dict(short), "engines": [engine.id for engine in enough]},
        missing=short[worst],
        device=names.get(worst, "main memory"),
        beside=[engine.name for engine in placement.beside],
        instead_of=[engine.name for engine in enough],
    )


def _fewest(short: Mapping[str, int], beside: Sequence[Engine], found: FoundMemory) -> list[Engine]:
    """Return the engines whose end frees enough: the smallest that does alone; none if all do not."""

    def left(ended: Sequence[Engine]) -> int:
        freed = [found.held.get(engine.id, {}) for engine in ended]
        return sum(
            max(missing - sum(one.get(device, 0) for one in freed), 0) for device, missing in short.items()
        )

    def size(engine: Engine) -> int:
        return sum(found.held.get(engine.id, {}).values())

    if not short or left(beside):
        return []
    alone = [engine for engine in beside if not left([engine])]
    if alone:
        return [min(alone, key=size)]
    chosen: list[Engine] = []
    for engine in sorted(beside, key=size, reverse=True):
        if left([*chosen, engine]) < left(chosen):
            chosen.append(engine)
        if not left(chosen):
            break
    return chosen
