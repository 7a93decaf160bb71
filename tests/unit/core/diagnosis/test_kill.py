"""Who sent a SIGKILL: one verdict, in the problem that every page and command shows."""

from typing import Any

import pytest

from engine_host.core.diagnosis.kill import judged, verdict_of, was_killed
from engine_host.protocol.bench.autopsy import Ending
from engine_host.protocol.errors import Reason
from tests.unit.core.diagnosis.samples import problem


@pytest.mark.parametrize(
    ("evidence", "killed"),
    [
        ({"exit_code": -9}, True),
        ({"exit_code": 137}, True),
        ({"exit_code": 0, "process": "EngineCore", "process_exit_code": -9}, True),
        ({"exit_code": -9, "line": "out of memory"}, False),
        ({"exit_code": -11}, False),
        ({"exit_code": None}, False),
        ({"exit_code": True}, False),
        ({"exit_code": "-9"}, False),
        ({}, False),
    ],
)
def test_a_kill_is_told_from_other_ends(evidence: dict[str, Any], killed: bool) -> None:
    assert was_killed(problem(**evidence)) is killed


def test_a_person_is_told_from_a_lack_of_memory() -> None:
    told = problem(exit_code=-9)
    person = judged(told, "while it served", 0, 0.4, "sndr run m")
    assert person.reason is Reason.ENGINE_KILLED
    assert person.fix is not None
    assert person.fix.command == "sndr run m"
    assert verdict_of(person) == (Ending.KILLED, person.message)
    system = judged(told, "while it started", 2, 0.99, "sndr run m")
    assert (system.reason, system.fix) == (Reason.OUT_OF_MEMORY, told.fix)
    assert "ended 2 processes" in system.message
    assert verdict_of(system) == (Ending.MAIN_MEMORY, system.message)
    assert verdict_of(told) is None
    assert verdict_of(None) is None
    below = judged(problem(process="worker 1", process_exit_code=-9), "while it served", 0, None, "x")
    assert below.message.startswith("Of its processes worker 1 ended first. Somebody ended it")


@pytest.mark.parametrize("ending", ["\x1b[2J", "crashed", 7, None, ["killed"]])
def test_a_file_that_says_anything_is_no_verdict(ending: object) -> None:
    assert verdict_of(problem(ending=ending)) is None
