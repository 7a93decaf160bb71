"""The unit by which systemd runs the host of this user, without a window; enabled and disabled."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host.client.at_login.words import environment_of, unit_program, unit_setting, unit_word
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

UNIT = "sndr-host-here.service"
_OURS = "# Written by `sndr autostart host`; `sndr autostart host --off` takes it away."
_LARGEST = 1 << 16
_PATIENCE = 20.0


@dataclass(frozen=True)
class HostUnit:
    """The unit as it is; `foreign` where somebody else wrote it."""

    path: Path
    on: bool
    foreign: bool = False


def read_unit(given: Mapping[str, str] | None = None) -> HostUnit:
    """Return the unit of this user; on where the file is there and default.target wants it."""
    path = _folder(given) / UNIT
    wanted = _folder(given) / "default.target.wants" / UNIT
    try:
        ours = files.read_text(path, _LARGEST).startswith(_OURS)
    except (OSError, ValueError):
        return HostUnit(path, on=False, foreign=os.path.lexists(path))
    return HostUnit(path, os.path.lexists(wanted), not ours)


def unit_text(given: Mapping[str, str] | None = None) -> str:
    """Return the text of the unit."""
    first, *others = (*command_of(OwnProgram.SNDR), "serve")
    settings = [f"Environment={unit_setting(name, value)}" for name, value in environment_of(given).items()]
    lines = (
        _OURS,
        "[Unit]",
        "Description=SNDR engine host",
        "",
        "[Service]",
        "Type=exec",
        *settings,
        f"ExecStart={' '.join([unit_program(first), *map(unit_word, others)])}",
        "Restart=on-failure",
        "RestartSec=5",
        # Engines that are kept outlive a host; the others are ended by it, or by its reaper.
        "KillMode=process",
        "TimeoutStopSec=60",
        "UMask=0077",
        "LimitNOFILE=65536",
        "LimitCORE=0",
        "",
        "[Install]",
        "WantedBy=default.target",
    )
    return "\n".join(lines) + "\n"


def write_unit(*, start: bool, given: Mapping[str, str] | None = None) -> HostUnit:
    """Have systemd start the host at login, and now where `start` is true.

    Raises HostError(conflict) for a unit that somebody else wrote, HostError(unsupported) where systemd does
    not do it (the file is taken away again), and what writing raises.
    """
    now = _ours(given)
    atomic_file.write(now.path, unit_text(given), 0o644, follow=True)
    try:
        _systemctl("daemon-reload")
        _systemctl("enable", *(["--now"] if start else []), UNIT)
    except HostError:
        if not now.on:
            now.path.unlink(missing_ok=True)
        raise
    return read_unit(given)


def remove_unit(given: Mapping[str, str] | None = None) -> HostUnit:
    """Start the host at login no more; one that runs goes on. Raises what `write_unit` raises."""
    now = _ours(given)
    if os.path.lexists(now.path):
        _systemctl("disable", UNIT)
        try:
            now.path.unlink(missing_ok=True)
        except OSError as error:
            raise atomic_file.saving_failed(now.path, error) from error
        _systemctl("daemon-reload")
    return read_unit(given)


def _ours(given: Mapping[str, str] | None) -> HostUnit:
    now = read_unit(given)
    if now.foreign:
        raise HostError(
            Reason.CONFLICT,
            tr("{path} was not written by this program, and was left as it is.", path=now.path),
            fix="Move it away, then try again.",
            evidence={"path": str(now.path)},
        )
    return now


def _folder(given: Mapping[str, str] | None) -> Path:
    env = os.environ if given is None else given
    config = env.get("XDG_CONFIG_HOME") or ""
    home = env.get("HOME") or str(Path.home())
    base = Path(config) if os.path.isabs(config) else Path(home) / ".config"
    return base / "systemd" / "user"


def _systemctl(*words: str) -> None:
    command: Sequence[str] = ("systemctl", "--user", "--no-ask-password", *words)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    else:
        if done.returncode == 0:
            return
        why = done.stderr.decode(errors="replace").strip()[:500] or tr(
            "exit code {returncode}", returncode=done.returncode
        )
    raise HostError(
        Reason.UNSUPPORTED,
        "systemd does not manage services of this user here.",
        cause=why,
        fix="Where systemd runs, log in as this user, not by su or sudo. Else start `sndr serve` your way.",
        evidence={"command": list(command)},
    )
