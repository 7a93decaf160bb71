"""Which Python an environment of vLLM gets. uv is real; what it may find is narrowed by its own variables."""

import asyncio
import sys
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.vllm import install as vllm_install
from engine_host.engines.vllm.install import InstallRequest, install
from engine_host.engines.vllm.pins import PINS
from engine_host.protocol.errors import Fix, Reason


def _request(folder: Path) -> InstallRequest:
    return InstallRequest(PINS[-1], folder / "home", folder / "install.log", lambda _packages: None)


def test_without_the_locks_python_nothing_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No such Python exists, so uv's search ends as it does on a machine without the right one.
    monkeypatch.setattr(vllm_install, "PYTHON", "3.99")
    monkeypatch.setattr(vllm_install, "_check_disk", lambda *_: None)
    request = _request(tmp_path)
    request.home.mkdir()
    kept = request.home / "installation.json"
    kept.write_text("{}")
    with pytest.raises(HostError) as raised:
        asyncio.run(install(request, lambda _step: None))
    problem = raised.value.problem
    assert problem.reason is Reason.INSTALL_FAILED
    assert "needs Python 3.99" in problem.message
    assert isinstance(problem.fix, Fix)
    assert (problem.fix.command or "").endswith("python install 3.99")
    assert kept.read_text() == "{}", "a refused reinstall must not cost the environment that is there"


def test_a_frozen_program_finds_one_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_install, "PYTHON", f"{sys.version_info.major}.{sys.version_info.minor}")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setenv("PATH", str(Path(sys.base_prefix) / "bin"))
    found = asyncio.run(vllm_install._interpreter(_request(tmp_path)))
    assert Path(found).is_file()
