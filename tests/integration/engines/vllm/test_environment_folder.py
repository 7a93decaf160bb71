"""The lock of an environment's folder between two processes."""

import asyncio
import sys
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.vllm.environment_folder import (
    is_locked,
    lock_environment,
)
from engine_host.protocol.errors import Reason
from tests.unit.asynchronous import run

HOLDER = """
import asyncio, sys
from pathlib import Path
from engine_host.engines.vllm.environment_folder import lock_environment

async def hold():
    async with lock_environment(Path(sys.argv[1])):
        print("locked", flush=True)
        await asyncio.sleep(60)

asyncio.run(hold())
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    home = tmp_path / "environments" / "0.32.0-cpu"
    home.mkdir(parents=True)
    return home


def test_one_host_at_a_time_and_a_killed_one_lets_go(environment: Path) -> None:
    async def act() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOLDER, str(environment), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"locked\n"
        assert is_locked(environment)
        with pytest.raises(HostError) as raised:
            async with lock_environment(environment):
                pass
        assert raised.value.reason is Reason.CONFLICT
        process.kill()
        await process.wait()
        async with lock_environment(environment):
            assert is_locked(environment)
        assert not is_locked(environment)

    run(act())
    assert sorted(path.name for path in environment.parent.iterdir()) == ["0.32.0-cpu"], "no lock stays"
