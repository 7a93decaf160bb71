"""Read the facts of a connected machine, and keep of the old ones what could not be read anew."""

import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from engine_host.core.visible import visible
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import MemoryHolder, RemoteDisk, RemoteFacts, RemoteGpu
from engine_host.remote.facts.engines import engines_of
from engine_host.remote.facts.parts import Part, parts_of
from engine_host.remote.facts.surroundings import no_gpu_of
from engine_host.remote.run import SCRIPTS, RemoteOutcome, RemoteScript

READ = RemoteScript.read(SCRIPTS / "read_facts.sh")
PATIENCE = 90.0
_MOST_LINES = 200
_LONGEST = 300
_MIB, _KIB = 1 << 20, 1 << 10
_LARGEST = 1 << 60
_NO_DISKS = ("tmpfs", "devtmpfs", "udev", "none", "overlay", "shm", "proc", "sysfs", "efivarfs")
_WORD = re.compile(r"\S+")
_LINK = re.compile(r"^\s+Link \d+: [\d.]+ GB/s$")

Parts = Mapping[str, Part]
Run = Callable[[RemoteScript, bytes, float], Awaitable[RemoteOutcome]]
"""Runs a program with its data there, for so many seconds at most."""


async def read_facts(run: Run, model_root: str | None, old: RemoteFacts) -> RemoteFacts:
    """Read the facts of a machine by `run`. Raises what that raises, and HostError(ssh_failed)."""
    mark = secrets.token_hex(16)
    outcome = await run(READ, f"{mark}\n{model_root or ''}\n".encode(), PATIENCE)
    printed = outcome.need_success(tr("Reading the facts of {host}", host=old.host)).decode(
        "utf-8", "replace"
    )
    return understood(parts_of(printed, mark), mark, old, time.time())


def understood(parts: Parts, mark: str, old: RemoteFacts, now: float) -> RemoteFacts:
    """Return the facts in these parts; a part that says nothing leaves what was known, with its time."""
    changes: dict[str, Any] = {}
    read_at, problems = dict(old.read_at), {}
    for name, needed, understand in _READERS:
        there = [one for one in needed if one in parts]
        failed = [why for one in there if (why := parts[one].problem) is not None]
        if failed:
            problems[name] = failed[0]
        if not there:
            if name in _ABSENT:
                changes |= _ABSENT[name]
                read_at[name] = now
                problems[name] = _ABSENT_WHY[name]
        elif parts[there[0]].problem is None:
            changes |= understand(parts, mark)
            read_at[name] = now
    if "surroundings" in parts:
        changes["no_gpu"] = no_gpu_of(parts)
    told = _number(_first(parts, "clock") or "")
    if told is not None and told > 0:
        changes["clock_ahead"] = float(round(told - now))
    return old.model_copy(update={**changes, "read_at": read_at, "problems": problems})


def _system(parts: Parts, _mark: str) -> dict[str, Any]:
    told = dict(line.partition("=")[::2] for line in _lines(parts, "os"))
    name = (told.get("PRETTY_NAME") or told.get("NAME") or "").strip("\"'")
    processor = _lines(parts, "processor")
    model = next((line.partition(":")[2].strip() for line in processor if ":" in line), None)
    count = next((_number(line) for line in processor if line.strip().isdecimal()), None)
    python = _lines(parts, "python")
    return {
        "system": _shown(name),
        "kernel": _shown(_first(parts, "kernel")),
        "machine": _shown(_first(parts, "machine")),
        "user": _shown(_first(parts, "user")),
        "home": _shown(_first(parts, "home")),
        "python": _shown(" ".join(python[-1:] + python[:1])) if len(python) > 1 else None,
        "cpu": _shown(model),
        "cpus": int(count) if count is not None else None,
    }


def _memory(parts: Parts, _mark: str) -> dict[str, Any]:
    told = {}
    for line in _lines(parts, "memory"):
        name, _, value = line.partition(":")
        told[name] = _bytes(value.replace("kB", ""), _KIB)
    return {"memory_total": told.get("MemTotal"), "memory_free": told.get("MemAvailable")}


def _disks(parts: Parts, _mark: str) -> dict[str, Any]:
    found = {disk.mount: disk for disk in _file_systems(_lines(parts, "disks"))}
    if "models" in parts and parts["models"].code == 0:
        for disk in _file_systems(_lines(parts, "models")):
            found[disk.mount] = disk.model_copy(update={"holds_models": True})
    kept = [
        disk
        for disk in found.values()
        if disk.is_root or disk.holds_models or not disk.device.startswith(_NO_DISKS)
    ]
    return {"disks": tuple(kept[:_MOST_LINES])}


def _file_systems(lines: list[str]) -> Iterator[RemoteDisk]:
    for line in lines[1:]:
        words = list(_WORD.finditer(line))
        at = next((at for at in range(1, len(words) - 4) if _are_sizes(words[at : at + 5])), None)
        if at is None:
            continue
        total, free = _bytes(words[at][0], _KIB), _bytes(words[at + 2][0], _KIB)
        if not total or free is None:
            continue
        device, mount = line[: words[at].start()].strip(), line[words[at + 4].start() :]
        yield RemoteDisk(
            device=visible(device)[:_LONGEST],
            mount=visible(mount)[:_LONGEST],
            total=total,
            free=free,
            is_root=mount == "/",
        )


