"""Reads the ledgers of an engine's processes as they grow, and keeps what became of each patch where."""

import os
import re
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine_host.core.outside import files
from engine_host.protocol.base import Seconds
from engine_host.protocol.patches import (
    OperationResult,
    PatchKind,
    PatchOutcome,
    PatchProbe,
    PatchReason,
    PatchResult,
    ProcessPatches,
    ProcessRole,
)

FORMAT = 1
# A line longer than this is no line of ours: it is counted and passed over.
_LONGEST_LINE = 1 << 16
# Whoever runs in an engine may write here: bytes of a file at one look, files, and what is kept of a process.
_MOST_BYTES = 1 << 20
_MOST_FILES = 256
_MOST_PATCHES = 400
_MOST_OPERATIONS = 200
_NAME = re.compile(r"[0-9]{1,10}\.jsonl")
_WORST = (PatchOutcome.FAILED, PatchOutcome.SKIPPED, PatchOutcome.REVERTED)

_Name = Annotated[str, Field(max_length=40)]
_Numbers = Annotated[tuple[int, ...], Field(max_length=16)]
Milliseconds = Annotated[float, Field(ge=0, lt=1e12)]


class LedgerLine(BaseModel):
    """One line of a ledger; docs/OVERLAY.md describes the fields."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, defer_build=True)

    v: Literal[1]
    at: Seconds
    pid: int = Field(ge=0, lt=1 << 31)
    role: ProcessRole
    rank: int | None = Field(None, ge=0, lt=1 << 20)
    event: Literal["start", "result", "settled", "role", "probe", "note"]
    overhead_ms: Milliseconds | None = None
    patch: str | None = Field(None, max_length=120)
    op: PatchKind | None = None
    target: str = Field("", max_length=400)
    outcome: PatchOutcome | None = None
    reason: PatchReason | None = None
    before: str | None = Field(None, max_length=128)
    after: str | None = Field(None, max_length=128)
    ms: Milliseconds | None = None
    detail: str = Field("", max_length=8_000)
    socket: str | None = Field(None, max_length=200)
    values: dict[_Name, _Numbers] = Field(default_factory=dict, max_length=16)


@dataclass
class _Process:
    """The lines of one process so far, summed up."""

    pid: int
    since: float
    role: ProcessRole = ProcessRole.HELPER
    rank: int | None = None
    overhead_ms: float | None = None
    socket: str | None = None
    operations: dict[str, list[OperationResult]] = field(default_factory=dict)
    settled: dict[str, LedgerLine] = field(default_factory=dict)
    probes: dict[str, PatchProbe] = field(default_factory=dict)
    notes: dict[str, LedgerLine] = field(default_factory=dict)
    unreadable: int = 0

    def is_full_for(self, patch: str) -> bool:
        """Return True for a patch that is new where more are known than there can be."""
        known: tuple[Sized, ...] = (self.settled, self.operations, self.notes)
        new = patch not in self.settled and patch not in self.operations and patch not in self.notes
        return new and max(map(len, known)) >= _MOST_PATCHES


@dataclass
class _File:
    offset: int = 0
    rest: bytes = b""
    identity: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class LedgerChange:
    """A patch whose state in one process is new; `patch` is None when only the process changed."""

    pid: int
    patch: str | None


class LedgerReader:
    """The ledgers of one engine; `read` is called again and again and gives what is new."""

    def __init__(self, folder: Path, chosen: Sequence[str]) -> None:
        """`chosen` are the patches of the start, in order: those not heard of yet are pending."""
        self._folder = folder
        self._chosen = tuple(chosen)
        self._files: dict[str, _File] = {}
        self._processes: dict[int, _Process] = {}

    def read(self) -> tuple[LedgerChange, ...]:
        """Read what was appended since the last call; a folder that is not there yet is empty."""
        changes: list[LedgerChange] = []
        try:
            names = sorted(name for name in os.listdir(self._folder) if _NAME.fullmatch(name))[:_MOST_FILES]
        except OSError:
            return ()
        for name in names:
            for line in self._new_lines(name):
                changes += self._take(name, line)
        return tuple(dict.fromkeys(changes))

    def processes(self) -> tuple[ProcessPatches, ...]:
        """Every process that wrote, API server first; helpers that did nothing are left out."""
        order = list(ProcessRole)
        shown = [
            self._describe(process)
            for process in self._processes.values()
            if process.role is not ProcessRole.HELPER or process.operations or process.unreadable
        ]
        return tuple(sorted(shown, key=lambda one: (order.index(one.role), one.rank or 0, one.since)))

    def result(self, pid: int, patch: str) -> PatchResult:
        """Return the result of a patch in a process."""
        return _result(self._processes[pid], patch)

    def role(self, pid: int) -> tuple[ProcessRole, int | None]:
        """Return the role and the rank of a process, as far as it reported them."""
        return self._processes[pid].role, self._processes[pid].rank

    def sockets(self) -> dict[int, str]:
        """The probe's socket of each process that has one, where it may have one."""
        return {
            pid: process.socket
            for pid, process in self._processes.items()
            if process.socket and _is_probe(Path(process.socket), self._folder)
        }

    def probed(self, pid: int, probes: dict[str, PatchProbe]) -> None:
        """Keep what a process answered to a probe."""
        if pid in self._processes:
            known = {*self._chosen, *self._processes[pid].operations, *self._processes[pid].settled}
            self._processes[pid].probes.update({name: one for name, one in probes.items() if name in known})

    def _new_lines(self, name: str) -> Iterable[bytes]:
        known = self._files.setdefault(name, _File())
        try:
            with files.open_regular(self._folder / name, follow=False) as file:
                state = os.fstat(file.fileno())
                if (state.st_dev, state.st_ino) != known.identity or state.st_size < known.offset:
                    # Another file of this name, or one that was cut: what is in it now counts.
                    if known.identity != (0, 0):
                        self._processes.pop(_pid(name), None)
                    known.identity = (state.st_dev, state.st_ino)
                    known.offset, known.rest = 0, b""
                if state.st_size == known.offset:
                    return ()
                file.seek(known.offset)
                # What is left comes at the next look.
                content = file.read(_MOST_BYTES)
        except OSError:
            return ()
        known.offset += len(content)
        *lines, known.rest = (known.rest + content).split(b"\n")
        if len(known.rest) > _LONGEST_LINE:
            lines.append(known.rest)
            known.rest = b""
        return lines

    def _take(self, name: str, raw: bytes) -> list[LedgerChange]:
        if not raw.strip():
            return []
        pid = _pid(name)
        line = _line_of(raw, pid)
        if line is None:
            self._processes.setdefault(pid, _Process(pid, 0.0)).unreadable += 1
            return [LedgerChange(pid, None)]
        process = self._processes.setdefault(line.pid, _Process(line.pid, line.at))
        if line.event == "start" and process.since:
            # It replaced itself by exec, or the number was given again: what was before is gone.
            process = self._processes[line.pid] = _Process(line.pid, line.at, unreadable=process.unreadable)
        process.since = process.since or line.at
        process.role, process.rank = line.role, line.rank
        process.overhead_ms = line.overhead_ms
        if line.event == "probe":
            process.socket = line.socket
        if line.patch is not None and process.is_full_for(line.patch):
            process.unreadable += 1
            return [LedgerChange(line.pid, None)]
        if line.event == "note" and line.patch:
            process.notes[line.patch] = line
            return [LedgerChange(line.pid, line.patch)]
        if line.event == "settled" and line.patch:
            process.settled[line.patch] = line
            return [LedgerChange(line.pid, line.patch)]
        if line.event == "result" and line.patch and line.op and line.outcome:
            _remember(process.operations.setdefault(line.patch, []), line, line.op, line.outcome)
            return [LedgerChange(line.pid, line.patch)]
        return [LedgerChange(line.pid, None)]

    def _describe(self, process: _Process) -> ProcessPatches:
        heard = [*process.operations, *process.settled]
        names = dict.fromkeys([*self._chosen, *(name for name in heard if name not in self._chosen)])
        return ProcessPatches(
            pid=process.pid,
            role=process.role,
            rank=process.rank,
            since=process.since,
            overhead_ms=process.overhead_ms,
            results=tuple(_result(process, name) for name in names),
            unreadable=process.unreadable,
        )


