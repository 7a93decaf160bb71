"""Find the tools for a GPU build of llama.cpp, CUDA's or Vulkan's, by trying them."""

import functools
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.engines.process.tool import ask_tool
from engine_host.protocol.engines import Backend
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_TRY_SECONDS = 60
# What ggml-vulkan includes, links and, of the newest extensions, names: headers from before 1.3.272 lack it.
_VULKAN_PROGRAM = """\
#include <vulkan/vulkan.hpp>
#include <spirv/unified1/spirv.hpp>
int main() { vk::LayerSettingEXT setting; return vk::enumerateInstanceVersion() == 0 && &setting; }
"""
# ggml-cuda links cublas, which some packages of the compiler leave out; nvcc also refuses C++ compilers that
# are too new for it.
_CUDA_PROGRAM = """\
#include <cublas_v2.h>
int main() { cublasHandle_t handle; return cublasCreate(&handle); }
"""
_DOWNLOADS = "developer.nvidia.com/cuda-downloads"


@dataclass(frozen=True, slots=True)
class BackendTools:
    """The tools and CMake arguments for one backend.

    `version` is that of its compiler. `disk` and `job` are the bytes that the build and each of its compiler
    jobs take more than they do for the processor alone.
    """

    backend: Backend
    arguments: tuple[str, ...] = ()
    version: str = ""
    disk: int = 0
    job: int = 0


def find_backend(backend: Backend, architectures: Sequence[str], cxx: str) -> BackendTools:
    """The tools of a backend; `auto` is CUDA, else Vulkan, where there is an NVIDIA GPU, else the processor.

    `architectures` are the compute capabilities of the GPUs here, such as "8.6". It runs compilers for some
    seconds: call it in a thread. Raises HostError(compiler_missing) that says what is missing for it.
    """
    if backend is Backend.CUDA:
        return _cuda(architectures, cxx)
    if backend is Backend.VULKAN:
        return _vulkan(cxx)
    if backend is Backend.CPU or not architectures:
        return BackendTools(Backend.CPU)
    lacking = []
    for tools in (functools.partial(_cuda, architectures, cxx), functools.partial(_vulkan, cxx)):
        try:
            return tools()
        except HostError as error:
            lacking.append(error.problem.message)
    raise HostError(
        Reason.COMPILER_MISSING,
        tr("llama.cpp cannot be built for the GPU of this machine yet. {lacking}", lacking=" ".join(lacking)),
        cause="The system packages for it are not installed.",
        fix=Fix(
            text=tr(
                "Install Vulkan's packages, or CUDA from {downloads}, and build again; for the "
                "processor alone: sndr engine build llama.cpp --backend cpu",
                downloads=_DOWNLOADS,
            ),
            command=_vulkan_packages(),
        ),
        evidence={"backend": backend.value, "lacking": lacking},
    )


def _cuda(architectures: Sequence[str], cxx: str) -> BackendTools:
    if not architectures:
        raise HostError(
            Reason.ENGINE_UNUSABLE,
            "llama.cpp is not built for CUDA here: no NVIDIA GPU was found.",
            cause="NVIDIA's driver is not loaded, or there is none.",
            fix="Build on the machine that has the GPU.",
            evidence={"backend": Backend.CUDA.value},
        )
    nvcc = next(filter(None, map(shutil.which, _compilers())), None)
    output = _output(nvcc, "--version") if nvcc else None
    found = re.search(r"release (\d+\.\d+), V(\S+)", output or "")
    if nvcc is None or found is None:
        raise HostError(
            Reason.COMPILER_MISSING,
            "CUDA's compiler, nvcc, is not here.",
            cause="The driver alone runs CUDA programs; building one takes NVIDIA's toolkit.",
            fix=tr("Install the toolkit from {downloads}.", downloads=_DOWNLOADS),
            evidence={"backend": Backend.CUDA.value, "nvcc": nvcc},
        )
    numbers = sorted({architecture.replace(".", "") for architecture in architectures}, key=int)
    known = re.findall(r"compute_(\d+)", _output(nvcc, "--list-gpu-arch") or "")
    unknown = [number for number in numbers if number not in known]
    if unknown:
        names = ", ".join(f"SM {number[:-1]}.{number[-1]}" for number in unknown)
        raise HostError(
            Reason.COMPILER_MISSING,
            tr(
                "CUDA's compiler here, {found}, does not compile for this GPU ({names}).",
                found=found[1],
                names=names,
            ),
            cause="It is older than the GPU, or has given up on one so old.",
            fix=tr("Install another version of the toolkit from {downloads}.", downloads=_DOWNLOADS),
            evidence={"backend": Backend.CUDA.value, "nvcc": nvcc, "version": found[1], "lacking": unknown},
        )
    failure = _failure(nvcc, _CUDA_PROGRAM, ".cu", "-ccbin", cxx, "-lcublas")
    if failure:
        raise HostError(
            Reason.COMPILER_MISSING,
            tr("CUDA's compiler here, {found}, cannot be used: {failure}", found=found[1], failure=failure),
            cause=tr("The toolkit is not installed whole, or too old for {cxx}.", cxx=cxx),
            fix=tr(
                "Install the toolkit from {downloads}, or set CXX to an older C++ compiler.",
                downloads=_DOWNLOADS,
            ),
            evidence={"backend": Backend.CUDA.value, "nvcc": nvcc, "version": found[1], "tried": failure},
        )
    root = _root(nvcc)
    return BackendTools(
        Backend.CUDA,
        (
            "-DGGML_CUDA=ON",
            f"-DCMAKE_CUDA_COMPILER={nvcc}",
            # ggml looks for the libraries before it looks for the compiler, and takes those of PATH's nvcc.
            f"-DCUDAToolkit_ROOT={root}",
            # The package lets its libraries search their own folder alone; cublas is not in the linker's.
            *(f"-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-rpath,{folder}" for folder in _libraries(root)[:1]),
            # Code for the GPUs that are here and no others: all of them together take hours.
            "-DCMAKE_CUDA_ARCHITECTURES=" + ";".join(f"{number}-real" for number in numbers),
        ),
        found[2],
        disk=1_000_000_000,
        job=2_500_000_000,
    )


