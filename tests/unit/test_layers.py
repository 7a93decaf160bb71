"""Who may import whom: the lines of docs/ARCHITECTURE.md, enforced.

An exception stands in a table here with its reason; one that is not needed any more fails too.
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

SERVICES = {
    "bench",
    "catalog",
    "deploy",
    "engines",
    "fit",
    "gateway",
    "launch",
    "library",
    "overlay",
    "remote",
    "telemetry",
}
# Where services are built and handed to one another.
WIRING = {
    "engine_host/operations/bisect.py",
    "engine_host/operations/deploy_fit.py",
    "engine_host/operations/deploy.py",
    "engine_host/daemon/endpoint_target.py",
    "engine_host/operations/engine_patches.py",
    "engine_host/operations/fit.py",
    "engine_host/daemon/host.py",
    "engine_host/operations/hub.py",
    "engine_host/operations/installations.py",
    "engine_host/operations/patch_plan.py",
    "engine_host/operations/patches.py",
    "engine_host/operations/presets/verify.py",
    "engine_host/operations/presets/fit.py",
    "engine_host/operations/presets/catalog.py",
    "engine_host/operations/presets/launch.py",
    "engine_host/operations/presets/verdicts.py",
    "engine_host/operations/presets/weights.py",
    "engine_host/daemon/public_endpoint.py",
    "engine_host/operations/servers.py",
    "engine_host/daemon/main.py",
    "engine_host/operations/setting_checks.py",
    "engine_host/operations/bisect_check.py",
}
COMMAND_LINE = re.compile(
    r"engine_host/(cli(_\w+)?|ask|control_client|event_text|host_start|job_watch|__main__)\.py"
)
COMMAND_LINE_MAY = {
    "engine_host",
    "engine_host.core.errors",
    "engine_host.core.atomic_file",  # what it writes is whole or as it was
    "engine_host.core.paths",
    "engine_host.core.log_buffer",  # how bad a line looks, in files as in the host
    "engine_host.core.did_you_mean",  # what was mistyped is guessed alike everywhere
    "engine_host.core.sizes",  # a size reads alike in every text
    "engine_host.core.settings",  # `sndr settings` works without a host
    "engine_host.operations.setting_checks",  # and refuses there what a host would
    "engine_host.daemon.main",  # `sndr serve` is the host; imported when it is called
}

# (importing file, imported module): why it may.
BETWEEN_SERVICES = {
    ("engine_host/launch/*", "engine_host.library.gguf"): "a plan is made from what the file's header says",
    ("engine_host/launch/*", "engine_host.library.checkpoint"): "or its config",
    ("engine_host/launch/*", "engine_host.library.index"): "and from the list of models",
    ("engine_host/launch/*", "engine_host.fit.*"): "what it needs is computed in one place",
    ("engine_host/launch/*", "engine_host.fit"): "the same, by module",
    ("engine_host/fit/*", "engine_host.library.gguf"): "a shape is read from what the file's header says",
    ("engine_host/fit/*", "engine_host.library.gguf_format"): "weights are counted by its tensors",
    ("engine_host/fit/*", "engine_host.library.checkpoint"): "the same for a checkpoint",
    ("engine_host/fit/*", "engine_host.library.safetensors_format"): "and its tensors",
    (
        "engine_host/launch/*",
        "engine_host.engines.llamacpp.command",
    ): "a plan holds the adapter's command line",
    ("engine_host/launch/*", "engine_host.engines.llamacpp.servers"): "and names the server it is for",
    ("engine_host/launch/*", "engine_host.engines.vllm.command"): "the same for vLLM",
    ("engine_host/launch/*", "engine_host.engines.vllm.pins"): "and checks what its version needs",
    (
        "engine_host/deploy/*",
        "engine_host.engines.vllm.command",
    ): "arguments are the adapter's, wherever they run",
    ("engine_host/deploy/*", "engine_host.engines.vllm.pins"): "in the image of that version",
    ("engine_host/deploy/*", "engine_host.engines.llamacpp.command"): "the same for llama.cpp",
    ("engine_host/deploy/*", "engine_host.engines.llamacpp.servers"): "and what the server there takes",
    ("engine_host/bench/*", "engine_host.gateway"): "it measures the gateway itself, without a host",
    ("engine_host/bench/*", "engine_host.gateway.*"): "it measures the gateway itself, without a host",
    ("engine_host/bench/*", "engine_host.engines.llamacpp.command"): "in front of a bare server",
    ("engine_host/bench/overlay_cost.py", "engine_host.engines.vllm.installations"): "it measures in vLLM",
    ("engine_host/bench/overlay_cost.py", "engine_host.overlay.*"): "the overlay itself, without a host",
    ("engine_host/bench/*", "engine_host.engines.llamacpp.servers"): "that is found",
    ("engine_host/bench/*", "engine_host.engines.llamacpp.temporary_server"): "and started as every other",
}
WINDOW_IMPORTS_HOST = {
    (
        "sndr_gui/__main__.py",
        "engine_host.cli",
    ): "a frozen build is one program: --engine-host runs the host",
}

# Modules of the window that are not view-models.
CLIENT = {"sndr_gui/host/client.py", "sndr_gui/host/local_http.py"}
SHELL = {
    "sndr_gui/__main__.py",
    "sndr_gui/app.py",
    "sndr_gui/views/window/pages.py",
    "sndr_gui/kit/theme.py",
    "sndr_gui/views/window/main_window.py",
}
MAY_IMPORT_HTTPX = CLIENT
MAY_IMPORT_PYQTGRAPH = {"sndr_gui/views/graphs/plots.py"}
MAY_NAME_COLOURS = {"sndr_gui/kit/theme.py"}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager2", "legacy", "misc", "common"}
LONGEST_FILE = 500


@cache
def imports(name: str) -> frozenset[str]:
    """Every module that a file imports, also inside functions; `from a import b` counts as a.b too."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {
                f"{node.module}.{alias.name}" for alias in node.names if is_module(node.module, alias.name)
            }
    return frozenset(found)


