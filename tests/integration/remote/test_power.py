"""Power limits with a FAKE nvidia-smi that keeps a limit in a file."""

import os
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.operations.remote.power import _planned
from engine_host.protocol.errors import Reason
from engine_host.protocol.remote.services import SetPower
from engine_host.remote.install.machine import Machine
from engine_host.remote.services.answers import Power, PowerSet
from engine_host.remote.services.machine import ThisMachine, ask
from tests.unit.asynchronous import run

UUID = "GPU-11111111-2222-3333-4444-555555555555"
NVIDIA_SMI = """#!/bin/sh
# FAKE nvidia-smi: a GPU whose limit is a file, and one that tells nothing.
limit=$(cat "{limit}")
for word in "$@"; do
    case $word in
    --power-limit=*)
        {set}
        exit 0 ;;
    esac
done
echo "0, {uuid}, NVIDIA RTX A, B \033[31mGeneration, $limit, 350.00, 100.00, 400.00, 61.20"
echo "1, GPU-none, Old card, [N/A], [N/A], [N/A], [N/A], [N/A]"
"""
KEEPS = 'echo "${word#*=}.00" >"{limit}"'


@pytest.fixture
def limit(tmp_path: Path) -> Path:
    """The file of the limit."""
    path = tmp_path / "limit"
    path.write_text("300.00", encoding="utf-8")
    return path


def machine(tmp_path: Path, limit: Path, setting: str = KEEPS) -> Machine:
    """This machine with a FAKE nvidia-smi."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir(exist_ok=True)
    program = bin_folder / "nvidia-smi"
    text = NVIDIA_SMI.replace("{set}", setting).replace("{limit}", str(limit)).replace("{uuid}", UUID)
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    return Machine("local", ThisMachine({**os.environ, "PATH": path}))


def test_limits_are_read_as_the_driver_tells_them(tmp_path: Path, limit: Path) -> None:
    found = run(ask(machine(tmp_path, limit), "power", Power))
    first, second = found.gpus
    assert (first.limit, first.default, first.minimum, first.maximum) == (300.0, 350.0, 100.0, 400.0)
    assert first.name == "NVIDIA RTX A,B \x1b[31mGeneration"
    assert (second.limit, second.draw) == (None, None), "not measured is not 0"


def test_a_machine_without_the_program_says_so(tmp_path: Path) -> None:
    found = run(ask(Machine("local", ThisMachine({"PATH": "/bin"})), "power", Power))
    assert found.gpus == ()
    assert "nvidia-smi" in found.why


@pytest.mark.skipif(os.geteuid() != 0, reason="limits are set by root")
def test_a_limit_is_set_and_read_back(tmp_path: Path, limit: Path) -> None:
    asked = SetPower(gpu="0", watts=250)
    plan = run(_planned(machine(tmp_path, limit), asked))
    assert [one.text for one in plan.changes] == ["-300 W\n+250 W"]
    done = run(ask(machine(tmp_path, limit), "set_power", PowerSet, uuid=UUID, watts=250))
    assert done.gpu.limit == 250.0
    assert run(_planned(machine(tmp_path, limit), asked)).changes == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="limits are set by root")
def test_a_limit_that_did_not_take_is_no_success(tmp_path: Path, limit: Path) -> None:
    with pytest.raises(HostError) as caught:
        run(ask(machine(tmp_path, limit, ":"), "set_power", PowerSet, uuid=UUID, watts=250))
    assert caught.value.reason is Reason.VERIFICATION_FAILED
    refuses = 'echo "Provided power limit is not valid" >&2; exit 3'
    with pytest.raises(HostError) as caught:
        run(ask(machine(tmp_path, limit, refuses), "set_power", PowerSet, uuid=UUID, watts=250))
    assert caught.value.reason is Reason.NOT_WRITABLE
    assert caught.value.problem.cause == "Provided power limit is not valid"


@pytest.mark.parametrize(
    ("gpu", "watts", "says"),
    [
        ("0", 99, "outside of what"),
        ("0", 401, "100 to 400 W"),
        ("7", 200, "no GPU 7"),
        ("1", 200, "tells no limit"),
        ("GPU-unknown-1", 200, "no GPU GPU-unknown-1"),
    ],
)
def test_what_cannot_be_set_is_said_in_the_plan(
    tmp_path: Path, limit: Path, gpu: str, watts: int, says: str
) -> None:
    plan = run(_planned(machine(tmp_path, limit), SetPower(gpu=gpu, watts=watts)))
    assert any(says in one.message for one in plan.findings), plan.findings


def test_the_default_is_what_a_reset_sets(tmp_path: Path, limit: Path) -> None:
    plan = run(_planned(machine(tmp_path, limit), SetPower(gpu=UUID)))
    assert plan.watts == 350
