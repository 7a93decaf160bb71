"""Jobs on environments, with real jobs, files and locks; the environment itself is FAKE: a few files."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine_host.cli.engine import _environments
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.engines.vllm.environment_folder import lock_environment
from engine_host.engines.vllm.install import install
from engine_host.engines.vllm.installations import VllmInstallations
from engine_host.operations.installations import InstallationOperations
from engine_host.protocol.engines import Engine, Installation
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobState
from tests.integration.engines.vllm.tiny_vllm import OTHER, PIN, TinyVllm
from tests.plan_samples import engine_of, vllm_plan
from tests.unit.asynchronous import run, until
from tests.unit.engines.vllm.undeletable import undeletable

CPU = "0.32.0-cpu"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyVllm:
    """Packages that the real uv installs in seconds; FAKE is what they hold."""
    return TinyVllm(tmp_path).use(monkeypatch)


class Desk:
    """The jobs as the host builds them."""

    def __init__(self, folders: Folders, store: Store) -> None:
        self.events = EventLog()
        self.runner = JobRunner(self.events.publish, store)
        self.log_buffer = LogBuffer(self.events.publish)
        self.installations = VllmInstallations(folders.cache / "vllm-environments", lambda: False)
        self.running: list[Engine] = []
        self.jobs = InstallationOperations(
            folders, self.runner, self.events, self.log_buffer, self.installations, self._engines
        )
        self.home = self.installations.folder / CPU

    def _engines(self) -> Sequence[Engine]:
        return self.running

    def make(self) -> None:
        """An environment that looks whole."""
        vllm = self.home / "lib" / "python3.11" / "site-packages" / "vllm"
        vllm.mkdir(parents=True)
        (vllm / "__init__.py").write_text("x = 1\n")
        (self.home / "bin").mkdir()
        (self.home / "bin" / "python").touch()
        (self.home / "installation.json").write_text(json.dumps({"size": 10}))

    async def listed(self, wanted: str = CPU) -> Installation:
        """One of the list."""
        return next(one for one in (await self.jobs.page()).installations if one.id == wanted)

    async def ended(self, job: Job) -> Job:
        """Wait for a job."""
        return await self.runner.ended(job.id)


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    """In the folders of this test."""
    folders = Folders.resolve()
    store = Store(folders.store)
    built = Desk(folders, store)
    try:
        yield built
    finally:
        await built.runner.close()
        built.log_buffer.close()
        store.close()


def engine(installation: str) -> Engine:
    """An engine that runs from an environment."""
    return engine_of(vllm_plan(name="coder", installation=installation))


def test_a_removed_one_is_gone_and_its_size_is_told() -> None:
    async def act() -> None:
        async with desk() as built:
            built.make()
            assert (await built.listed()).present
            job = await built.ended(built.jobs.remove(CPU))
            assert job.state is JobState.DONE
            assert job.result["removed"] == str(built.home)
            assert job.result["freed"] > 0
            assert list(built.home.parent.iterdir()) == []
            assert not (await built.listed()).present

    run(act())


def test_what_stays_of_a_removed_one_is_told_and_the_next_removal_takes_it() -> None:
    async def act() -> None:
        async with desk() as built:
            built.make()
            with undeletable(built.home / "lib" / "python3.11" / "site-packages" / "vllm" / "__init__.py"):
                job = await built.ended(built.jobs.remove(CPU))
                assert job.state is JobState.FAILED
                assert job.error is not None
                assert job.error.reason is Reason.NOT_WRITABLE
                (kept,) = job.error.evidence["kept"]
                assert kept["path"].endswith("vllm/__init__.py")
                assert kept["path"].startswith(f"{built.home.parent}/.{CPU}.removed-")
                assert job.error.cause == f"{kept['path']}: {kept['why']}."
                one = await built.listed()
                assert (one.present, one.problem) == (False, None)
                assert one.leftover is not None
                assert one.leftover > 0
            job = await built.ended(built.jobs.remove(CPU))
            assert (await built.listed()).leftover is None
            assert job.state is JobState.DONE
            assert list(built.home.parent.iterdir()) == []

    run(act())


def test_a_removal_that_began_goes_to_its_end() -> None:
    async def act() -> None:
        async with desk() as built:
            built.make()
            for number in range(2000):
                (built.home / "lib" / str(number)).touch()
            job = built.jobs.remove(CPU)
            await until(lambda: not built.home.exists())
            for _ in range(3):
                built.runner.cancel(job.id)
                await asyncio.sleep(0)
            ended = await built.ended(job)
            assert ended.state is JobState.DONE, "it is as it is told: removed"
            assert list(built.home.parent.iterdir()) == []

    run(act())


def test_nothing_is_removed_while_an_engine_runs_from_it() -> None:
    async def act() -> None:
        async with desk() as built:
            built.make()
            built.running = [engine(CPU)]
            for action in (built.jobs.remove, built.jobs.install):
                with pytest.raises(HostError) as raised:
                    action(CPU)
                assert raised.value.reason is Reason.CONFLICT
                assert raised.value.problem.fix is not None
                assert raised.value.problem.fix.command == "sndr stop coder"
            assert (await built.listed()).present
            assert built.runner.all() == []

    run(act())


def test_nothing_is_removed_while_another_host_is_at_work_there() -> None:
    async def act() -> None:
        async with desk() as built:
            built.make()
            async with lock_environment(built.home):
                job = await built.ended(built.jobs.remove(CPU))
            assert job.error is not None
            assert job.error.reason is Reason.CONFLICT
            assert (built.home / "installation.json").exists()

    run(act())


def test_a_killed_install_is_a_leftover_that_the_next_install_clears(tiny: TinyVllm) -> None:
    async def act() -> None:
        async with desk() as built:
            home = built.installations.home(PIN)
            await tiny.killed_install(home)
            other = built.installations.home(OTHER)
            (other / "lib").mkdir(parents=True)
            (other / "lib" / "part.so").write_bytes(b"x" * 9000)
            for pin in (PIN, OTHER):
                one = await built.listed(pin.id)
                assert (one.present, one.problem) == (False, None)
                assert one.leftover is not None
                assert one.leftover >= 4096
            lines = "\n".join(_environments(await built.jobs.page()))
            assert "cut-off work left" in lines
            job = await built.ended(built.jobs.install(PIN.id))
            assert job.state is JobState.DONE, job.error
            assert (await built.listed(PIN.id)).present
            assert (await built.listed(PIN.id)).leftover is None
            assert sorted(path.name for path in home.parent.iterdir()) == [PIN.id]
            assert any("freed" in line and OTHER.id in line for line in built.log_buffer.tail("install", 50))

    run(act())


def test_where_another_host_installs_nothing_is_a_leftover(tiny: TinyVllm) -> None:
    async def act() -> None:
        async with desk() as built:
            other = built.installations.home(OTHER)
            (other / "lib").mkdir(parents=True)
            (other / "lib" / "part.so").write_bytes(b"x" * 9000)
            async with lock_environment(other):
                one = await built.listed(OTHER.id)
                assert (one.leftover, one.changing, one.problem) == (None, True, None)
                with pytest.raises(HostError) as raised:
                    built.installations.find(OTHER.id)
                assert raised.value.reason is Reason.CONFLICT
                job = await built.ended(built.jobs.install(PIN.id))
                assert job.state is JobState.DONE, job.error
                assert (other / "lib" / "part.so").exists()
            job = await built.ended(built.jobs.remove(OTHER.id))
            assert job.state is JobState.DONE
            assert not other.exists()

    run(act())
    assert tiny.links.is_dir()


def test_nothing_is_removed_under_an_engine_of_another_host(tiny: TinyVllm) -> None:
    async def act() -> None:
        async with desk() as built:
            home = built.installations.home(PIN)
            await install(tiny.request(home), lambda _step: None)
            process = await asyncio.create_subprocess_exec(
                str(home / "bin" / "python"), "-c", "print(1, flush=True); input()",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert process.stdout is not None
            await process.stdout.readline()
            job = await built.ended(built.jobs.remove(PIN.id))
            again = await built.ended(built.jobs.install(PIN.id))
            process.kill()
            await process.communicate()
            for refused in (job, again):
                assert refused.error is not None
                assert refused.error.reason is Reason.CONFLICT
                assert refused.error.evidence["pid"] == process.pid
                assert (refused.undone, refused.left) == ("", "")
            assert built.installations.find(str(home)).id == PIN.id, "by its path it is the same"
            job = await built.ended(built.jobs.remove(PIN.id))
            assert job.state is JobState.DONE
            with pytest.raises(HostError) as raised:
                built.installations.find(str(home))
            assert raised.value.reason is Reason.NOT_FOUND

    run(act())


def test_a_cancelled_install_says_what_was_undone_and_what_is_left(
    tiny: TinyVllm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_WAITS", str(tiny.started))

    async def cancelled(built: Desk) -> Job:
        job = built.jobs.install(PIN.id)
        await until(lambda: tiny.started.exists() and tiny.started.read_text())
        assert built.jobs.install(PIN.id).id == job.id, "asked twice it is one install"
        with undeletable(built.installations.home(PIN) / "pyvenv.cfg") if keep else contextlib.nullcontext():
            for _ in range(2):
                built.runner.cancel(job.id)
                await asyncio.sleep(0)
            ended = await built.ended(job)
            tiny.started.unlink()
            return ended

    keep = False

    async def act() -> None:
        nonlocal keep
        async with desk() as built:
            home = built.installations.home(PIN)
            ended = await cancelled(built)
            assert ended.state is JobState.CANCELLED
            assert ended.undone == "The half-installed environment was removed."
            assert ended.left.startswith("Downloads stay in the cache")
            assert list(home.parent.iterdir()) == []
            keep = True
            ended = await cancelled(built)
            assert (ended.state, ended.undone) == (JobState.CANCELLED, "")
            assert f"{home.parent}/.{PIN.id}.removed-" in ended.left
            assert "could not be deleted entirely" in ended.left
            monkeypatch.delenv("TINY_WAITS")
            ended = await built.ended(built.jobs.install(PIN.id))
            assert ended.state is JobState.DONE, ended.error
            assert [path.name for path in home.parent.iterdir()] == [PIN.id]

    run(act())


def test_a_reinstall_that_fails_or_is_cut_off_leaves_the_old_one(tiny: TinyVllm) -> None:
    async def act() -> None:
        async with desk() as built:
            home = built.installations.home(PIN)
            job = await built.ended(built.jobs.install(PIN.id))
            assert job.state is JobState.DONE, job.error
            (home / "mark").touch()
            tiny.write_lock(wrong=True)
            job = await built.ended(built.jobs.install(PIN.id))
            assert job.state is JobState.FAILED
            assert job.undone == "The environment that was there before is back, as it was."
            assert job.left == "Downloads stay in the cache, so that the next try starts from them."
            assert (home / "mark").exists()
            tiny.write_lock()
            await tiny.killed_install(home)
            assert not (await built.listed(PIN.id)).present
            await built.jobs.recover()
            one = await built.listed(PIN.id)
            assert (one.present, one.problem) == (True, None)
            assert (home / "mark").exists()
            assert any("brought back" in line for line in built.log_buffer.tail("install", 20))
            job = await built.ended(built.jobs.install(PIN.id))
            assert job.state is JobState.DONE, job.error
            assert [path.name for path in home.parent.iterdir()] == [PIN.id]
            assert not (home / "mark").exists()

    run(act())
