"""Our own programs as command lines: in a source tree, where a wheel is installed, and in a frozen program.

A frozen program has no Python to give a module to: it starts itself, with the module as its first word.
"""

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

_FIRST_WORD = "--own-program="
_PACKAGES = Path(__file__).resolve().parents[3]


class OwnProgram(StrEnum):
    """A module of ours that runs as a process of its own."""

    SNDR = "engine_host"
    WINDOW = "sndr_gui"
    LLAMA_SERVER = "engine_host.engines.llamacpp.prebuilt_server"
    BENCH_LAB = "engine_host.bench.lab"
    BENCH_ENDPOINT = "engine_host.bench.endpoint_overhead"
    OWNED = "engine_host.engines.process.owned_exec"
    REAPER = "engine_host.engines.process.reaper_main"
    LOG_WRITER = "engine_host.engines.process.log_writer"
    ASKPASS = "engine_host.remote.ssh.askpass_main"
    FED_SCRIPT = "engine_host.remote.services.fed_script"


# Of the standard library alone, and started by their file: within milliseconds, whatever is installed.
ALONE = frozenset(
    {
        OwnProgram.OWNED,
        OwnProgram.REAPER,
        OwnProgram.LOG_WRITER,
        OwnProgram.ASKPASS,
        OwnProgram.FED_SCRIPT,
    }
)


def is_frozen() -> bool:
    """Return True where this program has no Python besides the one inside it."""
    return bool(getattr(sys, "frozen", False))


def own_file() -> Path:
    """Return the file that every update of this program replaces."""
    return Path(sys.executable) if is_frozen() else _PACKAGES / "engine_host" / "__init__.py"


def command_of(program: OwnProgram) -> tuple[str, ...]:
    """Return the words that start one of our programs; its arguments come after them.

    Those that may outlive who starts them are started from an AppImage by its file: what is inside it
    lies elsewhere at each start, and goes with the program that was started first.
    """
    if is_frozen():
        started_by = _appimage() if program in {OwnProgram.SNDR, OwnProgram.WINDOW} else None
        return started_by or sys.executable, f"{_FIRST_WORD}{program}"
    if program in ALONE:
        return sys.executable, "-I", "-S", str(_PACKAGES / f"{program.replace('.', '/')}.py")
    # Without -P, a file of the folder that a person stands in would take the place of a module.
    return sys.executable, "-P", "-m", str(program)


def _appimage() -> str | None:
    """Return the AppImage that this program runs in; None in the terminal of another program's."""
    file, inside = os.environ.get("APPIMAGE"), os.environ.get("APPDIR")
    ours = bool(file and inside) and Path(sys.executable).is_relative_to(inside or "")
    return file if ours else None


def run_asked(words: Sequence[str]) -> bool:
    """Run the program that the first word of a frozen program asks for; False where it asks for none.

    Raises ValueError for a module that is none of them, and SystemExit as the program ends.
    """
    if not words or not words[0].startswith(_FIRST_WORD):
        return False
    program = OwnProgram(words[0].removeprefix(_FIRST_WORD))
    # Not above: who only asks for a command line is spared the import.
    import runpy

    sys.argv[1:] = words[1:]
    runpy.run_module(program, run_name="__main__", alter_sys=True)
    return True
