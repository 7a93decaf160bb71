"""The folders in which the programs of this machine keep their settings."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """A person's folders and variables; `system` is as `sys.platform` says it."""

    home: Path
    system: str
    env: Mapping[str, str]
    which: Callable[[str], str | None] = shutil.which

    @classmethod
    def here(cls) -> "Machine":
        """Return this machine."""
        return cls(Path(os.path.expanduser("~")), sys.platform, os.environ)

    @property
    def config(self) -> Path:
        """The folder of settings by the XDG rules, which several programs use on every system."""
        return self._absolute("XDG_CONFIG_HOME") or self.home / ".config"

    @property
    def application(self) -> Path:
        """The folder of settings by the rules of the system itself."""
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        if self.system == "win32":
            return self._absolute("APPDATA") or self.home / "AppData" / "Roaming"
        return self.config

    def folder(self, variable: str, otherwise: Path) -> Path:
        """Return the folder that a variable names, or another one."""
        return self._absolute(variable) or otherwise

    def _absolute(self, variable: str) -> Path | None:
        named = self.env.get(variable, "")
        path = Path(named) if named and "\0" not in named else None
        return path if path is not None and path.is_absolute() else None
