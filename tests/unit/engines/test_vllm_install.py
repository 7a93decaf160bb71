"""Installs with the real uv into real environments, of tiny wheels built here into a folder of links.

What uv meets (a page that hangs, a wrong hash, no network) is real as well; FAKE is what is in the wheels.
"""

import subprocess
from pathlib import Path

import pytest

from engine_host.engines.environment_folder import read_record
from engine_host.engines.vllm_install import STEPS, install
from engine_host.engines.vllm_installations import tree_hash
from engine_host.protocol.jobs import JobStep
from tests.unit.asynchronous import run
from tests.unit.engines.tiny_vllm import PIN, TinyVllm


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyVllm:
    """The tiny vLLM, for uv in this process."""
    return TinyVllm(tmp_path).use(monkeypatch)


def test_steps_and_record(tiny: TinyVllm) -> None:
    told: list[JobStep] = []
    request = tiny.request()
    record = run(install(request, told.append))
    assert list(dict.fromkeys(step.name for step in told)) == list(STEPS)
    assert {step.of for step in told} == {len(STEPS)}
    assert [step.number for step in told] == sorted(step.number for step in told)
    fetching = [step for step in told if step.name == "Fetch vLLM"]
    assert fetching[0].detail.startswith("2 packages, ")
    assert record == read_record(request.home)
    assert record["said"] == "9.9.0 cpu"
    assert record["repaired"] == ["metadata"]
    packages = next(request.home.glob("lib/python3*/site-packages"))
    assert record["tree_hash"] == tree_hash(packages / "vllm")
    assert (packages / "sndr_overlay.pth").is_file()
    assert record["size"] > 0
    assert "uv pip install" in request.log.read_text()
    assert [path.name for path in request.home.parent.iterdir()] == [PIN.id], (
        "no lock and nothing aside stays"
    )
    python = str(request.home / "bin" / "python")
    said = subprocess.run([python, "-c", "import small, torch, vllm"], capture_output=True, check=False)
    assert said.returncode == 0, said.stderr
