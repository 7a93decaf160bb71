"""The facts of a host as tables, each part with its age; what was not read is a dash and never a nought."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import RemoteEngine, RemoteFacts, RemoteGpu
from sndr_gui.kit import formats

# The options by which engines are given the ids that they serve; vLLM takes several after one.
_ID_OPTIONS = frozenset({"--served-model-name", "--alias", "-a"})
Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class FactPart:
    """One part of the facts: its age in words, why it could not be read, and what it says."""

    id: str
    title: str
    age: str
    problem: str = ""
    headings: tuple[str, ...] = ()
    rows: Rows = field(default=())
    nothing: str = ""


def fact_part(facts: RemoteFacts | None, part: str, now: float) -> FactPart:
    """Return one part of the facts; `now` in seconds since the epoch."""
    title, headings, rows, nothing = _PARTS[part]
    at = facts.read_at.get(part) if facts is not None else None
    if facts is None or at is None:
        problem = facts.problems.get(part, "") if facts is not None else ""
        return FactPart(
            part, title, tr("never read"), problem, nothing=tr("Read the facts to see them here.")
        )
    return FactPart(
        id=part,
        title=title,
        age=tr("read {age}", age=formats.age(max(0.0, now - at))),
        problem=facts.problems.get(part, ""),
        headings=headings,
        rows=rows(facts),
        nothing=nothing,
    )


def fact_parts(facts: RemoteFacts | None, now: float) -> tuple[FactPart, ...]:
    """Return all parts."""
    return tuple(fact_part(facts, part, now) for part in _PARTS)


def _measured(value: float | None, unit: str) -> str:
    return formats.UNMEASURED if value is None else formats.measure(f"{value:.0f}", unit)


def _system(facts: RemoteFacts) -> Rows:
    said = (
        (tr("System"), " · ".join(filter(None, (facts.system, facts.kernel, facts.machine)))),
        (
            tr("Processor"),
            " · ".join(filter(None, (facts.cpu, tr("{cpus} CPUs", cpus=facts.cpus) if facts.cpus else None))),
        ),
        ("Python", facts.python or ""),
        (tr("User"), " in ".join(filter(None, (facts.user, facts.home)))),
    )
    return tuple((caption, value or formats.UNMEASURED) for caption, value in said)


def _memory(facts: RemoteFacts) -> Rows:
    return (
        (
            tr("Available"),
            tr(
                "{size} of {size_2}",
                size=formats.size(facts.memory_free),
                size_2=formats.size(facts.memory_total),
            ),
        ),
    )


def _disks(facts: RemoteFacts) -> Rows:
    return tuple(
        (
            disk.mount,
            disk.device,
            tr("{size} of {size_2}", size=formats.size(disk.free), size_2=formats.size(disk.total)),
            ", ".join(
                word for word, so in ((tr("root disk"), disk.is_root), ("models", disk.holds_models)) if so
            ),
        )
        for disk in facts.disks
    )


def _gpus(facts: RemoteFacts) -> Rows:
    return tuple(_gpu(gpu, facts) for gpu in facts.gpus)


def _gpu(gpu: RemoteGpu, facts: RemoteFacts) -> tuple[str, ...]:
    holders = [holder for holder in facts.holders if holder.gpu == gpu.uuid]
    held = formats.listed([f"{one.name} ({one.pid}) {formats.size(one.memory)}" for one in holders])
    power = _measured(gpu.power, "W")
    if gpu.power_limit is not None:
        power = tr("{power} of {power_limit} W", power=power, power_limit=f"{gpu.power_limit:.0f}")
    return (
        f"{gpu.index}",
        gpu.name,
        formats.used_of(gpu.memory_used, gpu.memory_total),
        formats.percent(gpu.utilization, 100),
        _measured(gpu.temperature, "°C"),
        power,
        held if holders else tr("nobody"),
    )


def _engines(facts: RemoteFacts) -> Rows:
    return tuple(_engine(engine) for engine in facts.engines)


def _engine(engine: RemoteEngine) -> tuple[str, ...]:
    listens = ", ".join(engine.listens) or tr("not seen")
    model = models_of(engine) or formats.UNMEASURED
    return engine.kind, model, f"{engine.pid}", engine.user, listens, " ".join(engine.arguments)


def models_of(engine: RemoteEngine) -> str:
    """Return the ids that an engine's command line names, in words; empty where it names none."""
    found: list[str] = []
    named = False
    for word in engine.arguments:
        option, equals, value = word.partition("=")
        if option in _ID_OPTIONS:
            found += [value] if equals else []
            named = not equals
        elif word.startswith("-"):
            named = False
        elif named:
            found.append(word)
    return formats.listed(found) if found else ""


def _lines(lines: tuple[str, ...]) -> Rows:
    return tuple((line,) for line in lines)


def _tools(facts: RemoteFacts) -> Rows:
    return tuple(sorted(facts.tools.items()))


_Part = tuple[str, tuple[str, ...], Callable[[RemoteFacts], Rows], str]
_PARTS: dict[str, _Part] = {
    "gpus": (
        "GPUs",
        ("", "GPU", tr("Memory"), tr("Busy"), tr("Heat"), tr("Power"), tr("Held by")),
        _gpus,
        tr("The machine shows no NVIDIA GPU."),
    ),
    "engines": (
        tr("Engines"),
        (tr("Kind"), tr("Model"), tr("Process"), tr("User"), tr("Listens on"), tr("Command line")),
        _engines,
        tr("No engine runs there."),
    ),
    "disks": (
        tr("Disks"),
        (tr("Mounted at"), tr("Device"), tr("Free"), ""),
        _disks,
        tr("No disk was reported."),
    ),
    "memory": (tr("Main memory"), (), _memory, ""),
    "system": (tr("System"), (), _system, ""),
    "containers": (
        tr("Containers"),
        (),
        lambda facts: _lines(facts.containers),
        tr("No container runs there."),
    ),
    "units": (tr("Services"), (), lambda facts: _lines(facts.units), tr("Its user has no service.")),
    "tools": (tr("Tools"), (), _tools, tr("None of the tools that engines are built with was found.")),
}
