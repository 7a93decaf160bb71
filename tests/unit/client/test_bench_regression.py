"""A run held to its baseline: what is slower for certain fails, and what was not judged passes nothing."""

from typing import Any

import pytest

from engine_host.bench.lab.comparing import compared
from engine_host.bench.lab.figures import part_result
from engine_host.bench.lab.workloads import Part
from engine_host.client.bench_reports.regression import Regression, baseline_of, judged, regression_lines
from engine_host.protocol.bench.lab import LabEngine, LabPage, LabRun
from tests.unit.bench.conditions.test_pins import a_run
from tests.unit.bench.lab.test_figures import sample

PART = Part("essay", "Write.", max_tokens=20, warm=1, measured=8)


def measured(day: int, pace: float, rounds: int = 8, **changed: Any) -> LabRun:
    """Return a run whose tokens come at this pace, with a little noise."""
    samples = []
    for number in range(rounds):
        step = pace * (1 + 0.002 * (number % 4))
        arrivals = tuple(0.5 * step * 10 + step * n for n in range(11))
        samples.append(
            sample(number, arrivals=arrivals, first=arrivals[0], last=arrivals[-1], total=arrivals[-1])
        )
    parts = (part_result(PART, samples),)
    return a_run(day, parts=parts, samples=tuple(samples), **changed)


def check(pace: float, allowed: float = 3.0, rounds: int = 8, **changed: Any) -> Regression:
    return judged(compared(measured(1, 0.1), measured(2, pace, rounds, **changed)), allowed)


@pytest.mark.parametrize(
    ("pace", "allowed", "passed"),
    [(0.1, 3.0, True), (0.09, 3.0, True), (0.102, 3.0, True), (0.11, 3.0, False), (0.11, 15.0, True)],
)
def test_slower_for_certain_by_more_than_is_allowed_fails(pace: float, allowed: float, passed: bool) -> None:
    found = check(pace, allowed)
    assert found.passed is passed
    assert bool(found.slower) is not passed
    assert (
        "SLOWER: essay, decode, one stream: slower by" in "\n".join(regression_lines(found))
    ) is not passed


def test_what_was_not_judged_passes_nothing() -> None:
    few = check(0.1, rounds=1)
    assert not few.passed
    assert "NOT JUDGED: no figure stands in both" in regression_lines(few)[-2]
    assert "sndr bench run quick --rounds" in regression_lines(few)[-1]
    partial = check(0.1, complete=False, ended_by="cancelled")
    assert (partial.passed, partial.refused) == (False, "the run is partial: cancelled")
    other = check(0.1, machine=a_run(1).machine.model_copy(update={"gpus": ("L4",)}))
    assert not other.passed
    assert "other machines" in other.refused


def test_noise_that_hides_every_figure_passes_nothing_and_says_how_many_rounds() -> None:
    hidden = check(0.1, allowed=0.01)
    assert (hidden.held, hidden.slower, hidden.passed) == (0, (), False)
    *_, said, action = regression_lines(hidden)
    assert said.startswith("NOT JUDGED: the noise hides")
    assert "--rounds 16" in action
    assert check(0.1).held == check(0.1).judged > 0


def test_a_baseline_is_that_of_the_workload_and_model() -> None:
    now = a_run(9)
    marked: dict[str, Any] = {"baseline": True}
    page = LabPage(runs=(now, a_run(3, asked="other", **marked), a_run(2, model="n", **marked), a_run(1)))
    assert baseline_of(page, now) is None
    held = a_run(1, **marked)
    assert baseline_of(LabPage(runs=(*page.runs, held)), now) == held


def test_two_servers_with_one_name_of_a_model_are_not_held_to_each_other() -> None:
    one, two = (LabEngine(address=f"http://{name}/v1", model="m") for name in ("one", "two"))
    held = a_run(1, engine=one, baseline=True)
    page = LabPage(runs=(held, a_run(2, baseline=True)))
    assert baseline_of(page, a_run(3, engine=one)) == held
    assert baseline_of(page, a_run(3, engine=two)) is None
    other_kind = a_run(3).engine.model_copy(update={"engine": "llama.cpp"})
    assert baseline_of(page, a_run(3, engine=other_kind)) is None
