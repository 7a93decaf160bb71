"""kill -9 of a host at each stage of an engine's life: nothing is left, and the next host starts anew."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import processes_of
from tests.integration.faults.managed import STAGES
from tests.unit.asynchronous import until
from tests.unit.engines.rig import rig


@pytest.mark.parametrize("stage", STAGES)
def test_a_host_that_is_killed_takes_its_engine_along(stage: str, home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.integration.faults.managed", stage], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        said = host.stdout.readline()
        logs = list((home / "data" / "logs" / "engines").glob("*.log"))
        host.kill()
    assert said.startswith(f"at {stage} "), said
    engine = int(said.split()[2])
    assert bool(engine) == bool(logs) == (stage != "queued")

    async def next_host() -> None:
        # The engine, its child that ignores SIGTERM, the reaper and the log's writer.
        await until(lambda: processes_of(home) == [])
        async with rig() as built:
            await built.manager.adopt()
            built.nothing_left()
            assert built.manager.alive() == []
            # And it starts what the killed one could not.
            await built.ready("one")

    asyncio.run(next_host())
    if stage not in {"queued", "process"}:
        assert logs[0].read_text().startswith("stage Load weights\n"), "its log stays"
