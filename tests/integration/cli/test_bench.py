"""`sndr bench` on a machine without a GPU, with the real Python of the environment."""

import json

import pytest

from engine_host.cli import main
from engine_host.cli.output import Exit
from tests.integration.host.conftest import home_left_empty
from tests.kernel_interpreter import interpreter_environment
from tests.vllm_environment import vllm_python


def test_a_machine_without_a_gpu_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", interpreter_environment()["PYTHONPATH"].rpartition(":")[2])
    assert main(["bench", "kernels", "--quick", "--json", "--python", str(vllm_python())]) == Exit.ENGINE
    problem = json.loads(capsys.readouterr().out)["error"]
    assert problem["cause"] == "There is no CUDA GPU that this Python's torch can use."


@pytest.mark.llamacpp
def test_the_endpoint_is_measured_beside_its_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with home_left_empty("sndr-e-") as home:
        monkeypatch.setenv("SNDR_HOME", str(home))
        few = ["--streams", "2", "--streams", "16", "--tokens", "8", "--repeats", "1", "--pairs", "2"]
        done = main(["bench", "endpoint", "sndr-demo", "--json", *few])
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    # The figures are a matter of the machine; that two streams of eight tokens were counted is not.
    assert done == (Exit.OK if report["reached"] else Exit.FAILED)
    assert [(row["streams"], row["tokens"]) for row in report["rows"]] == [(2, 8), (16, 8)]
    assert all(row["bare"]["rate"] > 0 and row["endpoint"]["rate"] > 0 for row in report["rows"])
    assert report["ttft"]["pairs"] == 2
    assert report["ttft"]["bare"] > 0


@pytest.mark.llamacpp
def test_a_route_is_measured_beside_another_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with home_left_empty("sndr-e-") as home:
        monkeypatch.setenv("SNDR_HOME", str(home))
        assert main(["run", "--demo", "--detach", "--json"]) == Exit.OK
        capsys.readouterr()
        assert main(["status", "--json"]) == Exit.OK
        url = json.loads(capsys.readouterr().out)["host"]["endpoint"]["local_url"]
        assert main(["routes", "set", "coder", "sndr-demo"]) == Exit.OK
        few = ["--streams", "2", "--tokens", "8", "--repeats", "1", "--pairs", "2"]
        other = ["--against", url, "--against-model", "sndr-demo"]
        done = main(["bench", "endpoint", "coder", "--json", *few, *other])
        report = json.loads(capsys.readouterr().out.splitlines()[-1])
        # The engine of that name, although it is the id of a model, too: nothing else is started.
        main(["bench", "endpoint", "sndr-demo", "--json", *few])
        asked = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert main(["status", "--all", "--json"]) == Exit.OK
        engines = json.loads(capsys.readouterr().out)["engines"]
        assert main(["bench", "endpoint", "--against", url]) == Exit.USAGE
        assert main(["bench", "endpoint", "coder", "--against", "ftp://there"]) == Exit.USAGE
        nobody = main(["bench", "endpoint", "nobody", "--json", *few, "--against", url])
        assert nobody == Exit.ENGINE
        assert main(["quit"]) == Exit.OK
    assert done == (Exit.OK if report["reached"] else Exit.FAILED)
    assert report["model"] == "coder"
    assert asked["model"] == "sndr-demo"
    assert [engine["name"] for engine in engines] == ["sndr-demo"]
    assert report["rows"][0]["bare"]["rate"] > 0