def is_module(package: str, name: str) -> bool:
    """Whether a name imported from a package of ours is a module of it."""
    folder = ROOT / package.replace(".", "/")
    return (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()


def within(module: str, package: str) -> bool:
    """Whether a module is that package or inside it."""
    return module == package or module.startswith(f"{package}.")


def listed(exceptions: dict[tuple[str, str], str], name: str, module: str) -> tuple[str, str] | None:
    """The entry that allows this import."""
    for file, target in exceptions:
        file_fits = name == file or (file.endswith("/*") and name.startswith(file[:-1]))
        target_fits = module == target or (target.endswith(".*") and module.startswith(target[:-1]))
        if file_fits and target_fits:
            return file, target
    return None


def service_of(name: str) -> str | None:
    """The service that a file or a module belongs to."""
    parts = name.removesuffix(".py").replace("/", ".").split(".")
    return parts[1] if len(parts) > 1 and parts[1] in SERVICES else None


def of_package(package: str) -> Iterator[str]:
    """The files below a folder."""
    return (name for name in NAMES if name.startswith(f"{package}/"))


def test_window_knows_the_host_by_its_protocol_alone() -> None:
    used = set()
    for name in of_package("sndr_gui"):
        for module in imports(name):
            if (
                within(module, "engine_host")
                and not within(module, "engine_host.protocol")
                and module != "engine_host"
            ):
                entry = listed(WINDOW_IMPORTS_HOST, name, module)
                assert entry, f"{name} imports {module}"
                used.add(entry)
            assert module != "engine_host" or name in SHELL, f"{name} imports engine_host"
    assert used == set(WINDOW_IMPORTS_HOST), "an exception is not needed any more"


def test_host_imports_neither_the_window_nor_qt() -> None:
    for name in of_package("engine_host"):
        for module in imports(name):
            assert module.split(".")[0] not in {"sndr_gui", "PySide6", "shiboken6", "qasync", "pyqtgraph"}, (
                name
            )


def test_protocol_imports_pydantic_alone() -> None:
    for name in of_package("engine_host/protocol"):
        for module in imports(name):
            top = module.split(".")[0]
            own = within(module, "engine_host.protocol") or module == "engine_host"
            assert own or top == "pydantic" or top in sys.stdlib_module_names, f"{name} imports {module}"


def test_services_do_not_import_each_other() -> None:
    used = set()
    for name in of_package("engine_host"):
        own = service_of(name)
        if own is None:
            continue
        for module in imports(name):
            other = service_of(module) if within(module, "engine_host") else None
            if other is not None and other != own:
                entry = listed(BETWEEN_SERVICES, name, module)
                assert entry, f"{name} imports {module}"
                used.add(entry)
            assert not within(module, "engine_host.api"), f"{name} imports {module}"
            assert f"{module.replace('.', '/')}.py" not in WIRING, f"{name} imports {module}"
    assert used == set(BETWEEN_SERVICES), f"not needed any more: {set(BETWEEN_SERVICES) - used}"


def test_host_core_imports_no_service() -> None:
    for name in of_package("engine_host"):
        core = name.count("/") == 1 and name not in WIRING
        for module in imports(name):
            if core and within(module, "engine_host"):
                assert service_of(module) is None, f"{name} imports {module}"


def test_command_line_talks_to_the_host_through_its_api() -> None:
    for name in filter(COMMAND_LINE.fullmatch, NAMES):
        for module in imports(name):
            if within(module, "engine_host") and not within(module, "engine_host.protocol"):
                own = COMMAND_LINE.fullmatch(f"{module.replace('.', '/')}.py")
                assert own or module in COMMAND_LINE_MAY, f"{name} imports {module}"


def test_views_reach_the_host_through_view_models() -> None:
    for name in of_package("sndr_gui/views"):
        for module in imports(name):
            assert module not in {
                "sndr_gui.host.client",
                "sndr_gui.host.local_http",
                "sndr_gui.host.process",
            }, f"{name} imports {module}"


def test_view_models_know_no_widgets_and_no_views() -> None:
    for name in of_package("sndr_gui"):
        if name.startswith("sndr_gui/views/") or name in SHELL:
            continue
        for module in imports(name):
            assert not within(module, "PySide6.QtWidgets"), f"{name} imports {module}"
            assert not within(module, "sndr_gui.views"), f"{name} imports {module}"
            assert module not in {"sndr_gui.views.window.main_window", "sndr_gui.app"}, (
                f"{name} imports {module}"
            )


def test_client_knows_no_qt() -> None:
    for name in CLIENT:
        if name in NAMES:
            assert not any(within(module, "PySide6") for module in imports(name)), name


@pytest.mark.parametrize(
    ("module", "allowed"),
    [("httpx", MAY_IMPORT_HTTPX), ("pyqtgraph", MAY_IMPORT_PYQTGRAPH)],
    ids=["httpx", "pyqtgraph"],
)
def test_window_keeps_a_library_behind_one_door(module: str, allowed: set[str]) -> None:
    users = {name for name in of_package("sndr_gui") if any(within(found, module) for found in imports(name))}
    assert users <= allowed


def test_only_the_theme_names_colours() -> None:
    colour = re.compile(r"""["']#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3})["']""")
    for name in of_package("sndr_gui"):
        if name not in MAY_NAME_COLOURS:
            found = colour.search((ROOT / name).read_text(encoding="utf-8"))
            assert found is None, f"{name} names the colour {found and found.group()}"


@pytest.mark.parametrize("name", NAMES)
def test_file_is_short_and_named_for_what_it_does(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST_FILE
    assert Path(name).stem not in FORBIDDEN_NAMES
