"""What every view-model is handed: the host's state, the link to it, tasks and notices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sndr_gui.host.client import HostClient
from sndr_gui.host.connection import Link
from sndr_gui.host.errors import HostError, HostRefused
from sndr_gui.host.notices import Notices
from sndr_gui.host.state import HostState
from sndr_gui.host.tasks import Tasks


@dataclass(frozen=True)
class Session:
    """One window's session with one host."""

    state: HostState
    link: Link
    tasks: Tasks
    notices: Notices

    @property
    def client(self) -> HostClient:
        """The client. Raises HostUnreachable while there is no host."""
        return self.link.client

    def command(
        self,
        name: str,
        work: Callable[[HostClient], Awaitable[object]],
        *,
        done: Callable[[], object] | None = None,
        failed: Callable[[HostError], object] | None = None,
    ) -> None:
        """Send a command in the background; a failure becomes a notice unless `failed` takes it."""
        self.tasks.start(self._command(name, work, done, failed), name)

    async def _command(
        self,
        name: str,
        work: Callable[[HostClient], Awaitable[object]],
        done: Callable[[], object] | None,
        failed: Callable[[HostError], object] | None,
    ) -> None:
        try:
            await work(self.client)
        except HostError as error:
            if failed is not None:
                failed(error)
            elif isinstance(error, HostRefused):
                self.notices.problem(name, error.problem)
            else:
                self.notices.error(name, str(error))
        finally:
            if done is not None:
                done()
