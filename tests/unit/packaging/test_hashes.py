"""Each way in which this project installs Python packages checks every file against a committed hash."""

import asyncio
import io
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from engine_host.engines.llamacpp.build import wheel
from engine_host.engines.llamacpp.build.gpu import BackendTools
from engine_host.engines.llamacpp.build.toolchain import SDIST_NAME, SDIST_SHA256, Toolchain
from engine_host.engines.vllm import install
from engine_host.engines.vllm.package_sources import PackageSources
from engine_host.engines.vllm.pins import LOCKS, PINS, Pin
from engine_host.protocol.engines import Backend
from engine_host.remote.install import packages
from engine_host.remote.install.own_wheel import LOCK as HOST_LOCK
from engine_host.remote.install.there.programs import pip

ROOT = Path(__file__).resolve().parents[3]
LOCKED = re.compile(
    r"[a-z0-9][a-z0-9._-]*(\[[a-z0-9,_-]+\])?==[^\s;]+( *;[^#]+?)?( +--hash=sha256:[0-9a-f]{64})+"
)
BUILD_LOCKS = ROOT / "engine_host/engines/llamacpp/build/locks"
FOLDERS = (ROOT / "packaging/locks", BUILD_LOCKS, LOCKS, HOST_LOCK.parent)
# "pip install", `pip", "install"`, "pip download"; with uv or without.
# Also our own `pip(python, "install")`, which runs on another machine.
ASKS = re.compile(
    r"""\bpip["']?,?\s+["']?(?:install|download|wheel)\b|\bpip\([^)]*["'](?:install|download)"""
    r"""|\buv tool install|\bpipx install"""
)
# What asks pip or uv for packages; a file that is new here needs a test below, or is a sentence for people.
ASKING = {
    "packaging/setup.sh": 4,
    "packaging/kernels.sh": 1,
    "packaging/clients.sh": 1,
    "packaging/gpu/bundle.sh": 1,
    "packaging/gpu/check.sh": 1,
    "packaging/windows/build.ps1": 1,
    "packaging/frozen/freeze.py": 1,
    "engine_host/engines/llamacpp/build/wheel.py": 3,
    "engine_host/engines/vllm/install.py": 1,
    "engine_host/remote/install/packages.py": 1,
    "engine_host/remote/install/there/releases.py": 1,
    "engine_host/remote/install/there/probing.py": 1,
}
# Sentences: what a person may type, and what the demo model was taught.
TOLD = {
    "engine_host/cli/start/window.py",
    "engine_host/connect/clients/programs.py",
    "sndr_gui/kit/versions.py",
    "engine_host/operations/presets/weights.py",
    "packaging/demo_model/answers.md",
    "packaging/demo_model/stories.py",
}


def blocks(lock: Path) -> list[str]:
    """The requirements of a lock, each with its hashes as one line."""
    return lock.read_text(encoding="utf-8").replace("\\\n", " ").strip().splitlines()


@pytest.mark.parametrize(
    "lock", [lock for folder in FOLDERS for lock in sorted(folder.glob("*.lock"))], ids=lambda lock: lock.name
)
def test_each_requirement_of_a_lock_has_one_version_and_its_hashes(lock: Path) -> None:
    found = blocks(lock)
    assert found
    for block in found:
        assert LOCKED.fullmatch(block), f"{lock.name}: {block[:200]}"


def test_each_pin_has_its_locks() -> None:
    for pin in PINS:
        assert pin.lock.is_file()
        first = tuple(block.split()[0] for block in blocks(pin.lock_first)) if pin.packages_first else ()
        assert first == pin.packages_first
    assert {lock.name for lock in LOCKS.glob("*.lock")} == {
        *(pin.lock.name for pin in PINS),
        *(pin.lock_first.name for pin in PINS if pin.packages_first),
    }


def test_the_files_that_ask_for_packages_are_known() -> None:
    asking: dict[str, int] = {}
    for folder in ("packaging", "engine_host", "sndr_gui", "presets", ".github", ".ci"):
        for path in (ROOT / folder).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in {".py", ".sh", ".yml", ".yaml", ".toml", ".md", ".ps1", ""} and path.is_file():
                found = ASKS.findall(path.read_text(encoding="utf-8", errors="replace"))
                if found and name not in TOLD:
                    asking[name] = len(found)
    assert asking == ASKING


@pytest.mark.parametrize("script", [name for name in ASKING if name.endswith((".sh", ".ps1"))])
def test_each_command_of_a_script_requires_hashes(script: str) -> None:
    text = (ROOT / script).read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [line for line in text.splitlines() if ASKS.search(line) and not line.lstrip().startswith("#")]
    assert commands
    for command in commands:
        assert "--require-hashes" in command, command
        assert re.search(r" -r [\"']?[$.\w/{}-]*(lock|wanted)", command), command


