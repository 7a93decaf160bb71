"""Builds llama.cpp's own server and its Python bindings into one wheel, once a machine, and installs it.

Also a program: `python -m engine_host.engines.llamacpp.build.builder --out DIR [--model FILE]`.
"""

import argparse
import asyncio
import contextlib
import fcntl
import json
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unwritable_folder
from engine_host.engines.llamacpp.build.install import install_wheel, installed_build, verify_build
from engine_host.engines.llamacpp.build.interpreter import build_python
from engine_host.engines.llamacpp.build.toolchain import (
    NEEDED_BYTES,
    Toolchain,
    build_key,
    check_disk,
    disk_full,
    find_toolchain,
)
from engine_host.engines.llamacpp.build.wheel import (
    compile_wheel,
    download_source,
    prepare_tools,
    unpack_source,
)
from engine_host.engines.llamacpp.source.patching import apply_patch, patch_files
from engine_host.engines.process.tool import is_disk_full
from engine_host.protocol.engines import Backend
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import JobStep
from engine_host.protocol.language import formed, tr

STEPS = (
    "Check tools and disk",
    "Download source",
    "Unpack",
    "Patch",
    "Configure",
    "Compile",
    "Package",
    "Install",
    "Verify",
)
INSTALL_BYTES = 100_000_000

StepProgress = JobStep


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """The input of a build; `model`, a GGUF file, makes the verification generate with it.

    `architectures` are the compute capabilities of the NVIDIA GPUs of this machine, such as "8.6".
    """

    cache: Path
    data: Path
    model: Path | None = None
    backend: Backend = Backend.AUTO
    architectures: tuple[str, ...] = ()
    keep_build: bool = False
    patches: tuple[Path, ...] = field(default_factory=patch_files)

    @property
    def engines(self) -> Path:
        """The folder that holds one folder a build."""
        return self.data / "engines" / "llama.cpp"


@dataclass(frozen=True, slots=True)
class BuildResult:
    """An engine that is installed and verified; `seconds` a step, for the steps that ran.

    `devices` are the GPUs that its server sees, as it names them.
    """

    key: str
    backend: Backend
    devices: tuple[str, ...]
    folder: Path
    server: Path
    version: str
    from_cache: bool
    seconds: dict[str, float]
    log: Path


class _Steps:
    """Tells which step runs and how far it is, and how long each took."""

    def __init__(self, progress: Callable[[JobStep], None]) -> None:
        self._progress = progress
        self._name = ""
        self._since = time.monotonic()
        self._reported = -1.0
        self.seconds: dict[str, float] = {}

    def begin(self, name: str, detail: str = "") -> None:
        self.end()
        self._name, self._since, self._reported = name, time.monotonic(), -1.0
        self.report(None, detail)

    def report(self, share: float | None, detail: str = "") -> None:
        # Ninja prints hundreds of lines: a hundredth of the step is news enough.
        if share is not None and share < 1 and abs(share - self._reported) < 0.01:
            return
        self._reported = share if share is not None else -1.0
        number = STEPS.index(self._name) + 1
        self._progress(JobStep(number=number, of=len(STEPS), name=self._name, detail=detail, progress=share))

    def end(self) -> None:
        if self._name:
            spent = time.monotonic() - self._since
            self.seconds[self._name] = round(self.seconds.get(self._name, 0.0) + spent, 2)
        self._name = ""


async def build(request: BuildRequest, progress: Callable[[StepProgress], None]) -> BuildResult:
    """Builds what is missing and gives the installed engine.

    The wheel is kept below `request.cache` under a key of everything that changes it; the engine goes to
    `<data>/engines/llama.cpp/<key>` by one rename at the very end. Cancelling the task ends every compiler
    and removes what is half done. Raises `HostError`: `compiler_missing`, `disk_full`, `download_failed`,
    `source_patch_failed`, `build_failed`, `out_of_memory`, `illegal_instruction`, `engine_unusable`,
    `not_writable`, `unsupported`.
    """
    if sys.platform == "win32":
        raise HostError(
            Reason.UNSUPPORTED,
            "llama.cpp is not built on Windows by this program.",
            fix="Use the prebuilt server, or choose a llama-server.exe of your own.",
        )
    steps = _Steps(progress)
    steps.begin(STEPS[0])
    toolchain = await asyncio.to_thread(find_toolchain, request.backend, request.architectures)
    key = build_key(toolchain, request.patches)
    log_path = request.cache / "logs" / f"llama.cpp-{key}.log"
    try:
        async with _locked(request.cache, steps):
            wheel, from_cache = await _wheel(request, toolchain, key, log_path, steps)
            return await _installed(request, toolchain, key, wheel, log_path, steps, from_cache)
    except OSError as error:
        if is_disk_full(error):
            raise disk_full(request.cache, _free(request.cache)) from error
        raise HostError(
            Reason.NOT_WRITABLE,
            tr(
                "The build cannot write {filename}: {error}.",
                filename=error.filename or request.cache,
                error=error.strerror,
            ),
            cause=unwritable_folder(),
            fix="Make the folder writable, or set SNDR_CACHE to a folder of yours.",
            evidence={"path": str(error.filename), "errno": error.errno},
        ) from error


