"""Turn the output of a failed uv into one clear error; its reason code is always the same."""

from collections.abc import Sequence
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.engines.process.tool import ToolError
from engine_host.protocol.errors import Reason

# uv's own words choose the sentences alone; the last entry is for everything else.
_EXPLAINED = (
    (
        "Hash mismatch",
        "vLLM could not be installed: a package is not the file that the lock names.",
        "The mirror, the folder of wheels or uv's cache holds another file under that name: take it from "
        "another place, or empty the cache with `uv cache clean`; then install again.",
    ),
    (
        "Failed to fetch",
        "vLLM could not be installed: a package could not be downloaded.",
        "Check the network, or the mirror in pip's settings, then install again; downloads are kept.",
    ),
    (
        "No solution found",
        "vLLM could not be installed: a package of the lock is offered nowhere.",
        "Let pip's settings name a mirror or a folder of wheels that has it, then install again.",
    ),
    (
        "Couldn't parse",
        "vLLM could not be installed: its lock is damaged.",
        "Install this program again.",
    ),
    (
        "",
        "vLLM could not be installed.",
        "The log shows all that was printed. Install again; if it stays, report the log.",
    ),
)


def explained(error: ToolError, log: Path) -> HostError:
    """The error for a tool of the install that failed: install_failed, or disk_full."""
    evidence = {
        "command": Path(error.argv[0]).name,
        "exit_code": error.code,
        "output": list(error.tail[-30:]),
        "log": str(log),
    }
    if error.disk_full:
        return HostError(
            Reason.DISK_FULL,
            "The disk became full while vLLM was installed.",
            cause=_cause(error.tail),
            fix="Free some space, or move the cache with SNDR_CACHE, then install again.",
            evidence=evidence,
        )
    output = "\n".join(error.tail)
    message, fix = next((message, fix) for mark, message, fix in _EXPLAINED if mark in output)
    return HostError(Reason.INSTALL_FAILED, message, cause=_cause(error.tail), fix=fix, evidence=evidence)


def _cause(tail: Sequence[str]) -> str:
    """The error that a tool printed last, on one line."""
    starts = [number for number, line in enumerate(tail) if line.startswith("error:")]
    lines = tail[starts[-1] :] if starts else tail[-4:]
    return " ".join(filter(None, (line.strip() for line in lines)))[:600]
