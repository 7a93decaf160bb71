"""The database is damaged before a start, and while the host runs."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from engine_host.core.paths import Folders
from engine_host.protocol.engines import EngineState, StopEngine
from engine_host.protocol.operations import table as ops
from tests.integration.faults.test_stopped import ask
from tests.integration.host.conftest import RunningHost, files_below, host, new_host
from tests.integration.host_process import sndr

__all__ = ["host", "new_host"]


def test_a_host_says_which_file_it_is_and_changes_nothing(
    home: Path, new_host: Callable[..., RunningHost]
) -> None:
    folders = Folders.resolve()
    folders.data.mkdir()
    for content in (b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000):
        folders.store.write_bytes(content)
        ended = sndr("serve", "--json")
        assert ended.code == 7
        assert str(folders.store) in ended.problem()["message"]
        assert "move it away" in str(ended.problem()["fix"]).lower()
        assert folders.store.read_bytes() == content, "what is there stays"
        assert not folders.run.exists()
    shutil.move(folders.store, home / "damaged")
    assert new_host().connect().start().state is EngineState.READY


def test_damaged_meanwhile_what_serves_goes_on(host: RunningHost) -> None:
    engine = host.start()
    assert ask(host, engine).status_code == 200
    for name in ("sndr.sqlite", "sndr.sqlite-wal", "sndr.sqlite-shm"):
        path = host.folders.data / name
        with path.open("r+b") as file:
            file.write(os.urandom(path.stat().st_size))
    assert ask(host, engine).status_code == 200
    assert host.engine(engine.id).state in {EngineState.READY, EngineState.BUSY}
    host.client.call(ops.STOP, StopEngine(), id=engine.id)
    host.until(engine.id, EngineState.UNLOADED)
    assert host.end() == 0
    assert not host.folders.run.exists() or files_below(host.folders.run) == []
