"""The toolchain for a llama.cpp build, and the key by which its result is kept."""

import hashlib
import json
import os
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.build.gpu import BackendTools, find_backend
from engine_host.engines.process.tool import ask_tool
from engine_host.protocol.engines import Backend
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.telemetry.memory_limit import memory

PACKAGE = "llama-cpp-python"
PACKAGE_VERSION = "0.3.36"
SDIST_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
SDIST_NAME = "llama_cpp_python-0.3.36.tar.gz"
SDIST_BYTES = 76_589_250
LLAMA_COMMIT = "0c1e570"

# Measured: 77 MB source package, 0.3 GB unpacked, 0.4 GB of objects, 24 MB wheel, 60 MB of build tools;
# the rest is room for the compiler's temporary files.
NEEDED_BYTES = 1_500_000_000
# One optimised C++ job of llama.cpp takes up to this much memory.
JOB_BYTES = 1_500_000_000
OLDEST_CMAKE = (3, 21)

CMAKE_ARGUMENTS = (
    "-DLLAMA_BUILD_TOOLS=ON",
    "-DLLAMA_BUILD_SERVER=ON",
    # Without it libllama-server-impl.so is not installed and llama-server cannot start.
    "-DLLAMA_TOOLS_INSTALL=ON",
    # The tools bring mtmd with them; the package would add the same target again.
    "-DLLAVA_BUILD=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    # On by default, it downloads a web page during the build.
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_ALL_WARNINGS=OFF",
    # The package sets this for its own libraries only; llama-server would not find them.
    "-DCMAKE_INSTALL_RPATH=$ORIGIN/../lib",
)
# What would change the build behind the key's back.
REMOVED_ENVIRONMENT = (
    "CMAKE_ARGS", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "PYTHONPATH", "PYTHONHOME",
    "SKBUILD_CMAKE_ARGS", "SKBUILD_CMAKE_DEFINE", "CMAKE_GENERATOR", "DESTDIR", "VIRTUAL_ENV",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The tools found here; `cmake` and `ninja` are None where the build brings its own."""

    c_compiler: str
    cxx_compiler: str
    compiler_version: str
    cmake: str | None
    ninja: str | None
    ccache: str | None
    jobs: int
    backend: BackendTools


def find_toolchain(requested: Backend = Backend.CPU, architectures: Sequence[str] = ()) -> Toolchain:
    """Finds the compilers and tools of a build for `requested`.

    `architectures` are the compute capabilities of the NVIDIA GPUs here. Raises `compiler_missing` with the
    command that installs them, `engine_unusable` for CUDA without a GPU.
    """
    cxx = next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), "g++", "c++", "clang++"))), None)
    c = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "gcc", "cc", "clang"))), None)
    version = _first_line(cxx, "--version") if cxx else None
    if cxx is None or c is None or version is None:
        raise HostError(
            Reason.COMPILER_MISSING,
            "llama.cpp cannot be built here: there is no C++ compiler.",
            cause="The system packages for compiling are not installed.",
            fix=Fix(text="Install them, or use the prebuilt server.", command=_install_command()),
            evidence={"c": c, "c++": cxx},
        )
    backend = find_backend(requested, architectures, cxx)
    return Toolchain(
        c_compiler=c,
        cxx_compiler=cxx,
        compiler_version=version,
        cmake=_usable_cmake(),
        ninja=shutil.which("ninja"),
        ccache=shutil.which("ccache"),
        jobs=_jobs(JOB_BYTES + backend.job),
        backend=backend,
    )


def check_disk(folder: Path, needed: int = NEEDED_BYTES) -> None:
    """Raises `disk_full` with the numbers where fewer than `needed` bytes are free for the build."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if free < needed:
        raise disk_full(folder, free, needed)


def disk_full(folder: Path, free: int, needed: int = NEEDED_BYTES) -> HostError:
    """The one error for a disk that is, or becomes, too full to build on."""
    return HostError(
        Reason.DISK_FULL,
        tr(
            "The build needs {needed:.1f} GB on the disk of {folder}; {free:.2f} GB are free.",
            needed=needed / 1000000000.0,
            folder=folder,
            free=free / 1000000000.0,
        ),
        cause="The disk is full, or nearly so.",
        fix="Free some space, or set SNDR_CACHE to a folder on another disk.",
        evidence={"folder": str(folder), "free_bytes": free, "needed_bytes": needed},
    )


def build_key(toolchain: Toolchain, patches: tuple[Path, ...]) -> str:
    """Names everything that changes the result: source, patches, processor, compiler, options, platform."""
    tools = toolchain.backend
    parts = {
        "source": [PACKAGE_VERSION, SDIST_SHA256],
        "patches": [[patch.name, hashlib.sha256(patch.read_bytes()).hexdigest()] for patch in patches],
        "machine": platform.machine(),
        "processor": processor_features(),
        "compiler": toolchain.compiler_version,
        "arguments": CMAKE_ARGUMENTS,
        # Only where it is for a GPU: builds for the processor keep the key that they had.
        **({"backend": [*tools.arguments, tools.version]} if tools.backend is not Backend.CPU else {}),
        # The bindings are pure Python over C: the wheel is `py3-none`, whichever Python drives the build.
        "platform": sysconfig.get_platform(),
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    suffix = "" if tools.backend is Backend.CPU else f"-{tools.backend.value}"
    return f"{PACKAGE_VERSION}-{LLAMA_COMMIT}-{digest[:12]}{suffix}"


def processor_features() -> list[str]:
    """The instruction sets that a compiler for this very processor may use."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return [platform.processor()]
    found = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.MULTILINE)
    return sorted(found[1].split()) if found else [platform.processor()]


def processor_has_amx() -> bool:
    """Return True if this processor has Intel's matrix tiles (AMX), for which the first source patch is."""
    return "amx_tile" in processor_features()


def _usable_cmake() -> str | None:
    cmake = shutil.which("cmake")
    found = re.search(r"version (\d+)\.(\d+)", (_first_line(cmake, "--version") if cmake else None) or "")
    return cmake if found and (int(found[1]), int(found[2])) >= OLDEST_CMAKE else None


def _jobs(job_bytes: int) -> int:
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = min(cores, len(os.sched_getaffinity(0)))
    return max(1, min(cores, memory().available // job_bytes))


def _first_line(program: str, argument: str) -> str | None:
    code, output = ask_tool(program, argument)
    lines = output.splitlines()
    return lines[0] if code == 0 and lines else None


def _install_command() -> str:
    if shutil.which("dnf"):
        return "dnf install gcc-c++ cmake ninja-build"
    if shutil.which("pacman"):
        return "pacman -S gcc cmake ninja"
    if sys.platform == "darwin":
        return "xcode-select --install"
    return "apt-get install g++ cmake ninja-build"
