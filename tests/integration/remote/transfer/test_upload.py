"""Files that are sent to another machine over the real ssh: whole, gone on with, or refused with a reason."""

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.hosts import RemoteHostState
from engine_host.remote.upload import upload
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines, fill, small_disk
from tests.unit.asynchronous import run
from tests.waiting import wait_until

Open = Callable[..., AbstractAsyncContextManager[Fleet]]
SIZE = 3_000_001


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of some megabytes."""
    path = tmp_path / "model file.gguf"
    path.write_bytes(os.urandom(SIZE))
    return path


def test_a_file_arrives_whole_whatever_its_name_and_is_not_sent_twice(
    fleet: Open, machines: Machines, source: Path
) -> None:
    hostile = 'models/$(touch pwned) \'; "a" \\ \n-rf/model.gguf'
    seen: list[tuple[int, int]] = []

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "gpu")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            done = await upload(
                found.hosts, "gpu", source, hostile, mode=0o600, progress=lambda *now: seen.append(now)
            )
            assert (done.sent, done.path) == (SIZE, str(machines.far / hostile))
            again = await upload(found.hosts, "gpu", source, hostile)
            assert again.sent == 0

    run(work())
    assert (machines.far / hostile).read_bytes() == source.read_bytes()
    assert (machines.far / hostile).stat().st_mode & 0o777 == 0o600
    assert seen[-1] == (SIZE, SIZE)
    assert sorted(path.name for path in (machines.far / hostile).parent.iterdir()) == ["model.gguf"]
    assert not (machines.far / "pwned").exists()


def test_what_was_sent_before_the_connection_was_lost_is_not_sent_again(
    fleet: Open, machines: Machines, source: Path
) -> None:
    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")

            part = machines.far / "a" / ".model.gguf.sndr-part"

            def cut(done: int, _all: int) -> None:
                if done > SIZE // 2:
                    # What was sent may still be on its way.
                    assert wait_until(lambda: part.is_file() and part.stat().st_size > 0)
                    machines.target.stop()

            with pytest.raises(HostError) as lost:
                await upload(found.hosts, "gpu", source, "a/model.gguf", progress=cut)
            assert lost.value.reason is Reason.SSH_LOST
            assert "broke while it was at work" in str(lost.value)
            assert not exists(machines.far / "a" / "model.gguf")
            # Its end is heard of a moment later.
            await found.reach("gpu", RemoteHostState.RECONNECTING)
            machines.target.start()
            found.hosts.connect("gpu")
            await found.reach("gpu")
            done = await upload(found.hosts, "gpu", source, "a/model.gguf")
            assert 0 < done.sent < SIZE

    run(work())
    there = (machines.far / "a" / "model.gguf").read_bytes()
    assert hashlib.sha256(there).hexdigest() == hashlib.sha256(source.read_bytes()).hexdigest()


def test_a_part_of_another_file_is_not_gone_on_with(fleet: Open, machines: Machines, source: Path) -> None:
    (machines.far / ".model.gguf.sndr-part").write_bytes(b"something else")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            assert (await upload(found.hosts, "gpu", source, "model.gguf")).sent == SIZE

    run(work())


def test_a_disk_that_fills_up_on_the_way_is_told_and_nothing_is_left(
    fleet: Open, machines: Machines, source: Path
) -> None:
    source.write_bytes(os.urandom(SIZE * 10))
    theirs: list[Path] = []

    def fills_up(_done: int, _all: int) -> None:
        if not theirs:
            theirs.append(fill(machines.far / "new", leaving=SIZE))

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            with pytest.raises(HostError) as refused:
                await upload(found.hosts, "gpu", source, "new/model.gguf", progress=fills_up)
            assert refused.value.reason is Reason.DISK_FULL
            with pytest.raises(HostError) as refused:
                await upload(found.hosts, "gpu", source, "new/model.gguf")
            assert refused.value.reason is Reason.DISK_FULL
            assert "are needed there" in refused.value.problem.cause

    with small_disk(machines.far / "new") as disk:
        run(work())
        assert [path for path in disk.rglob("*") if path.is_file()] == theirs


def test_a_folder_that_is_none_and_one_of_others_are_told(
    fleet: Open, machines: Machines, source: Path
) -> None:
    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await found.reach("gpu")
            with pytest.raises(HostError) as refused:
                await upload(found.hosts, "gpu", source, "/dev/full/model.gguf")
            assert refused.value.reason is Reason.NOT_WRITABLE
            with pytest.raises(HostError) as refused:
                await upload(found.hosts, "gpu", source, "/proc/model.gguf")
            assert refused.value.reason in {Reason.NOT_WRITABLE, Reason.DISK_FULL}

    run(work())


def exists(path: Path) -> bool:
    """True if there is such a file."""
    return path.exists()
