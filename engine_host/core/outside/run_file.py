"""A run of the bench lab in a file of somebody else, as `sndr bench report RUN --json` writes it."""

from pathlib import Path
from typing import Any

from packaging.version import Version
from pydantic import ValidationError

from engine_host import __version__
from engine_host.core.errors import HostError
from engine_host.core.outside import files, json_text
from engine_host.protocol.bench.lab import LabRun
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

MOST_OF_RUN = 256 << 20
"""Bytes of one run, as JSON, that are read."""
_MOST_SAID = 160
_MOST_OF_TEXT = 4096
"""Of a reason, a path or a command."""


def run_of_file(path: Path) -> LabRun:
    """Return the run in a file, its words without control signs and ends of lines. Raises HostError."""
    cause, content = "", b""
    try:
        content = files.read(path, MOST_OF_RUN)
        run = LabRun.model_validate_json(content)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else tr("it is damaged, or no run")
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            cause = _plain(f"{where}: {first['msg']}" if where else first["msg"])[:_MOST_SAID]
        if (version := _newer(content)) is not None:
            raise HostError(
                Reason.BAD_REQUEST,
                tr(
                    "{path} was written by sndr {version}, which is newer than this one ({own}), and cannot "
                    "be read here.",
                    path=path,
                    version=version,
                    own=__version__,
                ),
                cause=tr("It has something that this version does not know.[ {where}]", where=cause or None),
                fix="Update this program, or ask for the report of a version as old as this one.",
                evidence={"path": str(path), "version": version},
            ) from error
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{path} cannot be read as a run: {why}.", path=path, why=why),
            cause=cause,
            fix=Fix(text="Write one with", command="sndr bench report RUN --json > run.json"),
            evidence={"path": str(path)},
        ) from error
    # What is shown of it stands among sentences of ours; texts of its answers are not shown. Who measured it
    # is a process of its machine.
    shown = _plain(run.model_dump(exclude={"samples", "measuring"}))
    return LabRun.model_validate({**shown, "samples": run.samples})


def _newer(content: bytes) -> str | None:
    """Return the version that a file names as its writer, where that is newer than this program."""
    try:
        machine = json_text.parse_object(content).get("machine")
        said = machine.get("program") if isinstance(machine, dict) else None
        version = Version(said) if isinstance(said, str) else None
        return str(version) if version is not None and version > Version(__version__) else None
    except ValueError:  # A damaged file, or a version that is none.
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        value = value if len(value) <= _MOST_OF_TEXT else f"{value[:_MOST_OF_TEXT]}…"
        return value if value.isprintable() else "".join(one if one.isprintable() else " " for one in value)
    if isinstance(value, dict):
        return {_plain(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
