"""Programs that a step runs there; never through a shell."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import signal
import subprocess
import threading
from typing import Any

from engine_host.remote.install.there.places import Failed

QUICK, LONG = 20.0, 1500.0
# pip asks a Rust compiler for its version, and rustup's stand-in for one writes into the home for that.
NO_PROGRAMS = "/nonexistent"

_starting = threading.Lock()
_child: subprocess.Popen[str] | None = None
_gone = False


def sndr(
    release: str, words: list[str], seconds: float = 60.0, reason: str = "verification_failed"
) -> dict[str, Any]:
    """The last value that our own program there prints with --json."""
    printed = run(
        [os.path.join(release, "bin", "python"), "-P", "-m", "engine_host", *words], seconds, reason
    )
    lines = printed.strip().splitlines()
    try:
        value = json.loads(lines[-1])
    except (ValueError, IndexError) as error:
        said = [line[:500] for line in lines[-12:]]
        raise Failed(reason, "Our program there gave no answer.", words=words, lines=said) from error
    return value if isinstance(value, dict) else {}


def run(argv: list[str], seconds: float, reason: str, path: str | None = None) -> str:
    said = attempt(argv, seconds, path)
    if said is None:
        raise Failed(
            reason, "A program there did not end in time, or is missing.", argv=argv, seconds=seconds
        )
    if said.returncode != 0:
        lines = (said.stderr.strip() or said.stdout.strip()).splitlines()[-12:]
        full = any("No space left on device" in line for line in lines)
        raise Failed(
            "disk_full" if full else reason,
            "A program there failed.",
            argv=argv,
            exit=said.returncode,
            lines=[line[:500] for line in lines],
        )
    return said.stdout


def pip(python: str, *words: str) -> list[str]:
    """The command line of pip that asks nobody and keeps nothing."""
    return [
        *(python, "-m", "pip", *words, "-q", "--no-input", "--no-cache-dir", "--disable-pip-version-check"),
        *("--require-hashes", "--only-binary", ":all:"),
    ]


def attempt(
    argv: list[str], seconds: float, path: str | None = None
) -> subprocess.CompletedProcess[str] | None:
    global _child
    try:
        with _starting:
            check_caller()
            child = _child = subprocess.Popen(
                argv,
                env={**environment_of_programs(), **({} if path is None else {"PATH": path})},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        with child:
            try:
                out, err = child.communicate(timeout=seconds)
            finally:
                with _starting:
                    _child = None
                    _end(child)
    except (OSError, subprocess.TimeoutExpired):
        return None
    check_caller()
    return subprocess.CompletedProcess(argv, child.returncode, out, err)


def end_with_caller() -> None:
    """Wait for the end of standard input, which is that of the connection; then end what the step runs.

    A session without a terminal gets no signal when its connection goes.
    """
    global _gone
    # Not through the buffered stream, whose lock this thread would hold when the program ends.
    while os.read(0, 1 << 12):
        pass
    with _starting:
        _gone = True
        if _child is not None:
            _end(_child)


def check_caller() -> None:
    """Stop a step that nobody waits for any more; what it began is cleared away by it."""
    if _gone:
        raise Failed("install_failed", "Nobody waits for this step any more.")


def _end(child: subprocess.Popen[str]) -> None:
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def environment_of_programs() -> dict[str, str]:
    found = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    runtime = "/run/user/%d" % os.getuid()
    if not found.get("XDG_RUNTIME_DIR") and os.path.isdir(runtime):
        # A session over ssh without PAM has none, and the user's services have theirs there.
        found["XDG_RUNTIME_DIR"] = runtime
    return found


def own_variables() -> dict[str, str]:
    names = ("SNDR_HOME", "SNDR_CACHE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
