"""The folders of the program, and the check that its run folder is private."""

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
from typing import TYPE_CHECKING

import platformdirs

from engine_host.core.outside import files
from engine_host.protocol.language import tr

if TYPE_CHECKING:
    from engine_host.protocol.errors import Problem

# sun_path holds 108 bytes on Linux and 104 on macOS; an engine's socket adds 24 to the run folder.
_LONGEST_RUN_FOLDER = 76
_LONGEST_CLAIM = 4096


@dataclass(frozen=True)
class Folders:
    """The program's folders; none is made before it is needed.

    `SNDR_HOME` puts all of them below one folder; `SNDR_CACHE` moves the cache alone.
    """

    config: Path
    data: Path
    cache: Path
    run: Path

    @property
    def logs(self) -> Path:
        """Logs of the host, the engines and the builds."""
        return self.data / "logs"

    @property
    def socket(self) -> Path:
        """The control socket."""
        return self.run / "control.sock"

    @property
    def token(self) -> Path:
        """The file with this start's token."""
        return self.run / "token"

    @property
    def lock(self) -> Path:
        """The file that one running host holds locked."""
        return self.run / "host.lock"

    def window_socket(self, display: str) -> Path:
        """The socket of the window on a display; the file with its lock is called the same, with `.lock`."""
        return self.run / f"window-{display}.sock"

    def window_locks(self) -> list[Path]:
        """The locks of windows, also of those that were killed."""
        return sorted(self.run.glob("window-*.lock"))

    @property
    def data_lock(self) -> Path:
        """The file that the host of this data holds locked; it tells where that host can be found."""
        return self.data / "host.claim"

    @property
    def settings(self) -> Path:
        """The user's settings."""
        return self.config / "settings.toml"

    @property
    def store(self) -> Path:
        """The database."""
        return self.data / "sndr.sqlite"

    @property
    def samples(self) -> Path:
        """The database of measured series."""
        return self.data / "telemetry.sqlite"

    @property
    def autopsies(self) -> Path:
        """The records of engines that died."""
        return self.data / "autopsies"

    @property
    def crashes(self) -> Path:
        """The marks of programs that run, and the reports of those that did not end in order."""
        return self.data / "crashes"

    @property
    def chats(self) -> Path:
        """The conversations of the window's Chat."""
        return self.data / "chats"

    def read_lock_owner(self) -> "LockOwner | None":
        """Read the note of the host that locked this data; None if there is none or it ended in order.

        It may be out of date: only its socket tells that the host still runs.
        """
        try:
            note = json.loads(files.read(self.data_lock, _LONGEST_CLAIM))
            stays = note.get("stays") is True and note.get("boot") == boot()
            here = replace(self, run=Path(note["run"]))
            return LockOwner(int(note["pid"]), str(note["machine"]), here, stays)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return None

    def elsewhere(self) -> "Folders | None":
        """These folders with the run folder of the host that locked this data from another one, if any did.

        Cron, `su -` or ssh may have no XDG_RUNTIME_DIR, and so another run folder than the desktop.
        """
        owner = self.read_lock_owner()
        if owner is None or not owner.here or owner.folders.run == self.run:
            return None
        return owner.folders

    @classmethod
    def resolve(cls, environment: Mapping[str, str] | None = None) -> "Folders":
        """The folders for this user and environment."""
        env = os.environ if environment is None else environment
        if home := env.get("SNDR_HOME"):
            base = files.expanded(home).absolute()
            config, data, cache, run = base / "config", base / "data", base / "cache", base / "run"
        else:
            config = platformdirs.user_config_path("sndr", appauthor=False)
            data = platformdirs.user_data_path("sndr", appauthor=False)
            cache = platformdirs.user_cache_path("sndr", appauthor=False)
            run = _run_folder(env)
        if moved := env.get("SNDR_CACHE"):
            cache = files.expanded(moved).absolute()
        return cls(config, data, cache, _short_enough(run))

    def make_run_folder(self) -> None:
        """Make the run folder, private to this user.

        Raises HostError(run_folder_unsafe) when it belongs to somebody else or others may enter it, and
        HostError(not_writable) when it cannot be made.
        """
        from engine_host.core.errors import HostError
        from engine_host.protocol.errors import Reason

        try:
            self.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise HostError(
                Reason.NOT_WRITABLE,
                tr("The run folder {run} cannot be made: {error}.", run=self.run, error=error.strerror),
                cause="The folder above it is not writable, or a file is in the way.",
                fix="Make it writable, or set SNDR_HOME to a folder of yours.",
                evidence={"path": str(self.run), "errno": error.errno},
            ) from error
        self.check_run_folder()

    def check_run_folder(self) -> None:
        """Make sure that what lies in the run folder is this user's; one that is not there is no harm.

        Raises HostError(run_folder_unsafe) when it belongs to somebody else or others may enter it.
        """
        if (problem := self.run_folder_problem()) is not None:
            from engine_host.core.errors import HostError

            raise HostError.from_problem(problem)

    def run_folder_problem(self) -> "Problem | None":
        """Return why nothing in the run folder is trusted; None when it is this user's alone or not there."""
        return private_folder_problem(self.run)


