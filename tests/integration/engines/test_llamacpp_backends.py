"""Tools of a build for GPUs: found by trying them, and what is missing is said. The compilers are fakes."""

import os
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.build.gpu import BackendTools, find_backend
from engine_host.engines.llamacpp.build.toolchain import Toolchain, build_key
from engine_host.protocol.engines import Backend
from engine_host.protocol.errors import Reason

NVCC = """#!/bin/sh
case "$1" in
    --version) echo "Cuda compilation tools, release {release}, V{release}.88" ;;
    --dryrun) echo '#$ TOP={root}/bin/..' ;;
    --list-gpu-arch) printf 'compute_80\\ncompute_86\\ncompute_89\\n' ;;
esac
"""
GLSLC = "#!/bin/sh\necho 'shaderc v2023.8'\n"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder in PATH; CUDA that this machine may really have is out of sight."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for name in ("CUDACXX", "CUDA_HOME", "CUDA_PATH", "VULKAN_SDK"):
        monkeypatch.delenv(name, raising=False)
    only_path = [str(folder / "nvcc")]
    monkeypatch.setattr("engine_host.engines.llamacpp.build.gpu._compilers", lambda: only_path)
    return folder


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def compiler(folder: Path, *, has_vulkan: bool) -> str:
    return program(folder, "g++", f"#!/bin/sh\nexit {0 if has_vulkan else 1}\n")


def refused(wanted: Backend, architectures: tuple[str, ...], cxx: str) -> HostError:
    with pytest.raises(HostError) as caught:
        find_backend(wanted, architectures, cxx)
    return caught.value


@pytest.mark.usefixtures("tools")
def test_without_a_gpu_it_is_the_processor() -> None:
    for wanted in (Backend.AUTO, Backend.CPU):
        assert find_backend(wanted, (), "g++") == BackendTools(Backend.CPU)
    assert find_backend(Backend.CPU, ("8.6",), "g++") == BackendTools(Backend.CPU)


def test_cuda_compiles_for_the_gpus_that_are_here(tools: Path) -> None:
    nvcc = program(tools, "nvcc", NVCC.format(release="12.4", root=tools.parent))
    found = find_backend(Backend.AUTO, ("8.9", "8.6", "8.6"), "g++")
    assert found.backend is Backend.CUDA
    assert found.version == "12.4.88"
    assert "-DCMAKE_CUDA_ARCHITECTURES=86-real;89-real" in found.arguments
    assert f"-DCMAKE_CUDA_COMPILER={nvcc}" in found.arguments
    root = tools.parent
    assert f"-DCUDAToolkit_ROOT={root}" in found.arguments, "not that of a wrapper"
    assert not any("rpath" in argument for argument in found.arguments)
    (root / "lib64").mkdir()
    (root / "lib64" / "libcublas.so").touch()
    found = find_backend(Backend.CUDA, ("8.6",), "g++")
    assert f"-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-rpath,{root}/lib64" in found.arguments


def test_a_gpu_that_cuda_does_not_know_is_named(tools: Path) -> None:
    program(tools, "nvcc", NVCC.format(release="11.8", root=tools.parent))
    error = refused(Backend.CUDA, ("8.6", "12.0"), "g++")
    assert error.reason is Reason.COMPILER_MISSING
    assert "11.8, does not compile for this GPU (SM 12.0)" in error.problem.message
    assert error.problem.evidence["lacking"] == ["120"]


def test_a_toolkit_that_lacks_a_part_says_which(tools: Path) -> None:
    fails = "*) echo '/usr/bin/ld: cannot find -lcublas' ; exit 1 ;;\nesac"
    program(tools, "nvcc", NVCC.format(release="12.4", root=tools.parent).replace("esac", fails))
    error = refused(Backend.CUDA, ("8.6",), "g++")
    assert "12.4, cannot be used: /usr/bin/ld: cannot find -lcublas" in error.problem.message


def test_auto_takes_vulkan_where_cuda_cannot(tools: Path) -> None:
    program(tools, "nvcc", NVCC.format(release="11.8", root=tools.parent))
    program(tools, "glslc", GLSLC)
    found = find_backend(Backend.AUTO, ("12.0",), compiler(tools, has_vulkan=True))
    assert (found.backend, found.version) == (Backend.VULKAN, "shaderc v2023.8")
    assert found.arguments == ("-DGGML_VULKAN=ON",)


def test_auto_says_what_both_lack_and_how_to_do_without(tools: Path) -> None:
    error = refused(Backend.AUTO, ("8.6",), compiler(tools, has_vulkan=False))
    assert error.reason is Reason.COMPILER_MISSING
    assert "nvcc, is not here" in error.problem.message
    assert "glslc, is not here" in error.problem.message
    fix = error.problem.fix
    assert fix is not None
    assert "--backend cpu" in fix.text
    assert fix.command == "apt-get install libvulkan-dev spirv-headers glslc"


def test_vulkan_with_headers_that_are_too_old(tools: Path) -> None:
    program(tools, "glslc", GLSLC)
    error = refused(Backend.VULKAN, (), compiler(tools, has_vulkan=False))
    assert "older than 1.3.272" in error.problem.message
    assert error.problem.fix is not None
    assert "VULKAN_SDK" in error.problem.fix.text


def test_vulkan_of_an_sdk(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sdk = tmp_path / "sdk"
    (sdk / "bin").mkdir(parents=True)
    program(sdk / "bin", "glslc", GLSLC)
    monkeypatch.setenv("VULKAN_SDK", str(sdk))
    wants = f'#!/bin/sh\ncase "$*" in *"-I{sdk}/include -L{sdk}/lib -lvulkan") exit 0 ;; esac\nexit 1\n'
    found = find_backend(Backend.VULKAN, (), program(tools, "g++", wants))
    assert found.version == f"shaderc v2023.8 {sdk}"


def test_cuda_without_a_gpu_is_refused(tools: Path) -> None:
    program(tools, "nvcc", NVCC.format(release="12.4", root=tools.parent))
    assert refused(Backend.CUDA, (), "g++").reason is Reason.ENGINE_UNUSABLE


@pytest.mark.usefixtures("tools")
def test_every_backend_has_a_cache_of_its_own() -> None:
    def key(tools: BackendTools) -> str:
        made = Toolchain("gcc", "g++", "g++ 12", None, None, None, 2, tools)
        return build_key(made, ())

    vulkan = BackendTools(Backend.VULKAN, ("-DGGML_VULKAN=ON",), "1")
    keys = [
        key(BackendTools(Backend.CPU)),
        key(vulkan),
        key(BackendTools(Backend.VULKAN, ("-DGGML_VULKAN=ON",), "2")),
        key(BackendTools(Backend.CUDA, ("-DCMAKE_CUDA_ARCHITECTURES=86-real",), "12")),
        key(BackendTools(Backend.CUDA, ("-DCMAKE_CUDA_ARCHITECTURES=89-real",), "12")),
    ]
    assert len(set(keys)) == len(keys)
    assert key(vulkan).endswith("-vulkan")


def test_nvcc_is_looked_for_where_its_installer_puts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine_host.engines.llamacpp.build.gpu import _compilers

    monkeypatch.setenv("CUDA_HOME", os.sep + "somewhere")
    monkeypatch.delenv("CUDACXX", raising=False)
    places = list(filter(None, _compilers()))
    assert places[:2] == ["nvcc", "/somewhere/bin/nvcc"]
    assert "/usr/local/cuda/bin/nvcc" in places
