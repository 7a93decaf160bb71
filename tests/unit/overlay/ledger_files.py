"""Writes ledgers as processes of vLLM do: docs/OVERLAY.md describes a line."""

import json
from pathlib import Path
from typing import Any


def line(pid: int, event: str, **fields: Any) -> dict[str, Any]:
    """One line, of an EngineCore unless told otherwise."""
    return {
        "v": 1,
        "at": 100.0 + pid,
        "pid": pid,
        "ppid": 1,
        "role": "EngineCore",
        "rank": None,
        "event": event,
        "overhead_ms": 2.5,
    } | fields


def result(pid: int, patch: str, outcome: str = "applied", **fields: Any) -> dict[str, Any]:
    """A line about one operation of a patch: a text edit of `vllm.config` unless told otherwise."""
    told = {"op": "text", "target": "vllm.config", "reason": None, "ms": 1.25, "detail": ""}
    return line(pid, "result", patch=patch, outcome=outcome, **(told | fields))


def settled(
    pid: int, patch: str, outcome: str = "applied", reason: str | None = None, **fields: Any
) -> dict[str, Any]:
    """The line about a patch as a whole."""
    return line(pid, "settled", **({"patch": patch, "outcome": outcome, "reason": reason} | fields))


def encoded(*lines: dict[str, Any]) -> bytes:
    """Lines as they are in a file."""
    return b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in lines)


def write(folder: Path, *lines: dict[str, Any]) -> None:
    """Append lines to the file of each line's process."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in lines:
        with (folder / f"{one['pid']}.jsonl").open("ab") as file:
            file.write(encoded(one))
