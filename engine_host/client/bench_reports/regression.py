"""Is a run slower than its baseline: for a person, and for CI by an exit code."""

import shlex

from pydantic import Field

from engine_host.client.bench_reports.figures import name_of
from engine_host.protocol.base import Wire
from engine_host.protocol.bench.comparison import Caution, ComparedFigure, LabComparison, Verdict
from engine_host.protocol.bench.lab import LabPage, LabRun, RunBench, Standing
from engine_host.protocol.language import percent

ALLOWED = 3.0
"""Per cent by which a run may be slower for certain, where nobody names another number."""
_USUAL, _MOST = 14, 1000
_OTHER = {Caution.OTHER_MODEL, Caution.OTHER_MACHINE}


class Regression(Wire):
    """A run against its baseline (A): what is slower for certain by more than is allowed."""

    comparison: LabComparison
    allowed: float = Field(description="per cent")
    slower: tuple[ComparedFigure, ...]
    judged: int = Field(description="figures that stand in both and have an interval")
    held: int = Field(0, description="those that are for certain not slower by more than is allowed")
    refused: str = Field("", description="why nothing can be held to this baseline; empty where it can")

    @property
    def passed(self) -> bool:
        """True where something was told, and nothing is slower: noise alone passes nothing."""
        return not self.refused and not self.slower and self.held > 0


def baseline_of(page: LabPage, run: LabRun) -> LabRun | None:
    """Return the run to which this one is held; None without one."""
    return next(
        (one for one in page.runs if one.baseline and one.id != run.id and one.subject == run.subject),
        None,
    )


def judged(found: LabComparison, allowed: float = ALLOWED) -> Regression:
    """Judge a comparison with a baseline as A: its whole interval has to be beyond what is allowed."""
    told = [one for one in found.figures if one.verdict is not None and one.low is not None]
    slower = [
        one
        for one in told
        if one.verdict is Verdict.SLOWER and one.high is not None and one.high < -allowed / 100
    ]
    return Regression(
        comparison=found,
        allowed=allowed,
        slower=tuple(slower),
        judged=len(told),
        held=sum(one.low is not None and one.low >= -allowed / 100 for one in told),
        refused=_refused(found),
    )


def regression_lines(found: Regression) -> list[str]:
    """Return the judgement for a terminal."""
    a, b = found.comparison.a, found.comparison.b
    lines = [f"{b.id} against the baseline {a.id}"]
    lines += [f"Mind: {doubt.text}" for doubt in found.comparison.doubts]
    lines += [
        f"differs: {one.name}: {one.a or '(none)'} / {one.b or '(none)'}"
        for one in found.comparison.differing
    ]
    if found.refused:
        return [*lines, f"NOT JUDGED: {found.refused}"]
    if not found.judged:
        return [*lines, "NOT JUDGED: no figure stands in both with enough rounds.", _more_rounds(found)]
    for one in found.slower:
        lines.append(f"SLOWER: {one.part}, {name_of(one.quantity)}: {one.words}")
    by = f" by more than {percent(f'{found.allowed:g}')}" if found.allowed else ""
    untold = found.judged - found.held - len(found.slower)
    if untold == found.judged:
        return [
            *lines,
            f"NOT JUDGED: the noise hides whether any of {found.judged} figures is slower{by}.",
            _more_rounds(found),
        ]
    lines.append(
        f"{len(found.slower)} of {found.judged} figures {_is(len(found.slower))} slower for certain{by},"
        f" {found.held} {_is(found.held)} for certain not"
        + (f"; of {untold} nothing can be told." if untold else ".")
    )
    return [*lines, _more_rounds(found)] if untold else lines


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _more_rounds(found: Regression) -> str:
    """Return the next action where the noise hides a figure, or where there are too few rounds."""
    b = found.comparison.b
    told = [one for one in found.comparison.figures if one.rounds]
    # Twice as many where nobody can say how many are likely to do.
    rounds = max((one.rounds + (one.more_rounds or one.rounds) for one in told), default=_USUAL)
    command = RunBench(workload=b.workload, rounds=min(rounds, _MOST)).command
    if not b.engine.id:
        command = f"{command} {shlex.join(['--url', b.engine.address, '--model', b.engine.model])}"
    return f"Measure the baseline and then the run with more rounds, on a quiet machine: {command}"


def _refused(found: LabComparison) -> str:
    for doubt in found.doubts:
        if doubt.caution in _OTHER:
            return doubt.text
    for name, run in (("the baseline", found.a), ("the run", found.b)):
        if run.measuring:
            return f"{name} is still being measured"
        if not run.complete:
            return f"{name} is partial: {run.ended_by or 'it did not end'}"
    struck = next((one for one in found.figures if one.b.standing is Standing.STRUCK), None)
    return f"its figures are struck: {struck.b.why}" if struck is not None else ""
