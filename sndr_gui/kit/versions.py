"""The start-up guard against versions of Qt for Python that end the process."""

import contextlib
import re
import sys
from importlib.util import find_spec
from pathlib import Path

_VERSION = re.compile(r"^__version_info__ = \((\d+), (\d+), (\d+)", re.MULTILINE)


def refusal(python: tuple[int, ...], pyside: tuple[int, ...]) -> str | None:
    """Return the reason why this pair of versions cannot run the window; None when it can.

    From 6.12 on PySide6 gives away references of True and None; before Python 3.12 these are counted, so the
    process is aborted after a few hundred signals.
    """
    if python[:2] >= (3, 12) or pyside[:2] < (6, 12):
        return None
    found, interpreter = ".".join(map(str, pyside[:3])), ".".join(map(str, python[:2]))
    return (
        f"PySide6 {found} ends the program on Python {interpreter} "
        "after a few hundred signals. Install PySide6-Essentials 6.11.3 "
        "(pip install 'PySide6-Essentials==6.11.3'), or use Python 3.12 or newer."
    )


def refusal_here() -> str | None:
    """Return the reason why the window cannot run with what is installed here; None when it can.

    Nothing of Qt is imported for it, which takes a twentieth of a second: the host is started before.
    """
    found = find_spec("PySide6")
    if found is None or found.origin is None:
        return (
            "The window's packages are not installed here, only those of the host and the command line. "
            "Install them with: pip install 'sndr-control-center[window]'"
        )
    return refusal(sys.version_info[:3], _version_in(Path(found.origin)))


def _version_in(file: Path) -> tuple[int, ...]:
    # In a frozen program it lies in an archive, and there is no such file.
    with contextlib.suppress(OSError, UnicodeDecodeError):
        told = _VERSION.search(file.read_text(encoding="utf-8"))
        if told is not None:
            return tuple(map(int, told.groups()))
    import PySide6

    return PySide6.__version_info__[:3]
