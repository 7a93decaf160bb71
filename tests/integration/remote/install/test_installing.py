"""Our host in a second home: installed, found, updated, taken back, and removed without a trace."""

import asyncio
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.install import InstallOnHost, RemoteChange
from engine_host.remote.install import installing, own_wheel
from engine_host.remote.install.installing import (
    Workplace,
    back,
    install,
    planned,
    planned_removal,
    uninstall,
)
from engine_host.remote.install.own_wheel import file_of
from tests.installed_program import wheel
from tests.integration.host_process import alive
from tests.integration.remote.install.machines import SecondHome, pids_in, tree
from tests.integration.remote.machines import fill, small_disk

__all__ = ["wheel"]


pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, wheel: Path) -> Iterator[SecondHome]:
    """A home with something of its owner's in it; no host may be left in it in the end."""
    base = Path(tempfile.mkdtemp(prefix="sndr-r-"))
    home = base / "home"
    (home / ".local" / "share").mkdir(parents=True)
    (home / "notes.txt").write_text("mine", encoding="utf-8")

    async def ready(_folder: Path) -> own_wheel.LocalFile:
        return file_of(wheel)

    # It is built once for all tests; that it is built is tested beside it.
    monkeypatch.setattr(installing, "own_wheel", ready)
    machine = SecondHome(home)
    yield machine
    left = [pid for pid in pids_in(base) if alive([pid])]
    shutil.rmtree(base, ignore_errors=True)
    assert left == []


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """Folders of this test; the archive of packages is made once a machine."""
    return Workplace(tmp_path / "wheels", Path(tempfile.gettempdir()) / "sndr-test-packages")


def steps(said: list[str]) -> installing.Tell:
    return lambda name, _detail, _share: said.append(name) if name not in said else None


def asked_there(machine: SecondHome, *words: str) -> "subprocess.CompletedProcess[str]":
    program = machine.home / ".local/share/sndr/host/current/bin/sndr"
    return subprocess.run(
        [str(program), *words],
        env=machine.environment,
        cwd=machine.home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def changed_wheel(wheel: Path, folder: Path, replaced: dict[str, str]) -> own_wheel.LocalFile:
    """Another release: the same wheel with other files."""
    folder.mkdir()
    target = folder / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            if info.filename not in replaced:
                new.writestr(info, old.read(info))
        for name, text in replaced.items():
            new.writestr(name, text)
    return file_of(target)


def test_an_update_can_be_taken_back_and_all_of_it_removed(
    there: SecondHome, workplace: Workplace, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(there.home)
    asked = InstallOnHost(offline=True)
    said: list[str] = []
    first = asyncio.run(install(there.machine, asked, workplace, steps(said)))
    assert first.release is not None
    assert said == list(installing.steps_of(asked))
    assert (first.unchanged, first.back_to) == (False, None)
    again = asyncio.run(install(there.machine, asked, workplace, steps([])))
    assert (again.unchanged, again.release) == (True, first.release)

    root = there.home / ".local/share/sndr/host"
    gone = next((root / first.release).glob("lib/*/site-packages/pydantic/main.py"))
    gone.unlink()
    mended = asyncio.run(install(there.machine, asked, workplace, steps([]), update=True))
    assert (mended.unchanged, mended.release) == (False, first.release)
    assert (mended.repaired or "").endswith("pydantic/main.py is missing")
    assert gone.exists()

    def runs() -> str:
        assert asked_there(there, "status", "--json").returncode == 0
        return (there.home / ".local/share/sndr/host/current").readlink().name

    newer = changed_wheel(wheel, tmp_path / "newer", {"engine_host/new.txt": "new"})

    async def made(_folder: Path) -> own_wheel.LocalFile:
        return newer

    monkeypatch.setattr(installing, "own_wheel", made)
    done = asyncio.run(install(there.machine, asked, workplace, steps([]), update=True))
    assert (done.release, done.back_to) == (newer.release, first.release)
    assert runs() == newer.release
    returned = asyncio.run(back(there.machine, steps([])))
    assert (returned.release, returned.back_to) == (first.release, newer.release)
    assert runs() == first.release
    what = asyncio.run(planned_removal(there.machine))
    assert str(root) in {one.what for one in what.changes if one.kind is RemoteChange.REMOVE}
    assert not (root / "incoming").exists()
    asyncio.run(uninstall(there.machine, steps([])))
    assert tree(there.home) == before
    with pytest.raises(HostError) as failed:
        asyncio.run(uninstall(there.machine, steps([])))
    assert failed.value.reason is Reason.NOT_FOUND


def test_a_lost_connection_leaves_what_the_next_try_goes_on_from(
    there: SecondHome, workplace: Workplace, wheel: Path
) -> None:
    before = tree(there.home)
    incoming = there.home / ".local/share/sndr/host/incoming"
    offline = InstallOnHost(offline=True)

    def fail(asked: dict[str, Any]) -> None:
        if asked["step"] == "environment":
            raise HostError(Reason.SSH_LOST, "The connection to gpu was lost.")

    there.lose_after = 8 << 20
    with pytest.raises(HostError) as failed:
        asyncio.run(install(there.machine, offline, workplace, steps([])))
    assert failed.value.reason is Reason.SSH_LOST
    (part,) = incoming.iterdir()
    assert wheel.name in part.name
    there.lose_after, there.breaks = None, fail
    there.sent.clear()
    with pytest.raises(HostError):
        asyncio.run(install(there.machine, offline, workplace, steps([])))
    assert there.sent[0] < wheel.stat().st_size - (4 << 20), "what had arrived was not sent again"
    there.sent.clear()
    with pytest.raises(HostError):
        asyncio.run(install(there.machine, offline, workplace, steps([])))
    assert there.sent == [], "all of it was there"
    there.breaks = lambda _asked: None
    asyncio.run(uninstall(there.machine, steps([])))
    assert tree(there.home) == before


@pytest.mark.parametrize("step", ["begin", "environment", "switch"])
def test_a_disk_that_fills_up_on_the_way_leaves_nothing(
    there: SecondHome, workplace: Workplace, step: str
) -> None:
    share = there.home / ".local" / "share"
    theirs: list[Path] = []

    def fills_up(asked: dict[str, Any]) -> None:
        if asked["step"] == step and not theirs:
            theirs.append(fill(share, leaving=0 if step == "switch" else 40 << 20))

    with small_disk(share, 900):
        before = tree(there.home)
        there.breaks = fills_up
        with pytest.raises(HostError) as failed:
            asyncio.run(install(there.machine, InstallOnHost(offline=True), workplace, steps([])))
        assert failed.value.reason is Reason.DISK_FULL
        assert "Free some space there" in str(failed.value.problem.fix)
        theirs[0].unlink()
        assert tree(there.home) == before


def test_packages_come_from_the_index_there_by_their_hashes(
    there: SecondHome, workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = asyncio.run(planned(there.machine, InstallOnHost(), workplace))
    if plan.packages != "index":
        pytest.skip("no package index answers here")
    before = tree(there.home)
    done = asyncio.run(install(there.machine, InstallOnHost(), workplace, steps([])))
    assert done.release == plan.release
    assert asked_there(there, "status", "--json").returncode == 0
    asyncio.run(uninstall(there.machine, steps([])))
    assert tree(there.home) == before
