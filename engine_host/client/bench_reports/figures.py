"""Figures of a run in words: a struck one is crossed out, one that is missing n/a."""

import time
from collections.abc import Callable

from engine_host.core.sizes import duration
from engine_host.protocol.bench.lab import (
    DriftKind,
    Figure,
    LabMachine,
    LabRun,
    PartResult,
    Quantity,
    Standing,
)
from engine_host.protocol.language import measured, ntr, percent, tr, unit, written

_RATES = {Quantity.DECODE, Quantity.AGGREGATE, Quantity.PREFILL}
_LISTED_PARTS = 2
_STRANGE = 1e15
_FEWEST = 5
_MOST_SHARE = 1.0

Strike = Callable[[str], str]


def name_of(quantity: Quantity) -> str:
    """Return what a person calls a quantity."""
    return {
        Quantity.DECODE: tr("decode, one stream"),
        Quantity.AGGREGATE: tr("wall clock, all streams"),
        Quantity.PREFILL: tr("prefill"),
        Quantity.TTFT: "TTFT",
        Quantity.ITL: "ITL",
        Quantity.TPOT: "TPOT",
        Quantity.TOTAL: tr("end to end"),
    }[quantity]


def drift_of(kind: DriftKind) -> str:
    """Return what a person calls something that may change over a soak."""
    return {
        DriftKind.TTFT: tr("TTFT, of its usual"),
        DriftKind.TPOT: tr("TPOT, of its usual"),
        DriftKind.MEMORY: tr("main memory"),
        DriftKind.GPU_MEMORY: tr("GPU memory"),
    }[kind]


def drift_headings() -> tuple[str, ...]:
    """Return those of the columns of `drift_rows`."""
    return "", tr("first half"), tr("second half"), tr("grew by (98 %)"), ""


def rung_headings() -> tuple[str, ...]:
    """Return those of the columns of `rung_rows`."""
    return tr("tokens"), tr("read"), tr("boundary"), tr("recall"), ""


def figure_headings() -> tuple[str, ...]:
    """Return those of the columns of `figure_row`."""
    return "", tr("median"), tr("interval (95 % or as said)"), tr("quartiles"), "p95", "p99", "n", ""


def marked(text: str) -> str:
    """Strike a figure where a line through it cannot be drawn."""
    return tr("[[struck {text}]]", text=text)


def figure_row(figure: Figure, strike: Strike = marked) -> list[str]:
    """Return a figure as the cells of a row."""
    name = name_of(figure.quantity)
    if figure.value is None:
        return [name, tr("n/a"), "", "", "", "", "", figure.why]
    struck = figure.standing is Standing.STRUCK

    def shown(*values: float | None) -> str:
        known = [value for value in values if value is not None]
        text = between(*(_amount(figure, value) for value in known))
        return strike(text) if struck and text else text

    bounds = shown(figure.low, figure.high)
    if bounds and figure.samples == _FEWEST:
        # The lowest and the highest of five hold the true median in 15 of 16 cases.
        bounds += f" ({percent('94')})"
    return [
        name,
        median_text(figure, strike),
        bounds,
        # Those of one value are no spread.
        shown(figure.q1, figure.q3) if figure.samples > 1 else "",
        shown(figure.p95),
        shown(figure.p99),
        str(figure.samples),
        tr("struck: {why}", why=figure.why) if struck else figure.why,
    ]


def median_text(figure: Figure, strike: Strike = marked) -> str:
    """Return the median with its unit."""
    if figure.value is None:
        return tr("n/a")
    text = f"{_amount(figure, figure.value)} {unit('tok/s' if figure.quantity in _RATES else 'ms')}"
    return strike(text) if figure.standing is Standing.STRUCK else text


def decode_text(run: LabRun) -> str:
    """Return the speed of the first parts; a sweep has more than a line holds."""
    shown = []
    for part in run.parts[:_LISTED_PARTS]:
        figure = next((one for one in part.figures if one.quantity is Quantity.DECODE), None)
        if figure is not None:
            shown.append(f"{part.name}: {median_text(figure)}")
    return ", ".join(shown + ["…"] * (len(run.parts) > _LISTED_PARTS))


def state_text(run: LabRun) -> str:
    """Return the worth of a run in a word or two."""
    if run.measuring:
        return tr("running")
    if not run.complete:
        return tr("partial ({why})", why=run.ended_by) if run.ended_by else tr("partial")
    state = tr("drifted") if run.drifted else tr("struck") if run.struck else tr("complete")
    if run.baseline:
        state = tr("{state}, baseline", state=state)
    return tr("{state}, stale: {why}", state=state, why=run.stale) if run.stale else state


def title(run: LabRun) -> str:
    """Return what was asked of whom."""
    return f"{run.workload}: {run.engine.model} ({server_text(run)})"


def server_text(run: LabRun) -> str:
    """Return the engine with its version, or the address where that is all that is known."""
    one = run.engine
    # vLLM's own name stands in its version.
    named = one.version.lower().startswith(one.engine.lower())
    return (one.version if named else f"{one.engine} {one.version}".strip()) or one.address


def hardware_text(machine: LabMachine) -> str:
    """Return what computes, with its driver; empty for a measurement of an address."""
    if not machine.processor:
        return ""
    driver = [tr("driver {version}", version=machine.driver)] if machine.driver else []
    return ", ".join([*machine.gpus, machine.processor, *driver])