def _are_sizes(words: list[re.Match[str]]) -> bool:
    """Return True for all, used and free bytes, a share, and the beginning of a mount's name.

    That name may hold spaces, and a device's too; the numbers between them do not. They are looked for word
    by word: one pattern for the line would try each beginning with each length of a long row of spaces.
    """
    total, used, free, _, mount = (word[0] for word in words)
    return (
        mount.startswith("/")
        and total.isdecimal()
        and used.isdecimal()
        and free.removeprefix("-").isdecimal()
    )


def _gpus(parts: Parts, _mark: str) -> dict[str, Any]:
    capabilities = {row[0]: row[1] for row in _rows(parts, "capabilities", 2)}
    links = _links(parts)
    found, driver = [], None
    for row in _rows(parts, "gpus", 10):
        index = _number(row[0])
        if index is None:
            continue
        driver = _shown(row[9])
        found.append(
            RemoteGpu(
                index=int(index),
                uuid=row[1][:100],
                name=_shown(row[2]) or "",
                memory_total=_bytes(row[3], _MIB),
                memory_used=_bytes(row[4], _MIB),
                utilization=_number(row[5]),
                temperature=_number(row[6]),
                power=_number(row[7]),
                power_limit=_number(row[8]),
                capability=_shown(capabilities.get(row[1])),
                nvlinks=links.get(row[1]) if "nvlinks" in parts and parts["nvlinks"].code == 0 else None,
            )
        )
    holders = tuple(
        MemoryHolder(gpu=row[0][:100], pid=int(pid), name=_shown(row[3]) or "", memory=_bytes(row[2], _MIB))
        for row in _rows(parts, "holders", 4)
        if (pid := _number(row[1])) is not None
    )
    return {"gpus": tuple(found), "driver": driver, "holders": holders}


def _links(parts: Parts) -> dict[str, int]:
    """Return how many NVLinks of each GPU are up, by its UUID."""
    found: dict[str, int] = {}
    current = ""
    for line in _lines(parts, "nvlinks"):
        if (gpu := re.match(r"GPU \d+: .*\(UUID: ([\w-]+)\)$", line)) is not None:
            current = gpu[1]
            found[current] = 0
        elif current and _LINK.match(line):
            found[current] += 1
    return found


def _engines(parts: Parts, mark: str) -> dict[str, Any]:
    return {"engines": engines_of(parts["engines"].text, mark)[:_MOST_LINES]}


def _containers(parts: Parts, _mark: str) -> dict[str, Any]:
    return {"containers": tuple(_shown_lines(parts, "docker") + _shown_lines(parts, "podman"))}


def _units(parts: Parts, _mark: str) -> dict[str, Any]:
    return {"units": tuple(_shown_lines(parts, "units"))}


def _tools(parts: Parts, _mark: str) -> dict[str, Any]:
    found = {}
    for line in _lines(parts, "tools"):
        if line.startswith("/"):
            found[line.rpartition("/")[2][:50]] = line[:_LONGEST]
    return {"tools": found}


Reader = tuple[str, tuple[str, ...], Callable[[Parts, str], dict[str, Any]]]
# Each: the name of the facts, the parts they are made of (a failed first one says nothing), how.
_READERS: tuple[Reader, ...] = (
    ("system", ("os", "kernel", "machine", "user", "home", "python", "processor"), _system),
    ("memory", ("memory",), _memory),
    ("disks", ("disks", "models"), _disks),
    ("gpus", ("gpus", "capabilities", "holders", "nvlinks"), _gpus),
    ("engines", ("engines",), _engines),
    ("containers", ("docker", "podman"), _containers),
    ("units", ("units",), _units),
    ("tools", ("tools",), _tools),
)
# What is not there is a fact too.
_ABSENT: dict[str, dict[str, Any]] = {
    "gpus": {"gpus": (), "driver": None, "holders": ()},
    "containers": {"containers": ()},
    "units": {"units": ()},
}
_ABSENT_WHY = {
    "gpus": "there is no nvidia-smi",
    "containers": "there is neither docker nor podman",
    "units": "there is no systemctl",
}


def _lines(parts: Parts, name: str) -> list[str]:
    found = parts.get(name)
    return [] if found is None or found.code not in (0, None) else found.text.splitlines()


def _first(parts: Parts, name: str) -> str | None:
    return next(iter(_lines(parts, name)), None)


def _shown_lines(parts: Parts, name: str) -> list[str]:
    return [visible(line.strip())[:_LONGEST] for line in _lines(parts, name)[:_MOST_LINES] if line.strip()]


def _rows(parts: Parts, name: str, fields: int) -> Iterator[list[str]]:
    """The rows of a table of nvidia-smi; the last field may hold commas."""
    for line in _lines(parts, name)[:_MOST_LINES]:
        row = [field.strip() for field in line.split(",", fields - 1)]
        if len(row) == fields:
            yield row


def _shown(text: str | None) -> str | None:
    return visible(text.strip())[:_LONGEST] or None if text is not None else None


def _number(text: str) -> float | None:
    """Return a number; None for what nvidia-smi writes where it knows none."""
    try:
        found = float(text.strip())
    except ValueError:
        return None
    return found if -_LARGEST < found < _LARGEST else None


def _bytes(text: str, unit: int) -> int | None:
    found = _number(text)
    return None if found is None or found < 0 else min(int(found * unit), _LARGEST)
