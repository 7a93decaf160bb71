"""The disk gets full under a host at work: what serves goes on, and what cannot be saved says so."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import EngineState, StopEngine
from engine_host.protocol.operations import table as ops
from tests.integration.faults.test_stopped import ask
from tests.integration.host.conftest import RunningHost, files_below, new_host
from tests.integration.host_process import sndr
from tests.unit.full_disk import SmallDisk, small_disk

__all__ = ["new_host"]


@pytest.fixture
def disk(home: Path) -> Iterator[SmallDisk]:
    """A small disk for settings, database and logs; the run folder and the caches lie elsewhere."""
    with small_disk(home / "disk") as small:
        if not small.real:
            pytest.skip("needs a disk of its own")
        for name in ("config", "data"):
            (small.folder / name).mkdir(mode=0o700)
            (home / name).symlink_to(small.folder / name)
        yield small


def test_what_serves_goes_on_and_all_works_again_afterwards(
    disk: SmallDisk, new_host: Callable[..., RunningHost]
) -> None:
    host = new_host().connect()
    engine = host.start()
    assert ask(host, engine).status_code == 200
    with disk.full():
        for _ in range(5):
            assert ask(host, engine).status_code == 200
        refused = sndr("settings", "set", "endpoint.queue_limit", "9", "--json")
        assert refused.code == 7
        assert refused.problem()["reason"] == "disk_full"
        # A start that cannot be remembered is none: the next host could not find it.
        second = host.start(wait=False, overrides=Overrides(context=512, streams=1))
        after = host.until(second.id, EngineState.READY, EngineState.FAILED)
        if after.state is EngineState.FAILED:
            assert after.problem is not None
            assert after.problem.reason == "disk_full"
            assert after.pid is None
        for one in host.client.call(ops.ENGINES).engines:
            if one.pid:
                host.client.call(ops.STOP, StopEngine(), id=one.id)
                host.until(one.id, EngineState.UNLOADED)
    assert sndr("settings", "set", "endpoint.queue_limit", "9").code == 0
    third = host.start()
    assert ask(host, third).status_code == 200
    assert host.end() == 0
    assert not host.folders.run.exists() or files_below(host.folders.run) == []
    left = [name for name in os.listdir(disk.folder / "config") if name != "settings.toml"]
    assert left == [], "nothing half written stays"


def test_a_host_that_cannot_start_says_so_and_leaves_nothing(disk: SmallDisk) -> None:
    with disk.full():
        ended = sndr("serve", "--json")
        assert ended.code == 7
        assert ended.problem()["reason"] == "disk_full"
        assert str(disk.folder.parent / "data") in ended.problem()["message"]
    assert not (disk.folder.parent / "run").exists()
    assert sndr("models").code == 0
