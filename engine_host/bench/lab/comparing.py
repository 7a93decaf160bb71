"""Two runs side by side: which figures differ, what else does, and what speaks against comparing them."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from engine_host.bench.comparison import Comparison, compare, compare_apart
from engine_host.bench.lab.figures import speeds
from engine_host.core.errors import HostError
from engine_host.protocol.bench.comparison import (
    Caution,
    ComparedFigure,
    Differing,
    Doubt,
    LabComparison,
)
from engine_host.protocol.bench.lab import Figure, LabEngine, LabRun, PartResult, Standing
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

MOST_ROUNDS = 1_000
"""The rounds of each side that are compared, which is the most that a run may be asked for."""
_TOKENS_APART = 0.1
"""The share by which answers may differ in length before that is said."""

_Side = tuple[LabRun, PartResult, Figure]


def compared(a: LabRun, b: LabRun) -> LabComparison:
    """Compare two runs. Raises HostError(conflict) for the same run twice, and for other workloads."""
    _refuse(a, b)
    in_turns = a.turns_with == b.id and b.turns_with == a.id
    others = {part.name: part for part in b.parts}
    shared = [(part, others[part.name]) for part in a.parts if part.name in others]
    figures = [
        _figure((a, part, first), (b, other, second), in_turns=in_turns)
        for part, other in shared
        for first in part.figures
        for second in other.figures
        if first.quantity is second.quantity
    ]
    differing = _differing(a, b)
    return LabComparison(
        a=a.model_copy(update={"samples": ()}),
        b=b.model_copy(update={"samples": ()}),
        in_turns=in_turns,
        doubts=tuple(_doubts(a, b, in_turns=in_turns)),
        differing=tuple(differing),
        figures=tuple(figures),
    )


def _refuse(a: LabRun, b: LabRun) -> None:
    if a.id == b.id:
        raise HostError(
            Reason.CONFLICT,
            tr("Both are the run {a}.", a=a.id),
            fix=Fix(text="Name two.", command="sndr bench list"),
        )
    if a.workload is not b.workload or a.workload_hash != b.workload_hash:
        asked = (
            tr(
                "{a} asked {workload}, {b} asked {workload2}.",
                a=a.id,
                workload=a.workload,
                b=b.id,
                workload2=b.workload,
            )
            if a.workload is not b.workload
            else tr(
                "Both are named {workload}, but asked with other words, lengths or sampling: they "
                "are of different versions of this program.",
                workload=a.workload,
            )
        )
        raise HostError(
            Reason.CONFLICT,
            "These two runs asked different things, so their figures do not compare.",
            cause=asked,
            fix=Fix(text="Measure both with the same workload.", command=f"sndr bench run {a.workload}"),
            evidence={"a": a.workload_hash, "b": b.workload_hash},
        )


def _figure(one: _Side, other: _Side, *, in_turns: bool) -> ComparedFigure:
    (a, part, first), (b, other_part, second) = one, other
    quantity = first.quantity
    bare = ComparedFigure(part=part.name, quantity=quantity, a=first, b=second, verdict=None, words="")
    for name, figure in (("A", first), ("B", second)):
        if figure.standing is not Standing.PUBLISHED:
            state = tr("struck") if figure.standing is Standing.STRUCK else tr("n/a")
            said = tr("not judged: {state} in {name}: {why}", state=state, name=name, why=figure.why)
            return bare.model_copy(update={"words": said})
    before = _first_rounds(speeds(quantity, part, a.samples))
    after = _first_rounds(speeds(quantity, other_part, b.samples))
    if in_turns:
        both = [turn for turn in before if turn in after]
        found = compare([before[turn] for turn in both], [after[turn] for turn in both])
    else:
        found = compare_apart(list(before.values()), list(after.values()))
    more = {"rounds": found.rounds, "more_rounds": found.more_rounds}
    return bare.model_copy(update={**verdict_of(found), **more})


def _first_rounds(found: dict[int, float]) -> dict[int, float]:
    """Return the rounds that are judged: no more than can be asked, as a file of somebody else may hold."""
    return dict(islice(found.items(), MOST_ROUNDS))


def verdict_of(found: Comparison) -> dict[str, Any]:
    """Return a comparison as the fields of its wire types."""
    return {
        "verdict": found.verdict,
        "words": found.sentence,
        "change": found.change,
        "low": found.low,
        "high": found.high,
    }


def _doubts(a: LabRun, b: LabRun, *, in_turns: bool) -> list[Doubt]:
    found: list[tuple[Caution, str]] = []
    if weights_of(a.engine) != weights_of(b.engine):
        found.append((Caution.OTHER_MODEL, f"other models: {a.engine.model} and {b.engine.model}"))
    if (a.machine.gpus, a.machine.processor) != (b.machine.gpus, b.machine.processor):
        found.append((Caution.OTHER_MACHINE, f"other machines: {_hardware(a)} and {_hardware(b)}"))
    if a.machine.driver != b.machine.driver:
        drivers = f"{a.machine.driver or 'unknown'} and {b.machine.driver or 'unknown'}"
        found.append((Caution.OTHER_DRIVER, f"other GPU drivers: {drivers}"))
    for name, run in (("A", a), ("B", b)):
        if run.measuring:
            found.append((Caution.PARTIAL, f"{name} is still being measured"))
        elif not run.complete:
            found.append((Caution.PARTIAL, f"{name} is partial: {run.ended_by or 'it did not end'}"))
        if not run.engine.id:
            text = tr("{name} is known by its address alone: its settings may differ in anything", name=name)
            found.append((Caution.PLAN_UNKNOWN, text))
    for part in a.parts:
        lengths = [_tokens(run, part.name) for run in (a, b)]
        if all(lengths) and abs(lengths[0] - lengths[1]) > _TOKENS_APART * max(lengths):
            text = tr(
                "{part}: answers of {lengths:.0f} and {lengths2:.0f} tokens on average, so end "
                "to end is of different work",
                part=part.name,
                lengths=lengths[0],
                lengths2=lengths[1],
            )
            found.append((Caution.OTHER_TOKENS, text))
    if not in_turns:
        text = tr(
            "measured one after the other: what changed on the machine in between counts as a difference"
        )
        found.append((Caution.ONE_AFTER_THE_OTHER, text))
    return [Doubt(caution=caution, text=text) for caution, text in found]


def weights_of(engine: LabEngine) -> str:
    """Return what the weights are called: the end of their path, which two machines may have elsewhere."""
    # Servers name a model by its path too, where nobody gave it another name.
    path = engine.model_path or (engine.model if engine.model.startswith(("/", "~")) else "")
    return path.rstrip("/").rpartition("/")[2] or engine.model


def _tokens(run: LabRun, part: str) -> float:
    """Return the mean length of the measured answers; 0 where a server does not count."""
    counts = [one.tokens or 0 for one in run.samples if one.part == part and not one.warm and not one.error]
    return sum(counts) / len(counts) if counts and all(counts) else 0.0


def _hardware(run: LabRun) -> str:
    return ", ".join([*run.machine.gpus, run.machine.processor or "an unknown processor"])


def _differing(a: LabRun, b: LabRun) -> Sequence[Differing]:
    one, other = a.engine, b.engine
    pairs = [
        ("model", one.model_path or one.model, other.model_path or other.model),
        ("engine", f"{one.engine} {one.version}".strip(), f"{other.engine} {other.version}".strip()),
        ("GPUs", ", ".join(a.machine.gpus), ", ".join(b.machine.gpus)),
        ("GPU driver", a.machine.driver, b.machine.driver),
        ("processor", a.machine.processor, b.machine.processor),
        ("system", a.machine.system, b.machine.system),
        ("sndr", a.machine.program, b.machine.program),
    ]
    settings = sorted(one.settings.keys() | other.settings.keys())
    # Of an address nothing is known, which is said once and not for every setting.
    if one.id and other.id:
        pairs += [(name, one.settings.get(name, ""), other.settings.get(name, "")) for name in settings]
        patches = sorted({*one.patches} ^ {*other.patches})
        pairs += [
            (f"patch {name}", "on" if name in one.patches else "", "on" if name in other.patches else "")
            for name in patches
        ]
    return [Differing(name=name, a=first, b=second) for name, first, second in pairs if first != second]
