"""`sndr bench` on a machine without a GPU, with the real Python of the environment."""

import json

import pytest

from engine_host.cli import main
from engine_host.cli.output import Exit
from tests.kernel_interpreter import interpreter_environment
from tests.vllm_environment import vllm_python


def test_a_machine_without_a_gpu_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", interpreter_environment()["PYTHONPATH"].rpartition(":")[2])
    assert main(["bench", "kernels", "--quick", "--json", "--python", str(vllm_python())]) == Exit.ENGINE
    problem = json.loads(capsys.readouterr().out)["error"]
    assert problem["cause"] == "There is no CUDA GPU that this Python's torch can use."
