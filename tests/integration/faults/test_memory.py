"""The kernel's OOM killer ends an engine (really, by a memory limit of its own), and somebody says why."""

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine_host.protocol.bench.autopsy import Ending
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.operations import table as ops
from tests.conftest import processes_of
from tests.integration.engines.conftest import built_folder
from tests.integration.host.conftest import RunningHost, new_host, wait_for
from tests.integration.host_process import sndr

__all__ = ["built_folder", "new_host"]
TREES = (
    # Version 1 and 2: where groups are, and the file with their limit.
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A group of processes that get 12 MB together."""
    for tree, limit in TREES:
        group = tree / f"sndr-test-{secrets.token_hex(3)}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(12 << 20))
            with contextlib.suppress(OSError):
                (group / "memory.swap.max").write_text("0")
        except OSError:
            group.rmdir()
            continue
        yield group
        end = time.monotonic() + 5
        while True:
            try:
                group.rmdir()
            except OSError:
                assert time.monotonic() < end, "somebody still lives in the group"
                time.sleep(0.05)
            else:
                return
    pytest.skip("needs a machine whose memory groups this user may make")


def settled(home: Path) -> set[int]:
    """What runs beside the reaper, which comes with the first engine."""
    return {pid for pid, command in processes_of(home) if "reaper_main" not in command}


def test_what_the_kernel_ended_is_told_as_want_of_memory(
    small_memory: Path, built_folder: Path, home: Path, new_host: Callable[..., RunningHost]
) -> None:
    server = built_folder / "bin" / "llama-server"
    wrapper = home / "llama-server"
    # Only a start enters the group, not the questions for its version and arguments.
    enter = f'case " $* " in *" --model "*) echo $$ >{small_memory}/cgroup.procs ;; esac'
    wrapper.write_text(f'#!/bin/sh\n{enter}\nexec {server} "$@"\n')
    wrapper.chmod(0o755)
    assert sndr("settings", "set", "engine.own_server", str(wrapper)).code == 0
    assert sndr("settings", "set", "engine.server", "own").code == 0
    host = new_host().connect()
    before = settled(home)
    started = host.start(wait=False, overrides=Overrides(context=4096, streams=4))
    failed = host.until(started.id, EngineState.FAILED)
    assert failed.problem is not None
    assert failed.problem.reason is Reason.OUT_OF_MEMORY
    assert failed.problem.fix is not None
    assert "RAM was" in failed.problem.message or "out-of-memory killer ended" in failed.problem.message
    record = wait_for(lambda: next(iter(host.client.call(ops.AUTOPSIES).autopsies), None), "its record")
    assert (record.ending, record.sentence) == (Ending.MAIN_MEMORY, failed.problem.message)
    assert failed.problem.message in sndr("doctor").out
    wait_for(lambda: settled(home) == before or None, "the end of all but host and reaper", 10)
    assert not list(host.folders.run.glob("plan-*"))
    wrapper.write_text(f'#!/bin/sh\nexec {server} "$@"\n')
    assert host.start().state is EngineState.READY
    assert os.access(wrapper, os.X_OK)
