"""A build has a Python that can make environments: our own, or where we have none, one of this machine."""

import sys

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.build import interpreter
from engine_host.protocol.errors import Fix, Reason


def test_a_program_with_a_python_uses_it() -> None:
    assert interpreter.build_python() == sys.executable


def frozen_on(machine: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine has Pythons by name, True for those that fit."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr("shutil.which", lambda name: f"/here/{name}" if name in machine else None)
    monkeypatch.setattr(
        interpreter, "ask_tool", lambda path, *_: (0 if machine[path.rpartition("/")[2]] else 1, "")
    )


def test_a_frozen_program_takes_the_first_of_the_machine_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen_on({"python3": False, "python3.12": True, "python3.11": True}, monkeypatch)
    assert interpreter.build_python() == "/here/python3.12"


@pytest.mark.parametrize("machine", [{}, {"python3": False}])
def test_without_one_the_build_is_refused(machine: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    frozen_on(machine, monkeypatch)
    with pytest.raises(HostError) as raised:
        interpreter.build_python()
    problem = raised.value.problem
    assert problem.reason is Reason.COMPILER_MISSING
    assert isinstance(problem.fix, Fix)
    assert problem.fix.command == "apt-get install python3-venv"
