"""Models that are sent to and fetched from another machine over the real ssh: compared, resumed, checked."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import psutil
import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.package_data import resources
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.library.index import ModelIndex
from engine_host.operations.models import ModelOperations
from engine_host.operations.remote.transfers import ModelTransferOperations
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.remote.hosts import RemoteMode
from engine_host.protocol.remote.transfers import FetchModel, FileStanding, ModelTransferred, SendModel
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines, small_disk
from tests.unit.asynchronous import run, until

Open = Callable[..., AbstractAsyncContextManager[Fleet]]
LARGE = 40_000_000
HOSTILE = '$(touch pwned) \'; "a" -rf'


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A model of one file: the bundled one under another name."""
    source = next((resources() / "models").rglob("*.gguf"))
    path = tmp_path / "here" / "demo.gguf"
    path.parent.mkdir()
    path.write_bytes(source.read_bytes())
    return path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder of safetensors: some large file, a config, a folder below, and a copy in another form."""
    folder = tmp_path / "here too" / HOSTILE
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}', encoding="utf-8")
    (folder / "1_Pooling" / "config.json").write_text("{}", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(_weights())
    (folder / "pytorch_model.bin").write_bytes(b"the same again")
    (folder / ".git").mkdir()
    return folder


def _weights() -> bytes:
    head = b'{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (LARGE, LARGE)
    return len(head).to_bytes(8, "little") + head + os.urandom(LARGE)


class Desk:
    """The transfers of one run."""

    def __init__(self, fleet: Fleet, jobs: JobRunner, operations: ModelTransferOperations) -> None:
        self.fleet, self.jobs, self.operations = fleet, jobs, operations

    async def done(self, job: Job) -> ModelTransferred:
        """Return the result of a job that has to end well."""
        ended = await self.jobs.ended(job.id)
        assert ended.state is JobState.DONE, ended.error
        return ModelTransferred.model_validate(ended.result)

    async def connect(self, destination: str = "direct", model_root: str = "") -> None:
        """Add and connect a machine."""
        more = {"model_root": model_root} if model_root else {}
        self.fleet.add("gpu", destination, RemoteMode.AGENTLESS, **more)
        self.fleet.hosts.connect("gpu")
        await self.fleet.reach("gpu")


@pytest.fixture
def desk(fleet: Open, tmp_path: Path) -> Callable[[], AbstractAsyncContextManager[Desk]]:
    """Open the transfers of a run."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Desk]:
        store = Store(tmp_path / "jobs.db")
        events = EventLog()
        jobs = JobRunner(events.publish, store)
        models = ModelOperations(
            ModelIndex(lambda: ()), SettingsFile(tmp_path / "config"), events, lambda: tmp_path / "fetched"
        )
        async with fleet() as found:
            yield Desk(
                found,
                jobs,
                ModelTransferOperations(found.hosts, jobs, models),
            )
            await jobs.close()
        store.close()

    return opened