def _line_of(raw: bytes, pid: int) -> LedgerLine | None:
    """The line that a process wrote of itself; None for every other."""
    if len(raw) > _LONGEST_LINE:
        return None
    try:
        line = LedgerLine.model_validate_json(raw)
    except ValidationError:
        return None
    return line if line.pid == pid else None


def _is_probe(socket: Path, folder: Path) -> bool:
    """Return True for the places of a process's probe: beside its ledger, else a folder of its own."""
    beside = socket.parent == folder
    own = socket.name == "probe.sock" and socket.parent.name.startswith("sndr-") and ".." not in socket.parts
    return beside or own


def _pid(name: str) -> int:
    return int(name.partition(".")[0])


def _remember(
    operations: list[OperationResult], line: LedgerLine, kind: PatchKind, outcome: PatchOutcome
) -> None:
    result = OperationResult(
        kind=kind,
        target=line.target,
        outcome=outcome,
        reason=line.reason,
        before=line.before,
        after=line.after,
        ms=line.ms,
        detail=line.detail,
    )
    for index, known in enumerate(operations):
        # A rebind that was taken back is one operation with a new outcome.
        if (known.kind, known.target) == (kind, line.target) and outcome is PatchOutcome.REVERTED:
            operations[index] = result
            return
    if len(operations) < _MOST_OPERATIONS:
        operations.append(result)


def _result(process: _Process, patch: str) -> PatchResult:
    operations = process.operations.get(patch, [])
    settled = process.settled.get(patch)
    outcome, reason, detail = PatchOutcome.PENDING, None, ""
    if settled is not None and settled.outcome is not None:
        outcome, reason, detail = settled.outcome, settled.reason, settled.detail
    elif operations:
        # Some of its modules may never be imported here: what went in counts.
        worst = next((one for one in operations if one.outcome in _WORST), None)
        outcome = worst.outcome if worst else PatchOutcome.APPLIED
        reason, detail = (worst.reason, worst.detail) if worst else (None, "")
    note = process.notes.get(patch) if outcome is PatchOutcome.APPLIED else None
    spent = [one.ms for one in operations if one.ms is not None]
    return PatchResult(
        patch=patch,
        outcome=outcome,
        reason=reason,
        detail=detail or (note.detail if note else ""),
        values=note.values if note else {},
        operations=tuple(operations),
        ms=round(sum(spent), 3) if spent else None,
        probe=process.probes.get(patch),
    )
