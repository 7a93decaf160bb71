"""A rig whose engines leave nothing behind, for the tests of the engine manager."""

import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.protocol.engines import Engine
from tests.unit.asynchronous import run, until
from tests.unit.engines.rig import OUTLIVING, Rig, rig


@pytest.fixture
def collected() -> Iterator[None]:
    """What outlived its rig has ended by the end of the test, and is collected."""
    yield
    while OUTLIVING:
        run(until(lambda: OUTLIVING[-1].exit_code is not None))
        OUTLIVING.pop()


def with_rig(work: Callable[[Rig], Coroutine[Any, Any, None]]) -> None:
    """Do this with a rig; at the end nothing is left."""

    async def act() -> None:
        async with rig() as built:
            await work(built)
            run_folder = built.folders.run
        assert list(run_folder.glob("*.sock")) == []

    run(act())


def gone(pid: int | None) -> bool:
    """Whether a whole process group has ended."""
    assert pid
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return all(
        stat.rsplit(")", 1)[1].split()[0] == "Z"
        for stat in map(_stat, Path("/proc").glob("[0-9]*"))
        if stat and int(stat.rsplit(")", 1)[1].split()[2]) == pid
    )


def _stat(process: Path) -> str:
    try:
        return (process / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


async def crash(built: Rig, engine: Engine) -> None:
    """End the FAKE engine in the middle of a question."""
    transport = httpx.AsyncHTTPTransport(uds=built.manager.socket(engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://fake") as client:
        with pytest.raises(httpx.TransportError):
            await client.get("/crash")
