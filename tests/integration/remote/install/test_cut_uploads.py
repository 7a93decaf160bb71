"""An install whose upload is cut, over a real sshd: it goes on by itself, or says what is left there."""

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psutil
import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import RemoteHostState, RemoteMode
from engine_host.protocol.remote.install import InstallOnHost
from engine_host.remote.install import installing, own_wheel
from engine_host.remote.install.installing import STEPS, Workplace, install
from engine_host.remote.install.machine import Machine
from engine_host.remote.install.own_wheel import file_of
from engine_host.remote.transfer.steadily import steadily
from tests.installed_program import wheel
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.install.machines import tree
from tests.integration.remote.machines import Machines
from tests.unit.asynchronous import run, until

__all__ = ["wheel"]
pytestmark = pytest.mark.timeout(300)
Open = Callable[..., AbstractAsyncContextManager[Fleet]]


@pytest.fixture
def workplace(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """Folders of this test; the wheel is built once for all tests, and so is the archive of packages."""

    async def ready(_folder: Path) -> own_wheel.LocalFile:
        return file_of(wheel)

    monkeypatch.setattr(installing, "own_wheel", ready)
    return Workplace(tmp_path / "wheels", Path(tempfile.gettempdir()) / "sndr-test-packages")


class Cut:
    """Does one mishap after the other while an install uploads, and notes what was told."""

    def __init__(self, *mishaps: tuple[float, Callable[[], None]]) -> None:
        self.mishaps = list(mishaps)
        self.waited = 0
        self.shares: list[float] = []
        """The first share that was told after each mishap."""
        self.reached = asyncio.Event()
        self._after = False
        self.left = ""

    def tell(self, step: str, detail: str, share: float | None) -> None:
        """Take what an install says."""
        if step == STEPS[3] and share is None:
            self.waited += "waited for" in detail
        if step == STEPS[3] and share is not None:
            if self._after and not self._waits_behind:
                self.shares.append(share)
                self._after = False
            if self.mishaps and share >= self.mishaps[0][0] and not self._after:
                _, mishap = self.mishaps.pop(0)
                self._behind = self.waited
                self._after = True
                mishap()
        if step == STEPS[4]:
            self.reached.set()

    _behind = -1

    @property
    def _waits_behind(self) -> bool:
        """True until the break was heard of: pieces that were on their way are still told."""
        return self.waited == self._behind

    def note(self, sentence: str) -> None:
        """Take what would be true there."""
        self.left = sentence


def steady(found: Fleet) -> Machine:
    """The machine as the operation has it."""
    hosts = found.hosts
    return Machine("gpu", hosts, lambda work, waits: steadily(hosts, "gpu", work, waits))


def kill_ssh() -> None:
    """Kill every ssh of this process: the connection and what goes over it."""
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if one.name() == "ssh":
                one.kill()


def kill_sessions(machines: Machines) -> None:
    """Kill what serves the connections there; sshd itself goes on."""
    for one in machines.target.processes()[1:]:
        with contextlib.suppress(psutil.NoSuchProcess):
            if one.name() == "sshd":
                one.kill()


def test_an_upload_that_is_cut_three_times_goes_on_from_where_it_was(
    fleet: Open, machines: Machines, workplace: Workplace
) -> None:
    before = tree(machines.far)

    def freeze() -> None:
        machines.target.signal(signal.SIGSTOP)
        # The connection is given up after some two seconds without an answer.
        asyncio.get_running_loop().call_later(4.0, machines.target.signal, signal.SIGCONT)

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct", RemoteMode.ENGINE_HOST)
            found.hosts.connect("gpu")
            await found.reach("gpu")
            cut = Cut((0.2, kill_ssh), (0.4, lambda: kill_sessions(machines)), (0.6, freeze))
            asked = InstallOnHost(offline=True)
            at_work = asyncio.create_task(install(steady(found), asked, workplace, cut.tell, cut.note))
            reached = asyncio.create_task(cut.reached.wait())
            await asyncio.wait({at_work, reached}, return_when=asyncio.FIRST_COMPLETED)
            assert reached.done(), await at_work
            assert cut.waited == 3
            assert len(cut.shares) == 3
            assert min(cut.shares) > 0.1, "what had arrived was not sent again"
            at_work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await at_work
            assert cut.left == "Nothing of it is left there."
            await until(lambda: not over_ssh(machines))

    run(work())
    assert tree(machines.far) == before


def test_an_upload_whose_connection_nobody_wants_any_more_is_gone_on_with_later(
    fleet: Open, machines: Machines, workplace: Workplace
) -> None:
    before = tree(machines.far)

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct", RemoteMode.ENGINE_HOST)
            found.hosts.connect("gpu")
            await found.reach("gpu")
            cut = Cut((0.5, machines.target.stop))
            asked = InstallOnHost(offline=True)
            at_work = asyncio.create_task(install(steady(found), asked, workplace, cut.tell, cut.note))
            await until(lambda: cut.waited == 1 or at_work.done())
            await found.hosts.disconnect("gpu")
            with pytest.raises(HostError) as lost:
                await at_work
            assert lost.value.reason is Reason.SSH_LOST
            assert "gpu was disconnected in the middle of it" in str(lost.value)
            assert cut.left == installing._KEPT
            assert list(machines.far.rglob("*.sndr-part"))
            machines.target.start()
            found.hosts.connect("gpu")
            await found.reach("gpu", RemoteHostState.CONNECTED)
            again = Cut()
            again._after = True
            at_work = asyncio.create_task(install(steady(found), asked, workplace, again.tell, again.note))
            await until(lambda: again.reached.is_set() or at_work.done(), 60.0)
            assert again.shares[0] > 0.2
            at_work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await at_work
            assert again.left == "Nothing of it is left there."

    run(work())
    assert tree(machines.far) == before


def over_ssh(machines: Machines) -> list[str]:
    """The programs that run in sessions there, by name."""
    return [one.name() for one in machines.target.processes() if one.name().startswith("python")]
