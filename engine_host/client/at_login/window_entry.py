"""The desktop's entry that starts the window at login, with a preset or without; written and taken away."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine_host.client.at_login.words import environment_of, exec_value
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

AT_LOGIN, START_PRESET = "--at-login", "--start-preset="
"""The arguments of such a start: it stays in the background, and starts a preset once."""
_PRESET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_OURS = "X-SNDR-Written=true"
_LARGEST = 1 << 16
_STARTED = re.compile(rf'"{START_PRESET}([A-Za-z0-9._-]+)"')


@dataclass(frozen=True)
class WindowEntry:
    """The entry as it is: `on` where the desktop starts the window, `foreign` where another wrote it."""

    path: Path
    on: bool
    preset: str = ""
    foreign: bool = False


def read_entry(given: Mapping[str, str] | None = None) -> WindowEntry:
    """Return the entry of this user; without a file it is off."""
    path = entry_path(given)
    try:
        lines = files.read_text(path, _LARGEST).splitlines()
    except (OSError, ValueError):
        return WindowEntry(path, on=False, foreign=os.path.lexists(path))
    # A desktop's own settings switch an entry off so.
    off = {"Hidden=true", "X-GNOME-Autostart-enabled=false"} & {line.strip() for line in lines}
    found = next((match for line in lines if (match := _STARTED.search(line))), None)
    return WindowEntry(path, not off, found[1] if found else "", _OURS not in lines)


def write_entry(preset: str = "", given: Mapping[str, str] | None = None) -> WindowEntry:
    """Have the desktop start the window at login, and with it a preset where one is named.

    Raises HostError(bad_request) for what is no preset's id, HostError(conflict) for an entry that somebody
    else wrote, HostError(not_writable), HostError(disk_full).
    """
    if preset and not _PRESET.fullmatch(preset):
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{preset} is no id of a preset.", preset=repr(preset[:80])),
            fix=Fix(text="See which there are.", command="sndr presets list"),
        )
    now = _ours(given)
    environment = [f"{name}={value}" for name, value in environment_of(given).items()]
    words = [*(["env", *environment] if environment else []), *command_of(OwnProgram.WINDOW), AT_LOGIN]
    words += [START_PRESET + preset] if preset else []
    lines = (
        "[Desktop Entry]",
        "Type=Application",
        "Name=SNDR Control Center",
        "Comment=Started at login; Settings and `sndr autostart window --off` take this away",
        f"Exec={exec_value(words)}",
        "Icon=sndr",
        "Terminal=false",
        "X-GNOME-Autostart-enabled=true",
        _OURS,
    )
    atomic_file.write(now.path, "\n".join(lines) + "\n", 0o644, follow=True)
    return read_entry(given)


def remove_entry(given: Mapping[str, str] | None = None) -> WindowEntry:
    """Start the window at login no more. Raises HostError(conflict), HostError(not_writable)."""
    now = _ours(given)
    try:
        now.path.unlink(missing_ok=True)
    except OSError as error:
        raise atomic_file.saving_failed(now.path, error) from error
    return read_entry(given)


def entry_path(given: Mapping[str, str] | None = None) -> Path:
    """Return the place of the entry in the user's folders."""
    env = os.environ if given is None else given
    home = env.get("HOME") or str(Path.home())
    config = env.get("XDG_CONFIG_HOME") or ""
    # A relative one is to be ignored, says the specification.
    base = Path(config) if os.path.isabs(config) else Path(home) / ".config"
    return base / "autostart" / "sndr.desktop"


def _ours(given: Mapping[str, str] | None) -> WindowEntry:
    now = read_entry(given)
    if now.foreign:
        raise HostError(
            Reason.CONFLICT,
            tr("{path} was not written by this program, and was left as it is.", path=now.path),
            fix="Move it away, then try again.",
            evidence={"path": str(now.path)},
        )
    return now
