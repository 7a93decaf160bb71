"""`sndr bench kernels` without a GPU: which Python is taken, and what is said."""

from pathlib import Path

import pytest

from engine_host.cli import main
from engine_host.cli.bench.kernels import _beside, _installed_python
from engine_host.cli.output import Exit


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNDR_CACHE", str(tmp_path))
    return tmp_path


def test_without_vllm_for_cuda_it_says_how_to_get_it(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "kernels"]) == Exit.NOT_FOUND
    assert "sndr engine install vllm --build cuda" in capsys.readouterr().err


def test_the_newest_environment_is_taken_with_what_it_has(cache: Path) -> None:
    for name in ("0.26.0-cuda", "0.32.0-cuda", "0.9.1-cuda", "0.32.0-cpu"):
        python = cache / "vllm-environments" / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
    python = _installed_python()
    assert python == cache / "vllm-environments" / "0.32.0-cuda" / "bin" / "python"
    assert _beside(python, None) == []
    site = python.parents[1] / "lib" / "python3.11" / "site-packages"
    (site / "vllm" / "v1" / "attention" / "ops" / "turboquant_soa").mkdir(parents=True)
    assert _beside(python, None) == ["--vllm", str(site)]
    flash = site / "vllm" / "vllm_flash_attn" / "_vllm_fa3_C.abi3.so"
    flash.parent.mkdir()
    flash.touch()
    assert _beside(python, None) == ["--vllm", str(site), "--flash", str(flash)]