def test_a_checkpoint_goes_there_and_back_and_nothing_goes_twice(
    desk: Callable[[], AbstractAsyncContextManager[Desk]],
    machines: Machines,
    checkpoint: Path,
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with desk() as at:
            await at.connect("gpu", model_root="~/models; touch pwned")
            asked = SendModel(model=str(checkpoint))
            plan = await at.operations.plan_send("gpu", asked)
            names = ["config.json", "model.safetensors", "1_Pooling/config.json"]
            assert sorted(one.name for one in plan.files) == sorted(names)
            assert {one.standing for one in plan.files} == {FileStanding.NEW}
            assert plan.folder == str(machines.far / "models; touch pwned" / HOSTILE)
            assert plan.left == plan.size > LARGE
            assert plan.free
            assert not list(machines.far.iterdir()), "a plan changes nothing"
            done = await at.done(at.operations.send("gpu", asked))
            assert done.carried == plan.size
            assert all(one.sha256 for one in done.files)
            again = await at.operations.plan_send("gpu", asked)
            assert again.left == 0
            assert (await at.done(at.operations.send("gpu", asked))).carried == 0
            fetched = await at.done(at.operations.fetch("gpu", FetchModel(model=done.path)))
            assert fetched.carried == plan.size
            assert (await at.done(at.operations.fetch("gpu", FetchModel(model=done.path)))).carried == 0

    run(work())
    there, back = machines.far / "models; touch pwned" / HOSTILE, tmp_path / "fetched" / HOSTILE
    for folder in (there, back):
        for name in ("config.json", "model.safetensors", "1_Pooling/config.json"):
            assert (folder / name).read_bytes() == (checkpoint / name).read_bytes()
        assert not list(folder.rglob("*.sndr-part"))
        assert not list(folder.rglob("*.bin"))
    assert not list(machines.far.rglob("pwned"))


def test_another_file_of_the_name_stays_until_somebody_says_so(
    desk: Callable[[], AbstractAsyncContextManager[Desk]], machines: Machines, demo: Path
) -> None:
    (machines.far / "models").mkdir()
    (machines.far / "models" / "demo.gguf").write_bytes(b"mine")

    async def work() -> None:
        async with desk() as at:
            await at.connect(model_root="~/models")
            asked = SendModel(model=str(demo))
            plan = await at.operations.plan_send("gpu", asked)
            (found,) = plan.findings
            assert (found.id, plan.files[0].standing) == ("transfer.others", FileStanding.OTHER)
            assert found.fix
            assert found.fix.command
            assert found.fix.command.endswith("--replace")
            ended = await at.jobs.ended(at.operations.send("gpu", asked).id)
            assert ended.error
            assert ended.error.reason is Reason.CONFLICT
            assert (machines.far / "models" / "demo.gguf").read_bytes() == b"mine"
            await at.done(at.operations.send("gpu", asked.model_copy(update={"replace": True})))

    run(work())
    assert (machines.far / "models" / "demo.gguf").read_bytes() == demo.read_bytes()


@pytest.mark.parametrize("side", ["there", "here"])
@pytest.mark.parametrize("way", ["send", "fetch"])
def test_a_connection_that_breaks_in_the_middle_is_waited_for_and_it_goes_on(
    desk: Callable[[], AbstractAsyncContextManager[Desk]],
    machines: Machines,
    checkpoint: Path,
    tmp_path: Path,
    way: str,
    side: str,
) -> None:
    root = machines.far / "models" if way == "send" else tmp_path / "fetched"

    async def work() -> None:
        async with desk() as at:
            await at.connect(model_root="~/models")
            if way == "send":
                job = at.operations.send("gpu", SendModel(model=str(checkpoint)))
            else:
                job = at.operations.fetch("gpu", FetchModel(model=str(checkpoint)))
            # What was sent may still be on its way.
            await until(lambda: _share(at, job) > 0.2 and any(map(_size, root.rglob("*"))))
            if side == "there":
                machines.target.stop()
                await until(lambda: _waits(at, job))
                machines.target.start()
                at.fleet.hosts.connect("gpu")
            else:
                _kill_ssh()
            done = await at.done(job)
            # What goes there may be lost on its way; what came is counted, and not carried again.
            assert done.carried == done.size if way == "fetch" else done.carried >= done.size

    run(work())
    folder = root / HOSTILE
    assert (folder / "model.safetensors").read_bytes() == (checkpoint / "model.safetensors").read_bytes()


def test_a_connection_that_freezes_is_noticed_and_nobody_waits_for_one_that_is_not_wanted(
    desk: Callable[[], AbstractAsyncContextManager[Desk]], machines: Machines, checkpoint: Path
) -> None:
    async def work() -> None:
        async with desk() as at:
            await at.connect(model_root="~/models")
            job = at.operations.send("gpu", SendModel(model=str(checkpoint)))
            await until(lambda: _share(at, job) > 0.1)
            machines.target.signal(signal.SIGSTOP)
            await until(lambda: _waits(at, job), 60.0)
            machines.target.signal(signal.SIGCONT)
            await at.fleet.hosts.disconnect("gpu")
            ended = await at.jobs.ended(job.id)
            assert ended.error
            assert ended.error.reason is Reason.SSH_LOST
            assert "resumes" in ended.left

    run(work())
    assert list((machines.far / "models").rglob("*.sndr-part"))


def parts_in(folder: Path) -> list[Path]:
    """Return the files that are not whole."""
    return list(folder.rglob("*.sndr-part"))


@pytest.mark.parametrize("way", ["send", "fetch"])
def test_a_disk_that_fills_up_on_the_way_is_told_and_keeps_no_part(
    desk: Callable[[], AbstractAsyncContextManager[Desk]],
    machines: Machines,
    checkpoint: Path,
    tmp_path: Path,
    way: str,
) -> None:
    async def work(disk: Path) -> None:
        async with desk() as at:
            await at.connect(model_root=str(disk))
            if way == "send":
                job = at.operations.send("gpu", SendModel(model=str(checkpoint)))
            else:
                job = at.operations.fetch("gpu", FetchModel(model=str(checkpoint), to=str(disk)))
            await until(lambda: _share(at, job) > 0.05)
            (disk / "somebody else's").write_bytes(bytes(25_000_000))
            ended = await at.jobs.ended(job.id)
            assert ended.error, "it fitted"
            assert ended.error.reason is Reason.DISK_FULL
            assert not parts_in(disk)
            (disk / "somebody else's").unlink()
            again = at.operations.send("gpu", SendModel(model=str(checkpoint)))
            await at.done(again)
            (disk / "somebody else's").write_bytes(bytes(15_000_000))
            more = SendModel(model=str(checkpoint), to=str(disk / "more"))
            plan = await at.operations.plan_send("gpu", more)
            assert [one.id for one in plan.findings] == ["transfer.no-room"]

    with small_disk(tmp_path / "disk") as disk:
        run(work(disk))


def test_a_cancelled_one_goes_on_later(
    desk: Callable[[], AbstractAsyncContextManager[Desk]], machines: Machines, checkpoint: Path
) -> None:
    async def work() -> None:
        async with desk() as at:
            await at.connect(model_root="~/models")
            asked = SendModel(model=str(checkpoint))
            job = at.operations.send("gpu", asked)
            await until(lambda: _share(at, job) > 0.2)
            at.jobs.cancel(job.id)
            assert (await at.jobs.ended(job.id)).state is JobState.CANCELLED
            await asyncio.sleep(0.2)
            plan = await at.operations.plan_send("gpu", asked)
            assert FileStanding.PART in {one.standing for one in plan.files}
            assert (await at.done(at.operations.send("gpu", asked))).carried < plan.size

    run(work())


def test_what_is_no_model_and_where_nothing_is_known_is_said(
    desk: Callable[[], AbstractAsyncContextManager[Desk]], machines: Machines, demo: Path
) -> None:
    async def work() -> None:
        async with desk() as at:
            await at.connect()
            with pytest.raises(HostError) as unknown:
                await at.operations.plan_send("gpu", SendModel(model=str(demo)))
            assert unknown.value.reason is Reason.CONFLICT
            for path in ("/nowhere.gguf", "/proc", "~/../../etc/passwd"):
                with pytest.raises(HostError) as none:
                    await at.operations.plan_fetch("gpu", FetchModel(model=path))
                assert none.value.reason is Reason.MODEL_FILE_MISSING
            with pytest.raises(HostError) as refused:
                await at.operations.plan_send("gpu", SendModel(model=str(demo), to="/dev/full/x"))
            assert refused.value.reason is Reason.NOT_WRITABLE

    run(work())


def test_two_machines_with_models_of_one_name_do_not_write_to_one_file(
    desk: Callable[[], AbstractAsyncContextManager[Desk]], tmp_path: Path
) -> None:
    sources = [tmp_path / folder / "m.gguf" for folder in ("a", "b")]
    for path in sources:
        path.parent.mkdir()
        path.write_bytes(os.urandom(LARGE))

    async def work() -> None:
        async with desk() as at:
            await at.connect()
            at.fleet.add("gpu2", "direct", RemoteMode.AGENTLESS)
            at.fleet.hosts.connect("gpu2")
            await at.fleet.reach("gpu2")
            jobs = [
                at.operations.fetch(name, FetchModel(model=str(path)))
                for name, path in zip(("gpu", "gpu2"), sources, strict=True)
            ]
            ended = [await at.jobs.ended(one.id) for one in jobs]
            (won,) = (number for number, one in enumerate(ended) if one.state is JobState.DONE)
            error = ended[1 - won].error
            assert error
            assert error.reason is Reason.CONFLICT
            assert (tmp_path / "fetched" / "m.gguf").read_bytes() == sources[won].read_bytes()

    run(work())
    assert not parts_in(tmp_path / "fetched")


@pytest.mark.parametrize(
    "told",
    [
        {"folder": "/srv/models/..", "files": [{"name": "authorized_keys", "size": 1}]},
        {
            "folder": "/srv/m",
            "files": [{"name": name, "size": 1} for name in ("...gguf", "x")],
            "start": "...gguf",
        },
        {"folder": "/srv/m", "files": [{"name": ".bash_profile", "size": 1}], "start": ".bash_profile"},
    ],
)
def test_a_machine_that_lies_about_a_models_folder_writes_nothing_here(
    desk: Callable[[], AbstractAsyncContextManager[Desk]],
    machines: Machines,
    tmp_path: Path,
    told: dict[str, object],
) -> None:
    tools = machines.far / "bin"
    tools.mkdir()
    fake = f"#!/bin/sh\n# FAKE\ncat >/dev/null\ncat <<'end'\n\n{json.dumps(told)}\nend\n"
    (tools / "python3").write_text(fake, encoding="utf-8")
    (tools / "python3").chmod(0o755)
    machines.target.stop()
    machines.target.variables = (f"PATH={tools}:/usr/bin:/bin",)
    machines.target.start()
    home = tmp_path / "home of mine"

    async def work() -> None:
        async with desk() as at:
            await at.connect()
            asked = FetchModel(model="/srv/m", to=str(home / "models"))
            with pytest.raises(HostError) as refused:
                await at.operations.plan_fetch("gpu", asked)
            assert refused.value.reason is Reason.UNSUPPORTED
            ended = await at.jobs.ended(at.operations.fetch("gpu", asked).id)
            assert ended.error
            assert ended.error.reason is Reason.UNSUPPORTED

    run(work())
    assert not home.exists()


def _size(path: Path) -> int:
    """Return the bytes of a file, which may get its own name at this moment."""
    with contextlib.suppress(OSError):
        return path.stat().st_size if path.is_file() else 0
    return 0


def _share(at: Desk, job: Job) -> float:
    step = at.jobs.get(job.id).step
    return (step.progress or 0.0) if step is not None and step.number == 3 else 0.0


def _kill_ssh() -> None:
    """Kill every ssh of this process."""
    found = [one for one in psutil.Process().children(recursive=True) if one.name() == "ssh"]
    assert found
    for one in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def _waits(at: Desk, job: Job) -> bool:
    step = at.jobs.get(job.id).step
    return step is not None and "waited for" in step.detail