def private_folder_problem(run: Path) -> "Problem | None":
    """Return why nothing in a run folder is trusted; None when it is this user's alone or not there."""
    if sys.platform == "win32":
        return None
    try:
        info = run.lstat()
    except OSError:
        # Nothing can be read from it either.
        return None
    mode = stat.S_IMODE(info.st_mode)
    own = stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()
    if own and not mode & 0o077:
        return None
    # The window looks here before its first picture, for which pydantic would be late.
    from engine_host.protocol.errors import Fix, Problem, Reason

    if not own:
        return Problem(
            reason=Reason.RUN_FOLDER_UNSAFE,
            message=tr(
                "The run folder {run} is not a folder of yours (owner {st_uid}).", run=run, st_uid=info.st_uid
            ),
            cause="Another user made it, or it is a link.",
            fix=Fix(text="Remove it, or set SNDR_HOME to a folder of yours."),
            evidence={"path": str(run), "owner": info.st_uid, "mode": oct(mode)},
        )
    return Problem(
        reason=Reason.RUN_FOLDER_UNSAFE,
        message=tr("The run folder {run} can be entered by others (mode {mode:04o}).", run=run, mode=mode),
        cause="Its permissions were changed; whoever enters it could talk to your engines.",
        fix=Fix(text="Make it private again.", command=f"chmod 700 {run}"),
        evidence={"path": str(run), "mode": f"{mode:04o}"},
    )


@dataclass(frozen=True)
class LockOwner:
    """The note that a host leaves when it locks a data folder; `folders` are those that reach it.

    `stays`: it ended with nobody's window or command, since this machine was started.
    """

    pid: int
    machine: str
    folders: Folders
    stays: bool = False

    @property
    def here(self) -> bool:
        """True if that host is on this machine; a home folder may be shared by several."""
        return self.machine == platform.node()


def boot() -> str:
    """Return what tells this run of the machine from another; empty where the system says nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _run_folder(env: Mapping[str, str]) -> Path:
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if runtime and os.path.isdir(runtime):
        return Path(runtime) / "sndr"
    if sys.platform == "win32":
        return platformdirs.user_data_path("sndr", appauthor=False) / "run"
    return Path(tempfile.gettempdir()) / f"sndr-{os.getuid()}"


def _short_enough(run: Path) -> Path:
    """The folder itself, or a short stand-in for one whose socket paths the system would refuse."""
    if sys.platform == "win32" or len(os.fsencode(run)) <= _LONGEST_RUN_FOLDER:
        return run
    digest = hashlib.sha256(os.fsencode(run)).hexdigest()[:12]
    return Path("/tmp") / f"sndr-{os.getuid()}-{digest}"
