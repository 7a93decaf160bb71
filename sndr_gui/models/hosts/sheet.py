"""The host sheet: what is known of a machine, as Markdown to keep beside it."""

from __future__ import annotations

import time

from engine_host.protocol.remote_hosts import RemoteFacts, RemoteHost, RemoteMode
from sndr_gui.kit import formats

_EVERYWHERE = ("0.0.0.0:", "[::]:", "*:")


def sheet_of(remote: RemoteHost, facts: RemoteFacts | None) -> str:
    """Return the sheet of a host: decisions, what was measured, warnings, and what is not known yet."""
    lines = [f"# {remote.name}", "", "## Decisions", ""]
    lines += _items(
        ("ssh to", remote.destination),
        ("mode", "without an engine host" if remote.mode is RemoteMode.AGENTLESS else "engine host"),
        ("models in", remote.model_root),
        ("vLLM", remote.default_pin),
        ("address from", remote.address_command),
    )
    if remote.notes:
        lines += ["", *(f"> {_plain(line)}" for line in remote.notes.splitlines())]
    lines += ["", "## Measured", ""]
    lines += _measured(facts) if facts is not None else ["Nothing was read yet."]
    warnings = _warnings(remote, facts)
    lines += ["", "## Do not use", "", *(warnings or ["Nothing was found against it."])]
    lines += ["", "## What is left", "", *(_left(remote, facts) or ["Nothing."])]
    return "\n".join(lines) + "\n"


def _measured(facts: RemoteFacts) -> list[str]:
    newest = max(facts.read_at.values(), default=None)
    read = time.strftime("%Y-%m-%d %H:%M", time.localtime(newest)) if newest is not None else None
    lines = _items(
        ("read at", read),
        ("system", facts.system),
        ("kernel", facts.kernel),
        ("Python", facts.python),
        ("CPU", f"{facts.cpu or 'unknown'}, {facts.cpus} threads" if facts.cpus else facts.cpu),
        ("memory", formats.size(facts.memory_total) if facts.memory_total is not None else None),
        ("driver", facts.driver),
    )
    for gpu in facts.gpus:
        total = formats.size(gpu.memory_total) if gpu.memory_total is not None else "memory unknown"
        links = f", {formats.plural(gpu.nvlinks, 'NVLink')}" if gpu.nvlinks else ""
        lines.append(f"- GPU {gpu.index}: {_plain(gpu.name)}, {total}{links}")
    for disk in facts.disks:
        what = " (models)" if disk.holds_models else " (root)" if disk.is_root else ""
        free = f"{formats.size(disk.free)} free of {formats.size(disk.total)}"
        lines.append(f"- disk {_plain(disk.mount)}{what}: {free}, {_plain(disk.device)}")
    for engine in facts.engines:
        where = f", listens on {_plain(', '.join(engine.listens))}" if engine.listens else ""
        lines.append(f"- runs: {_plain(engine.kind)}, process {engine.pid}{where}")
    return lines


def _warnings(remote: RemoteHost, facts: RemoteFacts | None) -> list[str]:
    if facts is None:
        return []
    found = [
        f"- {_plain(disk.mount)} for models: it is the root disk"
        for disk in facts.disks
        if disk.holds_models and disk.is_root
    ]
    for engine in facts.engines:
        opened = ", ".join(one for one in engine.listens if one.startswith(_EVERYWHERE))
        if opened:
            kind, at = _plain(engine.kind), _plain(opened)
            found.append(f"- {kind} at {at}: everyone on the network can ask it")
    if remote.problem is not None:
        found.append(f"- the connection: {_plain(remote.problem.message)}")
    return found


def _left(remote: RemoteHost, facts: RemoteFacts | None) -> list[str]:
    found = [] if facts is not None else ["- read its facts"]
    if remote.model_root is None:
        found.append("- say where its models are")
    if facts is not None:
        found += [f"- read {_plain(part)}: {_plain(why)}" for part, why in sorted(facts.problems.items())]
        found += [f"- install {tool}" for tool in ("ninja", "gcc") if facts.tools and tool not in facts.tools]
    return found


def _items(*pairs: tuple[str, str | None]) -> list[str]:
    return [f"- {name}: {_plain(value)}" for name, value in pairs if value]


def _plain(text: str) -> str:
    """Return text from a host as a part of one line, with nothing in it that Markdown would act on."""
    one_line = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|!" else sign for sign in one_line if sign.isprintable())
