"""Finds a screen to show the window on, before Qt would end the process for want of one."""

import ctypes
import os
import socket
from collections.abc import Mapping, Sequence

NO_DISPLAY = 8
"""The exit code of `sndr-gui` where it has no display; it stands in the table of all exit codes."""

_ELSE = "Start it in a desktop session, over SSH with `ssh -X`, or use the command line: sndr run --demo"


def refusal(platform: str, environment: Mapping[str, str], arguments: Sequence[str]) -> str | None:
    """Return the reason why the window cannot be shown; None when it can, or when Qt was given a platform.

    `platform` is `sys.platform`. Only X11 and Wayland need a server that the environment names.
    """
    given = environment.get("QT_QPA_PLATFORM") or any(
        argument in {"-platform", "--platform"} for argument in arguments
    )
    if not platform.startswith("linux") or given:
        return None
    x11, wayland = environment.get("DISPLAY"), environment.get("WAYLAND_DISPLAY")
    if not x11 and not wayland:
        return f"There is no display: neither DISPLAY nor WAYLAND_DISPLAY is set. {_ELSE}"
    if wayland and _wayland_answers(wayland, environment.get("XDG_RUNTIME_DIR", "")):
        return None
    if not x11:
        return f"No display answers at WAYLAND_DISPLAY={wayland}. {_ELSE}"
    missing = _missing_library()
    if missing is not None:
        return (
            f"The window needs the library {missing}, which this system lacks. "
            "Install it (Debian, Ubuntu: apt install libxcb1 libxcb-cursor0; Fedora: xcb-util-cursor)."
        )
    if not _x11_answers(x11):
        return f"No display answers at DISPLAY={x11}, or it does not let this user in. {_ELSE}"
    return None


def _wayland_answers(name: str, folder: str) -> bool:
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(2.0)
        try:
            asked.connect(os.path.join(folder, name))
        except OSError:
            return False
    return True


def _missing_library() -> str | None:
    """Return the library of Qt's X11 platform that this system lacks; None when all are there."""
    for name in ("libxcb.so.1", "libxcb-cursor.so.0"):
        try:
            ctypes.CDLL(name)
        except OSError:
            return name
    return None


def _x11_answers(display: str) -> bool:
    """Connect through libxcb itself, which also knows the ways to a server and its authority files."""
    xcb = ctypes.CDLL("libxcb.so.1")
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_int)]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(os.fsencode(display), None)
    failed = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return not failed
