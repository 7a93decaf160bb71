"""The parts that every view-model is handed: the host's state, the connection to it, tasks and notices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from sndr_gui.host.connection import HostConnection
from sndr_gui.host.notices import Notices
from sndr_gui.host.state import HostState
from sndr_gui.host.tasks import Tasks


@dataclass(frozen=True)
class Session:
    """One window's session with one host; `host` is the name of one on another machine."""

    state: HostState
    connection: HostConnection
    tasks: Tasks
    notices: Notices
    host: str = ""
    _reads: dict[str, Callable[[], None] | None] = field(default_factory=dict, repr=False)

    @property
    def client(self) -> AsyncControlClient:
        """The client. Raises HostError(host_unreachable) while there is no host."""
        return self.connection.client

    def command(
        self,
        name: str,
        work: Callable[[AsyncControlClient], Awaitable[object]],
        *,
        done: Callable[[], object] | None = None,
        failed: Callable[[HostError], object] | None = None,
    ) -> None:
        """Send a command in the background; a failure becomes a notice unless `failed` takes it."""
        self.tasks.start(self._command(name, work, done, failed), name)

    def read(
        self,
        name: str,
        work: Callable[[AsyncControlClient], Awaitable[object]],
        *,
        done: Callable[[], object] | None = None,
        failed: Callable[[HostError], object] | None = None,
    ) -> None:
        """Read what is shown, in the background; what was asked meanwhile under this name is read after it.

        Two answers come in any order: the older one would be what stays in sight. That the host is gone the
        connection says for all.
        """

        def tell(error: HostError) -> None:
            if not error.lost:
                self.notices.problem(name, error.problem)

        def over() -> None:
            newest = self._reads.pop(name)
            if done is not None:
                done()
            if newest is not None:
                newest()

        if name in self._reads:
            self._reads[name] = lambda: self.read(name, work, done=done, failed=failed)
            return
        self._reads[name] = None
        self.command(name, work, done=over, failed=failed or tell)

    async def _command(
        self,
        name: str,
        work: Callable[[AsyncControlClient], Awaitable[object]],
        done: Callable[[], object] | None,
        failed: Callable[[HostError], object] | None,
    ) -> None:
        try:
            await work(self.client)
        except HostError as error:
            if failed is not None:
                failed(error)
            elif error.lost:
                self.notices.error(name, str(error))
            else:
                self.notices.problem(name, error.problem)
        finally:
            if done is not None:
                done()
