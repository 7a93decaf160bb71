"""The import rule of docs/ARCHITECTURE.md in one table, enforced.

An exception stands here with its reason; one that is not needed any more fails too.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for package in ("engine_host", "sndr_gui") for path in (ROOT / package).rglob("*.py"))
NAMES = [path.relative_to(ROOT).as_posix() for path in SOURCES]

# A package may import those before it.
HOST = ("protocol", "core", "SUBJECTS", "operations", "api", "daemon")
SUBJECTS = (
    "telemetry", "library", "engines", "overlay", "catalog", "gateway", "fit", "deploy", "launch", "bench",
    "remote",
)  # fmt: skip
CONTROL = ("protocol", "core", "client", "connect", "cli")
WINDOW = ("host", "models", "views")

# (importing file, imported package): why it may.
EXCEPTIONS = {
    ("engine_host/cli/serve.py", "engine_host.daemon"): "`sndr serve` is the host",
    ("engine_host/cli/start/reading.py", "engine_host.daemon"): "it reads there where no host runs",
    ("engine_host/cli/settings.py", "engine_host.operations"): "settings are refused there as a host would",
}
STARTS = {f"{package}/__{name}__.py" for package in ("engine_host", "sndr_gui") for name in ("init", "main")}

MAY_IMPORT = {
    "httpx": (),
    "pyqtgraph": ("sndr_gui/views/graphs/plots.py",),
}
MAY_NAME_COLOURS = "sndr_gui/kit/look/colours.py"
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager2", "legacy", "misc", "common"}
LONGEST_FILE = 500
MOST_FILES = 16
# Files that run inside vLLM.
LARGE_FOLDERS = {"engine_host/overlay/inject"}


def rank(package: str) -> tuple[int, ...]:
    """Return the layer of a package of the host."""
    if package in SUBJECTS:
        return HOST.index("SUBJECTS"), SUBJECTS.index(package)
    return (HOST.index(package),)


def allowed(name: str, module: str) -> bool:
    """Return True if a file may import a module of ours."""
    own, target = name.removesuffix(".py").split("/"), module.split(".")
    if name in STARTS or len(target) == 1 or (own[0] == target[0] and own[1] == target[1]):
        return True
    if own[0] == "sndr_gui":
        if target[0] == "engine_host":
            return target[1] in ("protocol", "client", "connect")
        if own[1] == "app" or target[1] == "kit":
            return True
        return own[1] != "kit" and WINDOW.index(target[1]) <= WINDOW.index(own[1])
    if target[0] != "engine_host":
        return False
    if own[1] in CONTROL[2:]:
        return target[1] in CONTROL and CONTROL.index(target[1]) < CONTROL.index(own[1])
    return target[1] in (*HOST, *SUBJECTS) and rank(target[1]) < rank(own[1])


@cache
def imports(name: str) -> frozenset[str]:
    """Every module that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def ours(name: str) -> Iterator[str]:
    """Return the modules of this project that a file imports."""
    return (module for module in imports(name) if module.split(".")[0] in {"engine_host", "sndr_gui"})


def package_of(module: str) -> str:
    """The folder or the top-level module that a name is imported from."""
    top, name = module.split(".")[:2] if "." in module else (module, "")
    there = (ROOT / top / name).is_dir() or (ROOT / top / f"{name}.py").is_file()
    return f"{top}.{name}" if name and there else top


def test_imports_run_downward() -> None:
    used = set()
    for name in NAMES:
        if name.startswith(("engine_host/overlay/patches/", "engine_host/overlay/inject/")):
            continue
        for module in ours(name):
            package = package_of(module)
            if not allowed(name, package) and (name, package) not in EXCEPTIONS:
                pytest.fail(f"{name} imports {module}")
            if not allowed(name, package):
                used.add((name, package))
    needed = {key for key in EXCEPTIONS if key[0] not in STARTS}
    assert used == needed, "an exception is not needed any more"


def test_no_host_imports_qt_and_no_model_imports_widgets() -> None:
    for name in NAMES:
        for module in imports(name):
            top = module.split(".")[0]
            if name.startswith("engine_host/"):
                assert top not in {"PySide6", "shiboken6", "qasync", "pyqtgraph"}, f"{name} imports {module}"
            if name.startswith(("sndr_gui/models/", "sndr_gui/host/")):
                assert not module.startswith("PySide6.QtWidgets"), f"{name} imports {module}"


def test_protocol_imports_pydantic_alone() -> None:
    for name in NAMES:
        if name.startswith("engine_host/protocol/"):
            for module in imports(name):
                top = module.split(".")[0]
                own = module.startswith("engine_host.protocol")
                assert own or top == "pydantic" or top in sys.stdlib_module_names, f"{name} imports {module}"


def test_what_enters_vllm_imports_the_standard_library_alone() -> None:
    for name in NAMES:
        if name.startswith("engine_host/overlay/inject/"):
            tops = {module.split(".")[0] for module in imports(name)}
            assert tops <= sys.stdlib_module_names | {"vllm"}, f"{name} imports {tops}"


def test_what_runs_on_another_machine_imports_the_standard_library_alone() -> None:
    own = "engine_host.remote.install.there"
    for name in NAMES:
        if name.startswith("engine_host/remote/install/there/"):
            for module in imports(name):
                assert module.startswith(own) or module.split(".")[0] in sys.stdlib_module_names, (
                    f"{name} imports {module}"
                )


@pytest.mark.parametrize("library", MAY_IMPORT)
def test_window_keeps_a_library_in_one_place(library: str) -> None:
    for name in NAMES:
        if name.startswith("sndr_gui/") and any(module.split(".")[0] == library for module in imports(name)):
            assert name.startswith(MAY_IMPORT[library]), name


def test_only_the_theme_names_colours() -> None:
    colour = re.compile(r"""["']#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3})["']""")
    for name in NAMES:
        if name.startswith("sndr_gui/") and name != MAY_NAME_COLOURS:
            found = colour.search((ROOT / name).read_text(encoding="utf-8"))
            assert found is None, f"{name} names the colour {found and found.group()}"


def test_files_are_short_and_named_for_what_they_do() -> None:
    for name in NAMES:
        assert (ROOT / name).read_text(encoding="utf-8").count("\n") <= LONGEST_FILE, name
        assert Path(name).stem not in FORBIDDEN_NAMES, name


def test_folders_are_small_and_not_named_twice() -> None:
    folders: dict[str, list[str]] = {}
    for name in NAMES:
        folders.setdefault(Path(name).parent.as_posix(), []).append(Path(name).stem)
    for folder, stems in folders.items():
        stems = [stem for stem in stems if stem != "__init__"]
        assert len(stems) <= MOST_FILES or folder in LARGE_FOLDERS, f"{folder} has {len(stems)} files"
        if "/overlay/patches/" not in folder:
            doubled = [
                stem for stem in stems if f"{Path(folder).name.rstrip('s')}_" in f"{stem}_" and len(stems) > 1
            ]
            assert not doubled, f"{folder} names itself again in {doubled}"


@pytest.mark.parametrize("package", ["engine_host", "sndr_gui"])
def test_no_loose_modules_at_the_top(package: str) -> None:
    loose = {path.stem for path in (ROOT / package).glob("*.py")}
    assert loose <= {"__init__", "__main__", "app"}