async def _wheel(
    request: BuildRequest, toolchain: Toolchain, key: str, log_path: Path, steps: _Steps
) -> tuple[Path, bool]:
    folder = request.cache / "llama.cpp" / "wheels" / key
    there = next(iter(sorted(folder.glob("*.whl"))), None)
    if there is not None:
        await asyncio.to_thread(check_disk, request.data, INSTALL_BYTES)
        return there, True
    await asyncio.to_thread(check_disk, request.cache, NEEDED_BYTES + toolchain.backend.disk)
    work = request.cache / "llama.cpp" / "work" / key
    ready = work / "patched"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    try:
        python = await asyncio.to_thread(build_python)
        with log_path.open("w", encoding="utf-8") as log:
            steps.begin("Download source")
            tools = await prepare_tools(request.cache, python, toolchain, log)
            sdist = await download_source(request.cache, tools, log, steps.report)
            if not (request.keep_build and ready.is_file()):
                await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)
                steps.begin("Unpack")
                await unpack_source(sdist, work / "source", steps.report)
                steps.begin("Patch")
                for number, patch in enumerate(request.patches):
                    steps.report(number / len(request.patches), patch.stem)
                    await asyncio.to_thread(apply_patch, patch, work / "source")
                ready.touch()
            built = await compile_wheel(work, tools, toolchain, log, steps.begin, steps.report)
        folder.mkdir(parents=True, exist_ok=True)
        # Copied beside and renamed: a wheel under its own name is always whole.
        partial = folder / f"{built.name}.partial"
        await asyncio.to_thread(shutil.copyfile, built, partial)
        return partial.rename(folder / built.name), False
    finally:
        if not request.keep_build:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, work, ignore_errors=True))


async def _installed(
    request: BuildRequest,
    toolchain: Toolchain,
    key: str,
    wheel: Path,
    log_path: Path,
    steps: _Steps,
    from_cache: bool,
) -> BuildResult:
    target = request.engines / key
    steps.begin("Install")
    partial = None
    folder = target
    if installed_build(target) is None:
        partial = request.engines / f".{key}.partial"
        folder = partial
        await asyncio.to_thread(install_wheel, wheel, partial, steps.report)
    try:
        steps.begin("Verify")
        backend = toolchain.backend.backend
        version, devices = await verify_build(folder, request.model, backend, steps.report)
        # Written each time: what was asked for last is what the next start takes.
        record = {
            "key": key,
            "version": version,
            "wheel": wheel.name,
            "built_at": time.time(),
            "backend": backend.value,
        }
        atomic_file.write(folder / "build.json", json.dumps(record, indent=1))
        if partial is not None:
            # A folder of that name without a record is a leftover of something else.
            await asyncio.to_thread(shutil.rmtree, target, ignore_errors=True)
            partial.rename(target)
    finally:
        if partial is not None:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True))
    steps.end()
    return BuildResult(
        key=key,
        folder=target,
        server=target / "bin" / "llama-server",
        backend=backend,
        devices=devices,
        version=version,
        from_cache=from_cache,
        seconds=steps.seconds,
        log=log_path,
    )


@contextlib.asynccontextmanager
async def _locked(cache: Path, steps: _Steps) -> AsyncIterator[None]:
    """Lets one build at a time use the cache, whichever process it runs in."""
    await asyncio.to_thread(cache.mkdir, parents=True, exist_ok=True)
    with (cache / "llama.cpp.lock").open("w", encoding="utf-8") as lock:
        waiting = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    steps.report(None, tr("waits for another build"))
                waiting = True
                await asyncio.sleep(0.3)
        yield


def _free(folder: Path) -> int:
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    return shutil.disk_usage(there).free


def installed(data: Path) -> tuple[Path, ...]:
    """The folders of the builds installed below `data`, newest first."""
    root = data / "engines" / "llama.cpp"
    found = [
        (record.get("built_at", 0.0), folder)
        for folder in root.glob("*")
        if not folder.name.startswith(".") and (record := installed_build(folder)) is not None
    ]
    return tuple(folder for _, folder in sorted(found, reverse=True))


async def _main(request: BuildRequest) -> int:
    last = ""

    def show(step: JobStep) -> None:
        nonlocal last
        share = "" if step.progress is None else f" {formed(step.progress, '.0%'):>5}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K[{step.number}/{step.of}] {step.name}{share} {step.detail[:60]}")
        elif last != step.name:
            sys.stderr.write(f"[{step.number}/{step.of}] {step.name} {step.detail}\n")
        last = step.name
        sys.stderr.flush()

    try:
        result = await build(request, show)
    except HostError as error:
        sys.stderr.write(f"\n{error.problem.sentence()}\n")
        for line in error.problem.evidence.get("tail", []):
            sys.stderr.write(f"  {line}\n")
        return 1
    sys.stderr.write("\n")
    sys.stdout.write(
        json.dumps(
            {
                "server": str(result.server),
                "version": result.version,
                "backend": result.backend.value,
                "devices": result.devices,
                "key": result.key,
                "from_cache": result.from_cache,
                "seconds": result.seconds,
            }
        )
        + "\n"
    )
    return 0


def main() -> int:
    """Runs a build from the command line; the exit code is 0, 1 for a failure, 130 for Ctrl+C."""
    parser = argparse.ArgumentParser(prog="python -m engine_host.engines.llamacpp.build.builder")
    parser.add_argument("--out", type=Path, required=True, help="the data folder to install into")
    parser.add_argument("--cache", type=Path, default=platformdirs.user_cache_path("sndr", appauthor=False))
    parser.add_argument("--model", type=Path, help="a GGUF file to generate with at the end")
    parser.add_argument("--backend", type=Backend, choices=tuple(Backend), default=Backend.CPU)
    parser.add_argument(
        "--architecture", action="append", default=[], help="the GPU's compute capability, such as 8.6"
    )
    parser.add_argument("--keep-build", action="store_true", help="keep the build folder for the next time")
    arguments = parser.parse_args()
    request = BuildRequest(
        cache=arguments.cache.absolute(),
        data=arguments.out.absolute(),
        model=arguments.model.absolute() if arguments.model else None,
        backend=arguments.backend,
        architectures=tuple(arguments.architecture),
        keep_build=arguments.keep_build,
    )
    try:
        return asyncio.run(_main(request))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