def about(run: LabRun) -> list[str]:
    """Return the conditions of a run, a line each."""
    machine = run.machine
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    lines = [f"{run.id}, {at}, {measured(duration(run.seconds))}, seed {run.seed}, sndr {machine.program}"]
    if hardware := hardware_text(machine):
        lines.append(hardware)
    if run.engine.command:
        lines.append(tr("started by: {command}", command=run.engine.command))
    for check in run.checks:
        said = tr("output check: {title}: {outcome}", title=check.title, outcome=tr(check.outcome.value))
        lines.append(f"{said} ({check.why})" if check.why else said)
    if run.turns_with:
        lines.append(tr("measured in turns with {run}", run=run.turns_with))
    for resumed in run.resumed_at:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(resumed))
        lines.append(tr("it was cut short, and gone on with at {at}", at=at))
    if run.replaced:
        went = list(run.replaced)
        lines.append(tr("the file of runs is full: to keep this one, {runs} went", runs=went))
    if run.measuring:
        lines.append(tr("RUNNING: it is being measured; this is what there is so far"))
    elif not run.complete:
        lines.append(tr("PARTIAL: {why}", why=run.ended_by or tr("it did not come to its end")))
        if run.cut is not None:
            lines.append(run.cut.sentence)
    return lines


def heading(run: LabRun, part: PartResult) -> str:
    """Return what a part of a run asked."""
    return f"{part.name}: {asked_text(run, part)}"


def asked_text(run: LabRun, part: PartResult) -> str:
    """Return how often a part asked, at once, and for how much."""
    each = f"{part.streams} at once"
    parts = [tr("{n} at once", n=part.streams)] if part.streams > 1 and part.name != each else []
    parts += [
        tr("{done} of {measured} measured", done=part.done, measured=part.measured),
        *([ntr("after {n} warm-up", "after {n} warm-ups", part.warm)] if part.warm else [tr("no warm-up")]),
        *_prompts(run, part),
        tr("at most {tokens} tokens each", tokens=part.max_tokens),
    ]
    if part.energy is not None:
        parts.append(tr("{energy:.0f} J for 1,000 tokens", energy=part.energy))
    return ", ".join(parts)


def _prompts(run: LabRun, part: PartResult) -> list[str]:
    """Return how long the measured prompts of a part were, where the server counts them."""
    own = [one.prompt_tokens or 0 for one in run.samples if one.part == part.name and not one.warm]
    counts = sorted(filter(None, own))
    ends = [written(f"{count:,}") for count in dict.fromkeys([*counts[:1], *counts[-1:]])]
    return [tr("prompts of {tokens} tokens", tokens=between(*ends))] if ends else []


def knee_text(run: LabRun) -> str:
    """Return where more streams stop to pay; empty for a run that is no sweep."""
    if run.knee is None:
        return ""
    if run.knee.streams is None:
        return tr("Knee: none; {why}", why=run.knee.why)
    return ntr(
        "Knee: at {n} stream; {why}", "Knee: at {n} streams; {why}", run.knee.streams, why=run.knee.why
    )


def rung_rows(run: LabRun) -> list[list[str]]:
    """Return the rungs of a context ladder: what was taken, and what was found in it, apart."""
    rows = []
    for rung in run.rungs:
        read = tr("n/a") if rung.tokens is None else written(f"{rung.tokens:,}")
        found = tr("n/a") if rung.found is None else tr("found") if rung.found else tr("NOT found")
        taken = tr("taken") if rung.taken else tr("NOT taken")
        rows.append([written(f"{rung.aimed:,}"), read, taken, found, rung.why])
    return rows


def drift_rows(run: LabRun) -> list[list[str]]:
    """Return what changed over a soak, each with its interval."""
    rows = []
    for drift in run.drifts:
        memory = drift.kind in {DriftKind.MEMORY, DriftKind.GPU_MEMORY}
        ends = [
            measured(f"{value / (1 << 20):,.0f} MiB") if memory else written(f"{value:.2f}")
            for value in (drift.first, drift.second)
        ]
        if drift.low is None or drift.high is None:
            said = tr("cannot be told from {sessions} sessions", sessions=drift.sessions)
        else:
            grew = _grown(drift.low, drift.high)
            said = grew if drift.told else tr("cannot be told from noise: {grew}", grew=grew)
        rows.append([drift_of(drift.kind), *ends, said, tr("FAILED") if drift.failed else ""])
    return rows


def _grown(low: float, high: float) -> str:
    if high > _MOST_SHARE:
        return tr("{low:,.2f} to {high:,.2f} times as much", low=1 + low, high=1 + high)
    return percent(between(*(written(f"{100 * end:+.1f}") for end in (low, high))))


def between(*ends: str) -> str:
    """Return two ends that are written already, `5 to 7`; or the one that there is."""
    return tr("{low} to {high}", low=ends[0], high=ends[1]) if len(ends) == 2 else "".join(ends)


def _amount(figure: Figure, value: float) -> str:
    milliseconds = value * 1000
    if milliseconds >= _STRANGE:
        # Out of a file of somebody else: hundreds of digits would push all others aside.
        return written(f"{value if figure.quantity in _RATES else milliseconds:.2e}")
    if figure.quantity in _RATES:
        return written(f"{value:,.1f}")
    return written(f"{milliseconds:.2f}" if milliseconds < 100 else f"{milliseconds:,.0f}")
