"""The Python that drives a build: our own, or one of this machine where this program is frozen."""

import shutil
import sys

from engine_host.core.errors import HostError
from engine_host.core.processes.own_programs import is_frozen
from engine_host.engines.process.tool import ask_tool
from engine_host.protocol.errors import Fix, Reason

_NAMES = ("python3", "python3.13", "python3.12", "python3.11", "/usr/bin/python3")
# The versions that the locks of the build's tools are for; Debian has ensurepip in a package of its own.
_FITS = "import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"


def build_python() -> str:
    """Return the Python that makes the build's environment. Raises HostError(compiler_missing)."""
    if not is_frozen():
        return sys.executable
    for name in _NAMES:
        path = shutil.which(name)
        if path and ask_tool(path, "-I", "-c", _FITS)[0] == 0:
            return path
    raise HostError(
        Reason.COMPILER_MISSING,
        "llama.cpp cannot be built here: no Python 3.11, 3.12 or 3.13 with venv was found.",
        cause="Python drives the build, and the one inside this program runs nothing else.",
        fix=Fix(text="Install it, or use the prebuilt server.", command="apt-get install python3-venv"),
        evidence={"looked_for": list(_NAMES)},
    )
