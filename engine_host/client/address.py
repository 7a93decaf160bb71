"""The address of an engine host on another machine: a forwarded socket, and the file with its token."""

from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.paths import private_folder_problem


@dataclass(frozen=True)
class RemoteAddress:
    """A host on another machine as this machine's host reaches it; `name` is what a person calls it."""

    name: str
    socket: Path
    token: Path

    def check_run_folder(self) -> None:
        """Make sure that what lies beside the socket is this user's.

        Raises HostError(run_folder_unsafe) when its folder belongs to somebody else or others may enter it.
        """
        if (problem := private_folder_problem(self.socket.parent)) is not None:
            raise HostError.from_problem(problem)
