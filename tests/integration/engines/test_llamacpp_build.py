"""The build of llama.cpp: from its cached wheel, cancelled, and on machines that lack something."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.build.builder import STEPS, BuildRequest, build, installed
from engine_host.engines.llamacpp.build.install import verify_build
from engine_host.engines.llamacpp.source.patching import patch_files
from engine_host.protocol.engines import Backend
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobStep

SHARED = Path(os.environ.get("SNDR_CACHE") or Path.home() / ".cache" / "sndr") / "llama.cpp"


def run(request: BuildRequest, on_step: Callable[[JobStep], None] = lambda _step: None) -> HostError:
    with pytest.raises(HostError) as caught:
        asyncio.run(build(request, on_step))
    assert not list(request.engines.glob("*")), "nothing half installed"
    return caught.value


@pytest.fixture
def request_(tmp_path: Path) -> BuildRequest:
    """A build with a cache of its own that has the source and the tools already."""
    cache = tmp_path / "cache"
    if not (SHARED / "tools" / "ready.json").is_file():
        pytest.fail("the build has not run here yet: sndr engine build llama.cpp")
    (cache / "llama.cpp").mkdir(parents=True)
    # Copied, because tools of another version of the program are made anew where they are.
    shutil.copytree(SHARED / "tools", cache / "llama.cpp" / "tools", symlinks=True)
    (cache / "llama.cpp" / "sdist").symlink_to(SHARED / "sdist")
    return BuildRequest(cache=cache, data=tmp_path / "data")


def test_the_cached_wheel_is_installed_and_verified(
    built_folder: Path, models: dict[str, Path], tmp_path: Path
) -> None:
    seen: list[JobStep] = []
    request = BuildRequest(cache=SHARED.parent, data=tmp_path, model=models["plain"])
    result = asyncio.run(build(request, seen.append))
    assert result.from_cache
    assert result.server.is_file()
    assert installed(tmp_path) == (result.folder,)
    assert (result.backend, result.devices) == (Backend.CPU, ())
    other = request.engines / "another"
    shutil.copytree(result.folder, other)
    (other / "build.json").write_text(json.dumps({"built_at": time.time()}))
    assert installed(tmp_path) == (other, result.folder)
    assert [step.name for step in seen if step.progress is None][-1] == "Verify"
    assert {step.of for step in seen} == {len(STEPS)}
    # A second time there is nothing to do but to look.
    again = asyncio.run(build(request, seen.append))
    assert again.folder == result.folder
    assert installed(tmp_path) == (result.folder, other), "what was asked for last runs next"
    # The libraries that a wheel holds six times are on the disk once.
    assert (result.folder / "lib/libllama.so").samefile(result.folder / "llama_cpp/lib/libllama.so")


def test_a_build_for_gpus_that_sees_none_is_refused(built_folder: Path) -> None:
    """The server that was built for the processor stands for one without its GPU's driver."""

    async def verify() -> None:
        await verify_build(built_folder, None, Backend.VULKAN, lambda _share, _detail: None)

    with pytest.raises(HostError) as caught:
        asyncio.run(verify())
    assert caught.value.reason is Reason.ENGINE_UNUSABLE
    assert "finds no GPU" in caught.value.problem.message
    assert caught.value.problem.fix is not None
    assert caught.value.problem.fix.command == "sndr engine build llama.cpp --backend cpu"


def test_a_cancelled_build_leaves_no_compiler_and_no_folder(request_: BuildRequest) -> None:
    names: list[str] = []

    async def cancel_while_it_compiles() -> None:
        compiling = asyncio.Event()

        def see(step: JobStep) -> None:
            names.append(step.name)
            if step.name == "Compile" and step.progress:
                compiling.set()

        work = asyncio.create_task(build(request_, see))
        waiter = asyncio.create_task(compiling.wait())
        await asyncio.wait({work, waiter}, return_when=asyncio.FIRST_COMPLETED, timeout=100)
        assert not work.done(), work.exception()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        waiter.cancel()

    asyncio.run(cancel_while_it_compiles())
    assert list(dict.fromkeys(names))[:6] == list(STEPS[:2]) + list(STEPS[2:6])
    below = request_.cache / "llama.cpp"
    assert not list((below / "work").glob("*"))
    assert not list((below / "wheels").glob("*/*"))
    assert not list(request_.engines.glob("*"))
    left = [
        process.info
        for process in psutil.process_iter(["pid", "cmdline"])
        if str(request_.cache) in " ".join(process.info["cmdline"] or ())
    ]
    assert not left


def test_a_patch_that_does_not_apply_stops_the_build(request_: BuildRequest, tmp_path: Path) -> None:
    patch = tmp_path / "0001-wrong.patch"
    patch.write_text(patch_files()[0].read_text().replace("-220", "-221"))
    error = run(BuildRequest(cache=request_.cache, data=request_.data, patches=(patch,)))
    assert error.reason is Reason.SOURCE_PATCH_FAILED
    assert error.problem.evidence["patch"] == "0001-wrong.patch"
    assert error.problem.evidence["hunk"] == 1
    assert not list((request_.cache / "llama.cpp" / "work").glob("*"))


def test_a_compiler_that_fails_shows_its_error(request_: BuildRequest, tmp_path: Path) -> None:
    patch = tmp_path / "0001-error.patch"
    patch.write_text(
        "--- a/CMakeLists.txt\n+++ b/CMakeLists.txt\n@@ -1,2 +1,3 @@\n"
        ' cmake_minimum_required(VERSION 3.21)\n \n+message(FATAL_ERROR "broken on purpose")\n'
    )
    error = run(BuildRequest(cache=request_.cache, data=request_.data, patches=(patch,)))
    assert error.reason is Reason.BUILD_FAILED
    assert any("broken on purpose" in line for line in error.problem.evidence["tail"])


def test_no_compiler(request_: BuildRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    error = run(request_)
    assert error.reason is Reason.COMPILER_MISSING
    assert error.problem.fix is not None
    assert error.problem.fix.command == "apt-get install g++ cmake ninja-build"


def test_a_full_disk_is_seen_before_anything_is_fetched(
    request_: BuildRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=200_000_000))
    error = run(request_)
    assert error.reason is Reason.DISK_FULL
    assert error.problem.evidence["free_bytes"] == 200_000_000
    assert "1.5 GB" in str(error)
    assert "0.20 GB" in str(error)


def test_a_download_that_fails_leaves_nothing(
    request_: BuildRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    (request_.cache / "llama.cpp" / "sdist").unlink()
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(request_.cache)}.items():
        monkeypatch.setenv(name, value)
    error = run(request_)
    assert error.reason is Reason.DOWNLOAD_FAILED
    assert error.problem.evidence["tail"]
    assert not list((request_.cache / "llama.cpp" / "sdist").glob("*"))


def test_a_damaged_source_package_is_fetched_again(
    request_: BuildRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file under the right name but with another content is not trusted."""
    sdist = request_.cache / "llama.cpp" / "sdist"
    sdist.unlink()
    shutil.copytree(SHARED / "sdist", sdist)
    kept = next(sdist.glob("*.tar.gz"))
    with kept.open("r+b") as file:
        file.write(b"damage")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert run(request_).reason is Reason.DOWNLOAD_FAILED
