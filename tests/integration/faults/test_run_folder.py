"""The run folder is removed while the host runs, as a system does that clears it when a user logs out."""

import shutil
from collections.abc import Callable

import pytest

from engine_host.protocol.engines import EngineState
from tests.conftest import processes_of
from tests.integration.host.conftest import RunningHost, alive, host, new_host, wait_for

__all__ = ["host", "new_host"]


@pytest.mark.parametrize("keep", [False, True])
def test_a_host_that_nobody_can_reach_ends_with_its_engines(
    keep: bool, host: RunningHost, new_host: Callable[..., RunningHost]
) -> None:
    engine = host.start(keep=keep)
    assert engine.pid is not None
    shutil.rmtree(host.folders.run)
    assert host.process.wait(20) == 0
    log = (host.folders.logs / "host.log").read_text(encoding="utf-8")
    assert "was removed: nobody can reach this host any more" in log
    if not keep:
        assert not alive(engine.pid)
        wait_for(lambda: processes_of(host.folders.data.parent) == [], "the end of the log's writer", 20)
    # The next host starts; a kept engine whose socket is gone is ended: nobody could stop it any more.
    again = new_host().connect()
    wait_for(lambda: not alive(engine.pid or 0) or None, "the end of an engine that nobody can reach", 60)
    assert again.start().state is EngineState.READY
