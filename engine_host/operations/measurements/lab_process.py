"""The process that carries out a run of the bench lab: started, followed, and ended with what it kept."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.outside import json_text
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.bench.lab import LabAsk, LabKept, LabStep
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr

_SAVING = 30.0
# Its lines are short: of what it kept it only says the names.
_LONGEST_LINE = 1 << 20
_OF_ADDRESSES = "SNDR_API_KEY"


async def measured(ask: LabAsk, log_buffer: LogBuffer, tell: Callable[[LabStep], None]) -> LabKept:
    """Measure in a process of its own, which takes no time of the host's; what was kept of it.

    Cancelled, it closes its connections and saves: what it kept is the `kept` of a CutShortError. Raises
    HostError: that of the measurement, or one that says how it ended.
    """
    environment = {name: value for name, value in os.environ.items() if name != _OF_ADDRESSES}
    process = await asyncio.create_subprocess_exec(
        *command_of(OwnProgram.BENCH_LAB),
        "run",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
        start_new_session=True,
        limit=_LONGEST_LINE,
    )
    reading = asyncio.create_task(_read(process, log_buffer, tell))
    cancelled = False
    try:
        assert process.stdin is not None
        # One that has ended says by its exit why.
        with contextlib.suppress(ConnectionError):
            process.stdin.write(ask.model_dump_json().encode() + b"\n")
            await process.stdin.drain()
        await asyncio.shield(reading)
    except asyncio.CancelledError:
        cancelled = True
    finally:
        said = await asyncio.shield(_ended(process, reading))
    try:
        kept = _kept(said, process.returncode)
    except HostError as error:
        if not cancelled:
            raise
        # On a busy machine it may be ended while it saves: it was cancelled all the same.
        raise CutShortError(LabKept(ids=(), complete=False), cancelled=True) from error
    if cancelled or not kept.complete:
        raise CutShortError(kept, cancelled=cancelled)
    return kept


async def read_by_lab(*words: str) -> dict[str, Any]:
    """Have something large read in a process of its own; its one line. Raises HostError."""
    process = await asyncio.create_subprocess_exec(
        *command_of(OwnProgram.BENCH_LAB),
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _line(said, process.returncode)


class CutShortError(Exception):
    """A measurement was cancelled, or its engine stopped to answer; `kept` is what there is of it."""

    def __init__(self, kept: LabKept, *, cancelled: bool) -> None:
        super().__init__("cancelled" if cancelled else f"cut short: {kept.ended_by}")
        self.kept = kept
        self.cancelled = cancelled

    @classmethod
    def before(cls, ended_by: str) -> "CutShortError":
        """Return the end of what was cut off before anything was asked."""
        return cls(LabKept(ids=(), complete=False, ended_by=ended_by), cancelled=False)


async def _read(
    process: asyncio.subprocess.Process, log_buffer: LogBuffer, tell: Callable[[LabStep], None]
) -> bytes:
    """Follow what the measurement says; its last line."""
    last = b""
    assert process.stdout is not None
    async for line in process.stdout:
        last = line
        try:
            said = json_text.parse_object(line)
        except ValueError:
            log_buffer.add("bench", [line.decode("utf-8", "replace").rstrip()])
            continue
        if "step" in said:
            tell(LabStep.model_validate(said["step"]))
    return last


async def _ended(process: asyncio.subprocess.Process, reading: "asyncio.Task[bytes]") -> bytes:
    """Close the input of the measurement, on which it saves and ends; its last line."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(_SAVING):
            said = await reading
            await process.wait()
            return said
    except (TimeoutError, ValueError, ValidationError):
        # It hangs, or a line of it was none of its own.
        return b""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _kept(said: bytes, code: int | None) -> LabKept:
    """Return what the measurement kept. Raises HostError: its own, or one that says how it ended."""
    try:
        return LabKept.model_validate(_line(said, code)["kept"])
    except (ValueError, KeyError) as error:
        raise _without_result(code) from error


def _line(said: bytes, code: int | None) -> dict[str, Any]:
    """Return the last line of the process. Raises HostError: its own, or one that says how it ended."""
    try:
        found = json_text.parse_object(said)
        if "error" in found:
            raise HostError.from_problem(Problem.model_validate(found["error"]))
        return found
    except ValueError as error:
        raise _without_result(code) from error


def _without_result(code: int | None) -> HostError:
    return HostError(
        Reason.INTERNAL,
        "The measurement ended without a result.",
        cause=tr("Its process ended with {code}.", code=code),
        fix=Fix(text="See what it said.", command="sndr logs bench"),
    )