def _compilers() -> list[str]:
    """List the paths of nvcc to try: its installer puts it where no PATH leads."""
    named = [os.environ.get("CUDACXX", ""), "nvcc"]
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    versions = sorted(Path("/usr/local").glob("cuda-*"), key=_numbers, reverse=True)
    folders = [*filter(None, homes), *map(str, versions), "/opt/cuda"]
    return [*named, *(str(Path(folder) / "bin" / "nvcc") for folder in folders)]


def _numbers(folder: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", folder.name)))


def _root(nvcc: str) -> Path:
    """The toolkit's folder as nvcc itself names it: nvcc may be a script that calls the real one."""
    output = _output(nvcc, "--dryrun", "-x", "cu", os.devnull) or ""
    top = re.search(r"^#\$ TOP=(.+)$", output, re.MULTILINE)
    return Path(top[1].strip() if top else Path(nvcc).resolve().parent.parent).resolve()


def _libraries(root: Path) -> list[Path]:
    """The toolkit's folders with cublas; none where the system's own package put it among its libraries."""
    places = (root / "lib64", root / "lib", root / "targets" / f"{os.uname().machine}-linux" / "lib")
    return [place for place in places if (place / "libcublas.so").exists()]


def _vulkan(cxx: str) -> BackendTools:
    # Where the SDK of vulkan.lunarg.com was unpacked; CMake looks there too.
    sdk = os.environ.get("VULKAN_SDK", "")
    glslc = (shutil.which(f"{sdk}/bin/glslc") if sdk else None) or shutil.which("glslc")
    output = _output(glslc, "--version") if glslc else None
    places = (f"-I{sdk}/include", f"-L{sdk}/lib") if sdk else ()
    if output is None or _failure(cxx, _VULKAN_PROGRAM, ".cpp", "-std=c++17", *places, "-lvulkan"):
        lacking = (
            tr("headers are not here, or older than 1.3.272")
            if output
            else tr("shader compiler, glslc, is not here")
        )
        raise HostError(
            Reason.COMPILER_MISSING,
            tr("Vulkan's {lacking}.", lacking=lacking),
            cause="The system packages for it are not installed, or this system's are too old.",
            fix=Fix(
                text="Install them and build again. Before Debian 13 and Ubuntu 24.04 they are too old: "
                "unpack the SDK of vulkan.lunarg.com there, and set VULKAN_SDK to its folder.",
                command=_vulkan_packages(),
            ),
            evidence={"backend": Backend.VULKAN.value, "glslc": glslc, "sdk": sdk},
        )
    version = f"{output.splitlines()[0]} {sdk}".strip()
    return BackendTools(Backend.VULKAN, ("-DGGML_VULKAN=ON",), version, disk=500_000_000)


def _vulkan_packages() -> str:
    if shutil.which("dnf"):
        return "dnf install vulkan-headers vulkan-loader-devel spirv-headers-devel glslc"
    if shutil.which("pacman"):
        return "pacman -S vulkan-headers vulkan-icd-loader spirv-headers shaderc"
    if sys.platform == "darwin":
        return "brew install vulkan-headers vulkan-loader spirv-headers shaderc"
    return "apt-get install libvulkan-dev spirv-headers glslc"


def _failure(compiler: str, program: str, suffix: str, *options: str) -> str:
    """Why a program of a few lines does not compile and link; empty when it does."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"try{suffix}"
        source.write_text(program, encoding="utf-8")
        binary = str(Path(folder) / "tried")
        code, output = ask_tool(compiler, str(source), "-o", binary, *options, seconds=_TRY_SECONDS)
    lines = [line.strip().replace(f"{source}:", "") for line in output.splitlines() if line.strip()]
    telling = (line for line in lines if "error" in line or "cannot find" in line)
    if code == 0:
        return ""
    first = next(telling, lines[-1] if lines else f"it ended with code {code}.")
    return re.sub(r"^\d+:\d+: (fatal )?error: ", "", first)


def _output(program: str, *arguments: str) -> str | None:
    """Return a tool's output, or None when it cannot be run or fails."""
    code, output = ask_tool(program, *arguments)
    return output if code == 0 else None
