"""Installs vLLM into a virtual environment of its own, from a committed lock, with uv."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import uv

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.processes.own_programs import is_frozen
from engine_host.engines.process.tool import ToolError, run_tool
from engine_host.engines.vllm.environment_folder import (
    RECORD,
    clear,
    delete,
    is_complete,
    keep,
    lock_environment,
    refuse_used,
    restore_kept,
    retire,
    retired,
    size,
)
from engine_host.engines.vllm.installations import tree_hash
from engine_host.engines.vllm.package_sources import package_sources
from engine_host.engines.vllm.pins import PYTHON, TORCH_CPU_INDEX, Pin
from engine_host.engines.vllm.repairs import repair
from engine_host.engines.vllm.uv_failure import explained
from engine_host.engines.vllm.wheel_links import environment_tags, has_wheel
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import JobStep
from engine_host.protocol.language import tr

Report = Callable[[JobStep], None]
STEPS = ("Check the disk", "Make the environment", "Fetch torch", "Fetch vLLM", "Repair", "Verify")
_WATCH = 0.5
_VERIFY = "import torch, vllm, vllm.platforms as p; print(vllm.__version__, p.current_platform.device_type)"


@dataclass(frozen=True)
class InstallRequest:
    """The input of an install; `finish` puts the overlay's line into the new site-packages."""

    pin: Pin
    home: Path
    log: Path
    finish: Callable[[Path], None]


async def install(request: InstallRequest, report: Report) -> dict[str, Any]:
    """Install one pin; return its record.

    An install that fails or is cancelled leaves nothing of the environment, and the one that was there before
    comes back, if it was whole; uv's downloads stay cached.
    Raises HostError: conflict (another host is at work there, or an engine runs from it), disk_full,
    install_failed, not_writable.
    """
    pin, home = request.pin, request.home
    _step(report, 1)
    _check_disk(pin, home, await asyncio.to_thread(_freed, home))
    async with lock_environment(home):
        await asyncio.to_thread(refuse_used, home)
        python = await _interpreter(request)
        await asyncio.to_thread(_move_old, home)
        try:
            record = await _create(request, python, report)
        except BaseException:
            # Out of use at once: a second cancellation may come while it is deleted.
            # That it stays is told by whoever lists the environments; the cause is what must be told here.
            with contextlib.suppress(HostError):
                retire(home)
                restore_kept(home)
            # In the executor from this moment on: a thread's task could be cancelled before it begins.
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, _deleted, home))
            raise
        await _delete_old(home)
        return record


def _freed(home: Path) -> int:
    """Return the bytes freed before the install: a complete environment stays until the new one works."""
    return sum(map(size, retired(home))) + (0 if is_complete(home) else size(home))


def _move_old(home: Path) -> None:
    restore_kept(home)
    if is_complete(home):
        keep(home)
    else:
        # What stays of it is out of the way, and is told by whoever lists the environments.
        clear(home)


async def _delete_old(home: Path) -> None:
    """Delete the environment that was replaced; a cancellation that comes now is too late."""
    with contextlib.suppress(HostError):
        # It is told as a leftover by whoever lists the environments.
        restore_kept(home)
    deleting = asyncio.get_running_loop().run_in_executor(None, _deleted, home)
    while not deleting.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({deleting})
    deleting.result()


def _deleted(home: Path) -> None:
    for folder in retired(home):
        delete(folder)


async def _create(request: InstallRequest, python: str, report: Report) -> dict[str, Any]:
    """Create the environment; return its record."""
    began = time.monotonic()
    pin, home = request.pin, request.home
    with _log(request.log) as log:
        await _packages(request, python, log, report)
        _step(report, 5)
        packages = next(home.glob("lib/python3*/site-packages"))
        repaired = repair(packages, pin.version) if pin.build == "cpu" else ()
        request.finish(packages)
        _step(report, 6, tr("imports vLLM once; this takes ten to twenty seconds"))
        output = await _run(
            [str(home / "bin" / "python"), "-c", _VERIFY], home, log, {"VLLM_NO_USAGE_STATS": "1"}
        )
    record = {
        "pin": pin.id,
        "version": pin.version,
        "build": pin.build,
        "python": PYTHON,
        "said": output[-1] if output else "",
        "repaired": list(repaired),
        "size": await asyncio.to_thread(size, home),
        "seconds": round(time.monotonic() - began, 1),
        "installed_at": time.time(),
        "tree_hash": await asyncio.to_thread(tree_hash, packages / "vllm"),
    }
    atomic_file.write(home / RECORD, json.dumps(record, indent=1))
    return record


