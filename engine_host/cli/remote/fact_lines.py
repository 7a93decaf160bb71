"""The facts of a host as lines, each part with its age."""

from collections.abc import Iterator

from engine_host.cli.output import size
from engine_host.cli.status import no_gpu_lines
from engine_host.cli.text.tables import table
from engine_host.core.bounds.cut_text import cut_text
from engine_host.protocol.remote.hosts import RemoteFacts, RemoteGpu

_PARTS = ("system", "memory", "disks", "gpus", "engines", "containers", "units", "tools")


def fact_lines(facts: RemoteFacts, now: float) -> list[str]:
    """Return what is known of a host; `now` in seconds since the epoch."""
    if not facts.read_at:
        return [f"Nothing was read of {facts.host} yet: sndr host probe {facts.host}"]
    lines: list[str] = []
    for part in _PARTS:
        if part not in facts.read_at and part not in facts.problems:
            continue
        at = facts.read_at.get(part)
        age = "never read" if at is None else f"{_age(now - at)} ago"
        problem = facts.problems.get(part)
        lines.append(f"{part} ({age}{f'; {problem}' if problem else ''})")
        lines += [f"  {line}" for line in _SHOWN[part](facts)]
    return lines


def _age(seconds: float) -> str:
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def _system(facts: RemoteFacts) -> Iterator[str]:
    yield " · ".join(filter(None, (facts.system, facts.kernel, facts.machine)))
    yield " · ".join(filter(None, (facts.cpu, f"{facts.cpus} CPUs" if facts.cpus else None)))
    yield " · ".join(filter(None, (facts.python, f"{facts.user} in {facts.home}")))


def _memory(facts: RemoteFacts) -> Iterator[str]:
    yield f"{size(facts.memory_free)} of {size(facts.memory_total)} available"


def _disks(facts: RemoteFacts) -> Iterator[str]:
    rows = [
        (
            disk.mount,
            disk.device,
            f"{size(disk.free)} of {size(disk.total)} free",
            " ".join(
                word for word, says in (("root disk", disk.is_root), ("models", disk.holds_models)) if says
            ),
        )
        for disk in facts.disks
    ]
    yield from table(("mount", "device", "space", "note"), rows) if rows else ()


def _gpus(facts: RemoteFacts) -> Iterator[str]:
    if facts.driver:
        yield f"driver {facts.driver}"
    yield from no_gpu_lines(facts.no_gpu)
    for gpu in facts.gpus:
        yield _gpu(gpu)
    names = {gpu.uuid: str(gpu.index) for gpu in facts.gpus}
    for holder in facts.holders:
        where = names.get(holder.gpu, holder.gpu)
        yield f"  {size(holder.memory)} of GPU {where} held by {holder.name} (pid {holder.pid})"


def _gpu(gpu: RemoteGpu) -> str:
    parts = [
        f"{gpu.index}: {gpu.name}",
        f"{size(gpu.memory_used)} of {size(gpu.memory_total)} used",
        _measured(gpu.utilization, "%"),
        _measured(gpu.temperature, "°C"),
        _measured(gpu.power, "W") + (f" of {gpu.power_limit:.0f} W" if gpu.power_limit is not None else ""),
    ]
    if gpu.nvlinks is not None:
        parts.append(f"{gpu.nvlinks} NVLinks")
    return " · ".join(parts)


def _measured(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:.0f} {unit}"


def _engines(facts: RemoteFacts) -> Iterator[str]:
    for engine in facts.engines:
        where = ", ".join(engine.listens) or "no TCP port that can be seen"
        yield f"{engine.kind} (pid {engine.pid}, {engine.user}) on {where}"
        yield f"  {cut_text(' '.join(engine.arguments), 400)}"


def _tools(facts: RemoteFacts) -> Iterator[str]:
    yield " ".join(sorted(facts.tools))


_SHOWN = {
    "system": _system,
    "memory": _memory,
    "disks": _disks,
    "gpus": _gpus,
    "engines": _engines,
    "containers": lambda facts: iter(facts.containers),
    "units": lambda facts: iter(facts.units),
    "tools": _tools,
}
