"""Whether there is a screen to show the window on, asked before Qt would end the process for want of one."""

from collections.abc import Mapping, Sequence

NO_DISPLAY = 8
"""The exit code of `sndr-gui` where it has no display; it stands in the table of all exit codes."""


def refusal(platform: str, environment: Mapping[str, str], arguments: Sequence[str]) -> str | None:
    """Why the window cannot be shown, or None when it can or when Qt was told a platform of its own.

    `platform` is `sys.platform`. Only X11 and Wayland need a server that the environment names.
    """
    told = environment.get("QT_QPA_PLATFORM") or any(
        argument in {"-platform", "--platform"} for argument in arguments
    )
    if not platform.startswith("linux") or told:
        return None
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return (
        "There is no display: neither DISPLAY nor WAYLAND_DISPLAY is set. "
        "Start it in a desktop session, over SSH with `ssh -X`, or use the command line: sndr run --demo"
    )
