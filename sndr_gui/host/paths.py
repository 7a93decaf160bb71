"""The folders that the window shares with the engine host, found without importing the host.

A test holds these to `engine_host.core.paths`.
"""

import hashlib
import json
import os
import platform
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs

_LONGEST_RUN_FOLDER = 76


@dataclass(frozen=True)
class Folders:
    """Where the window keeps its settings and logs, and where a running host is found."""

    config: Path
    data: Path
    run: Path

    @property
    def window_settings(self) -> Path:
        """The window's own settings."""
        return self.config / "window.json"

    @property
    def host_log(self) -> Path:
        """What a host started by the window writes to its standard error."""
        return self.data / "logs" / "host-stderr.log"

    @property
    def socket(self) -> Path:
        """The control socket."""
        return self.run / "control.sock"

    @property
    def token(self) -> Path:
        """The file with the host's token."""
        return self.run / "token"

    def elsewhere(self) -> "Folders | None":
        """These folders with the run folder of a host that serves this data from another one, as it noted."""
        try:
            said = json.loads((self.data / "host.claim").read_bytes())
            run, machine = Path(said["run"]), str(said["machine"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return replace(self, run=run) if machine == platform.node() and run != self.run else None

    def unsafe(self) -> str:
        """Why nothing in the run folder is trusted; empty when it is this user's alone or not there."""
        if sys.platform == "win32":
            return ""
        try:
            info = self.run.lstat()
        except OSError:
            return ""
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            return (
                f"The run folder {self.run} is not a folder of yours (owner {info.st_uid}). "
                "Remove it, or set SNDR_HOME to a folder of yours."
            )
        if (mode := stat.S_IMODE(info.st_mode)) & 0o077:
            return (
                f"The run folder {self.run} can be entered by others (mode {mode:04o}). "
                f"`chmod 700 {self.run}` makes it private again."
            )
        return ""

    @classmethod
    def resolve(cls, environment: Mapping[str, str] | None = None) -> "Folders":
        """The folders for this user and environment."""
        env = os.environ if environment is None else environment
        if home := env.get("SNDR_HOME"):
            base = Path(home).expanduser().absolute()
            return cls(base / "config", base / "data", _short_enough(base / "run"))
        config = platformdirs.user_config_path("sndr", appauthor=False)
        data = platformdirs.user_data_path("sndr", appauthor=False)
        return cls(config, data, _short_enough(_run_folder(env)))


def _run_folder(env: Mapping[str, str]) -> Path:
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "sndr"
    if sys.platform == "win32":
        return platformdirs.user_data_path("sndr", appauthor=False) / "run"
    return Path(tempfile.gettempdir()) / f"sndr-{os.getuid()}"


def _short_enough(run: Path) -> Path:
    if sys.platform == "win32" or len(os.fsencode(run)) <= _LONGEST_RUN_FOLDER:
        return run
    digest = hashlib.sha256(os.fsencode(run)).hexdigest()[:12]
    return Path("/tmp") / f"sndr-{os.getuid()}-{digest}"
