"""Writes the sheet of a remote host in Markdown: what it is and runs, what was decided, what is left."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence

from engine_host.core.visible import visible
from engine_host.protocol.base import Severity
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.remote.hosts import RemoteEngine, RemoteFacts, RemoteHost
from engine_host.remote.lints import ids_of

_GIB = 2**30
_LONGEST = 2000
# Of a text that a host sent: nothing in it may become a heading, a link, a row or HTML of the sheet.
_SEPARATORS = re.compile(r";\s|\n")
_SIGNS = re.compile(r"([\\`*_\[\]<>#|~&])")


def sheet(
    host: RemoteHost, facts: RemoteFacts, findings: Sequence[Finding], profile: Sequence[RemoteEngine] = ()
) -> str:
    """Return the sheet; what was not read says so, and nothing is guessed."""
    parts = (
        [f"# {_text(host.name)}", ""],
        _section("Decided", _decided(host)),
        _section("Measured", _measured(facts)),
        _section("Runs", _runs(facts)),
        _section("Kept as it should run", (f"* {_command(engine)}" for engine in profile)),
        _section("Do not", (*_said(host.rejected, "*"), *_warned(findings, Severity.ERROR))),
        _section(
            "Left to do",
            (*_said(host.tasks, "* [ ]"), *_warned(findings, Severity.WARNING, Severity.INFO)),
        ),
        _section("Notes", (host.notes or "").splitlines()),
    )
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    found = list(lines)
    return [f"## {title}", "", *found, ""] if found else []


def _decided(host: RemoteHost) -> Iterator[str]:
    yield f"* ssh destination: {_code(host.destination)}"
    mode = "our engine host" if host.mode.value == "engine_host" else "nothing of ours is installed there"
    yield f"* mode: {mode}"
    if host.role is not None:
        yield f"* role: {host.role.value}"
    for name, value in (
        ("model root", host.model_root),
        ("its address comes from", host.address_command),
    ):
        if value:
            yield f"* {name}: {_code(value)}"


def _measured(facts: RemoteFacts) -> Iterator[str]:
    if not facts.read_at:
        yield f"Not read yet: `sndr host probe {facts.host}`"
        return
    oldest, newest = min(facts.read_at.values()), max(facts.read_at.values())
    parts = f", parts of it at {_when(oldest)}" if newest - oldest > 60 else ""
    yield f"Read at {_when(newest)}{parts}; anew with `sndr host probe {facts.host}`."
    yield ""
    for name, value in (
        ("system", " ".join(filter(None, (facts.system, facts.kernel, facts.machine)))),
        ("processor", _processor(facts)),
        ("main memory", _of_bytes(facts.memory_free, facts.memory_total)),
        ("Python", facts.python),
        ("NVIDIA driver", facts.driver),
    ):
        yield f"* {name}: {_text(value) if value else 'not known'}"
    for gpu in facts.gpus:
        used = None if gpu.memory_used is None else f"{gpu.memory_used / _GIB:.1f}"
        total = None if gpu.memory_total is None else f"{gpu.memory_total / _GIB:.1f}"
        memory = f"{used or 'not known'} of {total or 'not known'} GiB used"
        yield f"* GPU {gpu.index}: {_text(gpu.name)}, {memory}, {_code(gpu.uuid)}"
    for disk in facts.disks:
        marks = [name for name, is_so in (("root", disk.is_root), ("models", disk.holds_models)) if is_so]
        marked = f" ({', '.join(marks)})" if marks else ""
        place = f"{_code(disk.mount)} on {_code(disk.device)}{marked}"
        yield f"* disk {place}: {_of_bytes(disk.free, disk.total)}"
    for part, problem in sorted(facts.problems.items()):
        yield f"* {_text(part)}: not read, {_text(problem)}"


def _runs(facts: RemoteFacts) -> Iterator[str]:
    for engine in facts.engines:
        listens = ", ".join(map(_code, engine.listens)) or "no address"
        names = ", ".join(map(_code, ids_of(engine)))
        served = f", serves {names}" if names else ""
        yield f"* {_text(engine.kind)}, process {engine.pid} of {_text(engine.user)}, on {listens}{served}"
        yield f"  {_command(engine)}"
    for name, lines in (("container", facts.containers), ("unit", facts.units)):
        for line in lines:
            yield f"* {name}: {_code(line)}"


def _warned(findings: Sequence[Finding], *severities: Severity) -> Iterator[str]:
    for one in findings:
        if one.severity in severities:
            fix = f" {_text(one.fix.text)}" if one.fix and one.fix.text else ""
            command = f" {_code(one.fix.command)}" if one.fix and one.fix.command else ""
            yield f"* [ ] {_text(one.message)}{fix}{command}"


def _said(kept: str | None, mark: str) -> Iterator[str]:
    """Yield what a person keeps, one a line or with semicolons between."""
    for line in _SEPARATORS.split(kept or ""):
        if line.strip():
            yield f"{mark} {_text(line)}"


def _processor(facts: RemoteFacts) -> str:
    cores = f"{facts.cpus} processors" if facts.cpus else ""
    return ", ".join(filter(None, (facts.cpu, cores)))


def _of_bytes(free: int | None, total: int | None) -> str:
    if total is None:
        return "not known"
    return f"{'not known' if free is None else f'{free / _GIB:.1f}'} of {total / _GIB:.1f} GiB free"


def _command(engine: RemoteEngine) -> str:
    return _code(" ".join(engine.arguments))


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))


def _text(value: str) -> str:
    """Return a text of somebody else's as one line that means only itself."""
    return _SIGNS.sub(r"\\\1", " ".join(visible(value[:_LONGEST]).split()))


def _code(value: str) -> str:
    """Return it as code; a backtick within it would end that."""
    return f"`{' '.join(visible(value[:_LONGEST]).replace('`', chr(39)).split())}`"
