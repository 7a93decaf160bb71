"""A run of the bench lab in a file of somebody else, as `sndr bench report RUN --json` writes it."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.outside import files
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
    cause = ""
    try:
        run = LabRun.model_validate_json(files.read(path, MOST_OF_RUN))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else tr("it is damaged, or of a newer version")
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            cause = _plain(f"{where}: {first['msg']}" if where else first["msg"])[:_MOST_SAID]
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{path} cannot be read as a run: {why}.", path=path, why=why),
            cause=cause,
            fix=Fix(text="Write one with", command="sndr bench report RUN --json > run.json"),
            evidence={"path": str(path)},
        ) from error
    # What is shown of it stands among sentences of ours; texts of its answers are not shown.
    shown = _plain(run.model_dump(exclude={"samples"}))
    return LabRun.model_validate({**shown, "samples": run.samples})


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        value = value if len(value) <= _MOST_OF_TEXT else f"{value[:_MOST_OF_TEXT]}…"
        return value if value.isprintable() else "".join(one if one.isprintable() else " " for one in value)
    if isinstance(value, dict):
        return {_plain(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