async def _packages(request: InstallRequest, python: str, log: IO[str], report: Report) -> None:
    pin, home = request.pin, request.home
    sources = package_sources()
    _step(report, 2)
    await _run([_uv(), "venv", "-q", "--clear", "--python", python, str(home)], home.parent, log)
    into = [_uv(), "pip", "install", "--python", str(home / "bin" / "python"), "--no-deps"]
    into += ["--only-binary", ":all:", "--require-hashes", *sources.arguments]
    if pin.packages_first:
        _step(report, 3)
        local = await asyncio.to_thread(
            has_wheel, sources.links, pin.packages_first[0], environment_tags(home)
        )
        index = [] if local else ["--index", TORCH_CPU_INDEX]
        await _run([*into, *index, "-r", str(pin.lock_first)], home.parent, log)
    total = len(re.findall(r"^[a-z0-9][^\s=]*==", pin.lock.read_text(encoding="utf-8"), re.MULTILINE))
    _step(
        report,
        4,
        tr(
            "{total} packages, {download:.1f} GiB to download unless they are cached",
            total=total,
            download=pin.download / 2**30,
        ),
    )
    watching = asyncio.create_task(_watch(home, total, report))
    try:
        await _run([*into, "--compile-bytecode", "-r", str(pin.lock)], home.parent, log)
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


def _installed(home: Path) -> int:
    return sum(1 for _ in home.glob("lib/python3*/site-packages/*.dist-info/METADATA"))


async def _watch(home: Path, total: int, report: Report) -> None:
    """Report the progress of the fourth step: the download, then the installed packages."""
    while True:
        await asyncio.sleep(_WATCH)
        there = await asyncio.to_thread(_installed, home)
        detail = (
            tr("{there} of {total} packages in place", there=there, total=total)
            if there > 1
            else tr("downloading")
        )
        if there >= total:
            detail = tr("compiling their Python files")
        _step(report, 4, detail, min(1.0, there / total) if there > 1 else None)


async def _run(argv: list[str], cwd: Path, log: IO[str], extra: dict[str, str] | None = None) -> list[str]:
    """Run one tool. Raises HostError(install_failed), HostError(disk_full)."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VLLM_"))
    }
    environment |= {
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_TIMEOUT": "120",
        "NO_COLOR": "1",
        **(extra or {}),
    }
    # An environment that this program runs in must not be taken for the one to install into.
    environment.pop("VIRTUAL_ENV", None)
    try:
        return await run_tool(argv, cwd=cwd, environment=environment, log=log)
    except ToolError as error:
        raise explained(error, Path(log.name)) from error


def _uv() -> str:
    try:
        return uv.find_uv_bin()
    except FileNotFoundError as error:
        raise HostError(
            Reason.INSTALL_FAILED,
            "vLLM could not be installed: uv, which comes with this program, is missing.",
            cause=str(error).splitlines()[0],
            fix="Install this program again.",
        ) from error


def _check_disk(pin: Pin, home: Path, freed: int) -> None:
    folder = home.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free + freed
    except OSError as error:
        raise atomic_file.saving_failed(folder, error) from error
    if free < pin.needs_free:
        fix = Fix(text="Free some space, or move the cache with SNDR_CACHE.")
        if is_complete(home):
            fix = Fix(
                text="Free some space, or remove the one that is there: it stays until the new one works.",
                command=f"sndr engine remove vllm --version {pin.version} --build {pin.build}",
            )
        raise HostError(
            Reason.DISK_FULL,
            tr(
                "vLLM {pin} needs {needs_free:.0f} GiB of free disk.",
                pin=pin.id,
                needs_free=pin.needs_free / 2**30,
            ),
            cause=tr(
                "{folder} has {free:.1f} GiB; packages are downloaded, unpacked and compiled.",
                folder=folder,
                free=free / 2**30,
            ),
            fix=fix,
            evidence={"free": free, "needed": pin.needs_free, "path": str(folder)},
        )


async def _interpreter(request: InstallRequest) -> str:
    """The CPython that the lock is for: our own, or one of this machine; none is ever downloaded unasked."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    # A frozen program has no interpreter of its own.
    if own == PYTHON and not is_frozen():
        return sys.executable
    finder = _uv()
    with _log(request.log) as log:
        try:
            output = await _run(
                [finder, "python", "find", "--system", f"cpython@{PYTHON}"], request.home.parent, log
            )
        except HostError as error:
            raise HostError(
                Reason.INSTALL_FAILED,
                tr("vLLM needs Python {python}, and this machine has none.", python=PYTHON),
                cause=tr(
                    "This program runs on Python {own}; vLLM's packages are locked for {python} alone.",
                    own=own,
                    python=PYTHON,
                ),
                fix=Fix(
                    text=tr(
                        "Install Python {python} with the system's packages, or agree to uv's own "
                        "download of it with this command; then install again.",
                        python=PYTHON,
                    ),
                    command=f"{finder} python install {PYTHON}",
                ),
                evidence=error.problem.evidence,
            ) from error
    return output[-1]


@contextlib.contextmanager
def _log(path: Path) -> Iterator[IO[str]]:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise atomic_file.saving_failed(path, error) from error
    with file:
        yield file


def _step(report: Report, number: int, detail: str = "", progress: float | None = None) -> None:
    report(JobStep(number=number, of=len(STEPS), name=STEPS[number - 1], detail=detail, progress=progress))
