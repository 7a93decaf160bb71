"""The one entry of the frozen program: the command line, the window by its name, or one of our programs."""

import os
import sys
from pathlib import Path

_LIBRARIES = "LD_LIBRARY_PATH"


def _restore_environment() -> None:
    """Take out what PyInstaller's start put in: whoever we start would get our libraries in place of its own.

    The loader has read it already.
    """
    os.environ.pop(_LIBRARIES, None)
    before = os.environ.pop(f"{_LIBRARIES}_ORIG", None)
    if before is not None:
        os.environ[_LIBRARIES] = before
    for name in [name for name in os.environ if name.startswith("_PYI_")]:
        del os.environ[name]


def _hold_own_file() -> None:
    """Read modules out of this very file to the end, also when an update has put another in its place."""
    if sys.platform != "linux":
        return
    import pyimod02_importers  # PyInstaller's own, of frozen programs alone.

    archive = pyimod02_importers.pyz_archive
    file = os.open(archive._filename, os.O_RDONLY | os.O_CLOEXEC)
    archive._filename = f"/proc/self/fd/{file}"


def main() -> int:
    """Run what is asked for; the exit code."""
    _restore_environment()
    _hold_own_file()
    from engine_host.core.processes.own_programs import run_asked

    if run_asked(sys.argv[1:]):
        return 0
    if Path(sys.argv[0]).stem == "sndr-gui":
        from sndr_gui.__main__ import main as window

        return window()
    from engine_host.__main__ import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
