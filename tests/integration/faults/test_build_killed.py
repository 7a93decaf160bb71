"""kill -9 of a build of llama.cpp: nothing of it lives on, what was fetched stays, the next begins anew.

That compilers end with a killed host is in `test_reaper.py`.
"""

import asyncio
import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine_host.engines.llamacpp.build.builder import STEPS, BuildRequest, build
from engine_host.protocol.jobs import JobStep
from tests.conftest import SHARED_CACHE, processes_of
from tests.unit.asynchronous import until

SHARED = Path(SHARED_CACHE) / "llama.cpp"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of its own that has the source and the tools already."""
    if not (SHARED / "tools" / "ready.json").is_file():
        pytest.fail("the build has not run here yet: sndr engine build llama.cpp")
    (tmp_path / "cache" / "llama.cpp").mkdir(parents=True)
    # Copied, because tools of another version of the program are made anew where they are.
    shutil.copytree(SHARED / "tools", tmp_path / "cache" / "llama.cpp" / "tools", symlinks=True)
    (tmp_path / "cache" / "llama.cpp" / "sdist").symlink_to(SHARED / "sdist")
    return tmp_path / "cache"


def test_nothing_lives_on_and_the_next_build_begins_anew(cache: Path, tmp_path: Path, home: Path) -> None:
    argv = [sys.executable, "-m", "engine_host.engines.llamacpp.build.builder"]
    builder = subprocess.Popen(
        [*argv, "--out", str(tmp_path / "data"), "--cache", str(cache)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert builder.stderr is not None
    while "Unpack" not in (line := builder.stderr.readline()):
        assert line, "it ended too early"
    work = cache / "llama.cpp" / "work"
    asyncio.run(until(lambda: any(work.glob("*/source/*"))))
    builder.kill()
    builder.wait()
    builder.stderr.close()
    assert processes_of(home) == []
    assert list(work.glob("*")), "what was begun lies there"
    assert not (tmp_path / "data").exists(), "nothing half installed"
    with (cache / "llama.cpp.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    async def next_build() -> list[str]:
        steps: list[str] = []

        def see(step: JobStep) -> None:
            steps.append(step.name)

        task = asyncio.create_task(build(BuildRequest(cache=cache, data=tmp_path / "data"), see))
        await until(lambda: "Unpack" in steps, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return list(dict.fromkeys(steps))

    assert asyncio.run(next_build()) == list(STEPS[:3]), "the source was there, and is unpacked again"
    assert list(work.glob("*")) == []