def requires_hashes(argv: Sequence[str]) -> None:
    """A command of pip or uv takes its packages from locks alone."""
    assert "--require-hashes" in argv, argv
    files = [Path(argv[place + 1]) for place, word in enumerate(argv) if word == "-r"]
    assert files
    for file in files:
        assert all("--hash=sha256:" in block for block in blocks(file)), file
    beside = [word for word in argv if re.match(r"[a-z0-9._-]+(==|>=|<|~=|@)", word)]
    assert not beside


def toolchain(*, tools: bool) -> Toolchain:
    """A machine with cmake and ninja of its own, or without."""
    return Toolchain(
        c_compiler="/usr/bin/cc",
        cxx_compiler="/usr/bin/c++",
        compiler_version="c++ 12",
        cmake="/usr/bin/cmake" if tools else None,
        ninja="/usr/bin/ninja" if tools else None,
        ccache=None,
        jobs=1,
        backend=BackendTools(Backend.CPU),
    )


@pytest.mark.parametrize("tools", [True, False])
def test_the_tools_of_a_build_come_from_their_locks(
    tools: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    async def run(argv: list[str], **_options: object) -> list[str]:
        (tmp_path / "llama.cpp" / "tools").mkdir(parents=True, exist_ok=True)
        asked.append(argv)
        return []

    monkeypatch.setattr(wheel, "run_tool", run)
    for _ in range(2):
        asyncio.run(wheel.prepare_tools(tmp_path, sys.executable, toolchain(tools=tools), io.StringIO()))
    assert len(asked) == 2, "the second time they are there"
    requires_hashes(asked[1])
    names = {word.split("/")[-1] for word in asked[1] if word.endswith(".lock")}
    assert names == {"scikit-build-core.lock"} | (set() if tools else {"cmake.lock", "ninja.lock"})
    # Other locks than those that were installed from: they are made anew.
    monkeypatch.setattr(wheel, "_sha256", lambda path: "another")
    asyncio.run(wheel.prepare_tools(tmp_path, sys.executable, toolchain(tools=tools), io.StringIO()))
    assert len(asked) == 4


def test_the_source_of_llama_cpp_is_asked_for_by_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    async def run(argv: list[str], **_options: object) -> list[str]:
        requires_hashes(argv)
        assert SDIST_SHA256 in (tmp_path / "llama.cpp/sdist/partial/pin.txt").read_text()
        asked.append(argv)
        (tmp_path / "llama.cpp/sdist/partial" / SDIST_NAME).write_bytes(b"")
        return []

    monkeypatch.setattr(wheel, "run_tool", run)
    tools = wheel.BuildTools(sys.executable, {})
    asyncio.run(wheel.download_source(tmp_path, tools, io.StringIO(), lambda _share, _detail: None))
    assert len(asked) == 1


def test_what_freezes_the_program_comes_from_its_locks(script: Callable[[str], ModuleType]) -> None:
    argv = script("freeze").install_command(Path("python"))
    requires_hashes(argv)
    assert argv[-1].endswith("frozen.lock")


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: pin.id)
def test_an_environment_for_vllm_is_installed_from_its_locks(
    pin: Pin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    async def run(argv: list[str], *_more: object) -> list[str]:
        asked.append(argv)
        return []

    monkeypatch.setattr(install, "_run", run)
    monkeypatch.setattr(install, "package_sources", lambda: PackageSources(None, ("/a/folder",)))
    monkeypatch.setattr(install, "environment_tags", lambda _home: frozenset())
    request = install.InstallRequest(pin, tmp_path / pin.id, tmp_path / "log", lambda _packages: None)
    asyncio.run(install._packages(request, sys.executable, io.StringIO(), lambda _step: None))
    installs = [argv for argv in asked if "install" in argv]
    assert len(installs) == (2 if pin.packages_first else 1)
    for argv in installs:
        requires_hashes(argv)
        assert "--no-deps" in argv


def test_the_packages_of_a_host_on_another_machine_come_from_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    async def run(argv: list[str], **_options: object) -> list[str]:
        asked.append(argv)
        return []

    monkeypatch.setattr(packages, "run_tool", run)
    monkeypatch.setattr(packages, "package_sources", lambda: PackageSources(None, ("/a/folder",)))
    platform = packages.Platform((3, 12), "x86_64-manylinux_2_28")
    asyncio.run(packages._install(platform, tmp_path, tmp_path / "log", lambda _line: None))
    requires_hashes(asked[0])
    # There, pip gets a lock that was sent, and refuses what has no hash.
    requires_hashes([*pip("python3", "install"), "-r", str(HOST_LOCK)])
