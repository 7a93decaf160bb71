"""The unit by which systemd runs the host for its user."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from engine_host.deploy.targets.quoting import unit_plain, unit_value
from engine_host.deploy.targets.units import command_line, unit_text


def unit_of(root: str, environment: Mapping[str, str]) -> str:
    """Return the unit's text: it runs what `current` below `root` leads to, so an update leaves it as it is.

    `environment` holds the variables that move the program's folders, where the user has any.
    """
    # In the first word of a command line systemd takes `$` as it is.
    program = unit_value(str(PurePosixPath(root) / "current" / "bin" / "python"), {})
    lines = [unit_value(f"{name}={value}", {}) for name, value in sorted(environment.items())]
    return unit_text(
        ("Written by `sndr host install`; `sndr host uninstall` removes it.",),
        (
            ("Unit", [("Description", unit_plain("SNDR engine host", {}))]),
            (
                "Service",
                [
                    ("Type", "exec"),
                    *(("Environment", one) for one in lines),
                    ("ExecStart", command_line([program, "-P", "-m", "engine_host", "serve"])),
                    ("Restart", "on-failure"),
                    ("RestartSec", "5"),
                    # Engines that are kept outlive a host; the others are ended by it, or by its reaper.
                    ("KillMode", "process"),
                    ("TimeoutStopSec", "60"),
                    ("UMask", "0077"),
                    ("LimitNOFILE", "65536"),
                    ("LimitCORE", "0"),
                ],
            ),
            ("Install", [("WantedBy", "default.target")]),
        ),
    )
