"""Our host in a second home: installed, found, updated, taken back, and removed without a trace."""

import asyncio
import json
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
from engine_host.protocol.remote_install import InstallOnHost, RemoteChange
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

__all__ = ["wheel"]


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


def test_installed_offline_it_serves_and_is_removed_without_a_trace(
    there: SecondHome, workplace: Workplace
) -> None:
    before = tree(there.home)
    asked = InstallOnHost(offline=True, demo=True)
    plan = asyncio.run(planned(there.machine, asked, workplace))
    assert tree(there.home) == before, "a plan changes nothing"
    assert plan.packages == "here"
    assert any(one.kind is RemoteChange.ADD and str(plan.release) in one.what for one in plan.changes)

    said: list[str] = []
    done = asyncio.run(install(there.machine, asked, workplace, steps(said)))
    assert said == list(installing.STEPS)
    assert (done.release, done.unchanged) == (plan.release, False)
    assert done.demo_answer is not None
    assert "SNDR" in done.demo_answer
    status = asked_there(there, "status", "--json")
    assert status.returncode == 0, status.stderr
    assert json.loads(status.stdout)["host"]["pid"] in pids_in(there.home.parent)
    # A second one finds it and leaves it alone.
    again = asyncio.run(install(there.machine, InstallOnHost(offline=True), workplace, steps([])))
    assert again.unchanged

    what = asyncio.run(planned_removal(there.machine))
    assert {one.what for one in what.changes if one.kind is RemoteChange.REMOVE} >= {
        str(there.home / ".local/share/sndr/host")
    }
    asyncio.run(uninstall(there.machine, steps([])))
    assert tree(there.home) == before
    with pytest.raises(HostError) as failed:
        asyncio.run(uninstall(there.machine, steps([])))
    assert failed.value.reason is Reason.NOT_FOUND


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


def test_an_update_that_does_not_work_brings_the_old_one_back(
    there: SecondHome, workplace: Workplace, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = InstallOnHost(offline=True)
    first = asyncio.run(install(there.machine, asked, workplace, steps([])))

    def use(release: own_wheel.LocalFile) -> None:
        async def made(_folder: Path) -> own_wheel.LocalFile:
            return release

        monkeypatch.setattr(installing, "own_wheel", made)

    def runs() -> str:
        assert asked_there(there, "status", "--json").returncode == 0
        return (there.home / ".local/share/sndr/host/current").readlink().name

    broken = changed_wheel(
        wheel, tmp_path / "broken", {"engine_host/daemon/main.py": "raise SystemExit('no')\n"}
    )
    use(broken)
    with pytest.raises(HostError) as failed:
        asyncio.run(install(there.machine, asked, workplace, steps([]), update=True))
    assert failed.value.reason is Reason.VERIFICATION_FAILED
    assert f"{first.release}, which ran before, runs again" in failed.value.problem.message
    assert runs() == first.release

    good = changed_wheel(wheel, tmp_path / "good", {"engine_host/new.txt": "new"})
    use(good)
    done = asyncio.run(install(there.machine, asked, workplace, steps([]), update=True))
    assert (done.release, done.back_to) == (good.release, first.release)
    assert runs() == good.release
    returned = asyncio.run(back(there.machine, steps([])))
    assert (returned.release, returned.back_to) == (first.release, good.release)
    assert runs() == first.release
    root = there.home / ".local/share/sndr/host"
    assert not (root / broken.release).exists()
    assert not (root / "incoming").exists()
    asyncio.run(uninstall(there.machine, steps([])))


def test_a_lost_connection_leaves_what_the_next_try_goes_on_from(
    there: SecondHome, workplace: Workplace, wheel: Path
) -> None:
    before = tree(there.home)
    incoming = there.home / ".local/share/sndr/host/incoming"
    offline = InstallOnHost(offline=True)

    def fail(asked: dict[str, Any]) -> None:
        if asked["step"] == "switch":
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
    # Now the release is complete there, and only the switch is missing.
    there.breaks = lambda _asked: None
    there.sent.clear()
    done = asyncio.run(install(there.machine, offline, workplace, steps([])))
    assert (done.unchanged, there.sent) == (False, [])
    asyncio.run(uninstall(there.machine, steps([])))
    assert tree(there.home) == before


def test_a_full_disk_leaves_nothing(there: SecondHome, workplace: Workplace) -> None:
    before = tree(there.home)
    # The kernel's own limit of a file takes the place of the full disk.
    there.largest_file = 5 << 20
    with pytest.raises(HostError) as failed:
        asyncio.run(install(there.machine, InstallOnHost(offline=True), workplace, steps([])))
    assert failed.value.reason is Reason.DISK_FULL
    assert "Free some space there" in str(failed.value.problem.fix)
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
