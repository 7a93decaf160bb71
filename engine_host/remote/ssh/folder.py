"""The private folder of one host's connection: ssh's own socket, what it forwards, and the token there."""

import contextlib
import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.paths import Folders

# ssh binds its socket under its name with a dot and sixteen letters behind it; macOS takes 103 bytes.
_LONGEST = 103 - len("/ssh.sock") - 17
# ssh expands $ and % in paths, and hands some of them to a shell as they are.
_PLAIN = re.compile(r"[A-Za-z0-9/._@+,-]+")


@dataclass(frozen=True)
class HostFolder:
    """The files of one connection; none of them outlives it."""

    path: Path

    @property
    def ssh(self) -> Path:
        """The socket over which commands share the connection."""
        return self.path / "ssh.sock"

    @property
    def config(self) -> Path:
        """The configuration of this connection, which ssh hands on to those that it starts for jump hosts."""
        return self.path / "ssh_config"

    @property
    def control(self) -> Path:
        """The control socket of the engine host there, forwarded."""
        return self.path / "control.sock"

    @property
    def token(self) -> Path:
        """The token that belongs to it."""
        return self.path / "control.token"

    @property
    def endpoint(self) -> Path:
        """The endpoint of the engine host there, forwarded."""
        return self.path / "endpoint.sock"

    def engine(self, address: str) -> Path:
        """The socket that is forwarded to an address there."""
        return self.path / f"engine-{hashlib.sha256(address.encode()).hexdigest()[:8]}.sock"

    def files(self) -> tuple[Path, ...]:
        """Everything that may lie in it."""
        return (self.ssh, self.config, self.control, self.token, self.endpoint)

    def make(self) -> None:
        """Make it, empty and private. Raises HostError: run_folder_unsafe, not_writable."""
        _private(self.path).make_run_folder()
        self.clear()

    def clear(self) -> None:
        """Remove what a connection left in it."""
        for file in (*self.files(), *self.path.glob("engine-*.sock")):
            with contextlib.suppress(OSError):
                file.unlink()

    def remove(self) -> None:
        """Remove it; nothing happens where it is not ours alone."""
        with contextlib.suppress(HostError):
            _private(self.path).check_run_folder()
            shutil.rmtree(self.path, ignore_errors=True)


def folder_of(run: Path, name: str) -> HostFolder:
    """Return the folder of a host: below the run folder, or a stand-in where ssh would not take its paths."""
    path = run / "hosts" / name
    if len(os.fsencode(path)) > _LONGEST or not _PLAIN.fullmatch(str(path)):
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        path = Path("/tmp") / f"sndr-{os.getuid()}-{digest}"
    return HostFolder(path)


def _private(path: Path) -> Folders:
    """Return folders that hold this one to what holds for a run folder: this user's own, closed to others."""
    return Folders(path, path, path, path)
