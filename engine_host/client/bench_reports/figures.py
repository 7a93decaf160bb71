"""Figures of a run in words: a struck one is crossed out, one that is missing n/a."""

import time
from collections.abc import Callable

from engine_host.core.sizes import duration
from engine_host.protocol.bench.lab import DriftKind, Figure, LabRun, PartResult, Quantity, Standing

_RATES = {Quantity.DECODE, Quantity.AGGREGATE, Quantity.PREFILL}
NAMES = {
    Quantity.DECODE: "decode, one stream",
    Quantity.AGGREGATE: "wall clock, all streams",
    Quantity.PREFILL: "prefill",
    Quantity.TTFT: "TTFT",
    Quantity.ITL: "ITL",
    Quantity.TPOT: "TPOT",
    Quantity.TOTAL: "end to end",
}
"""What a person calls each quantity."""
DRIFTS = {
    DriftKind.TTFT: "TTFT, of its usual",
    DriftKind.TPOT: "TPOT, of its usual",
    DriftKind.MEMORY: "main memory",
    DriftKind.GPU_MEMORY: "GPU memory",
}
DRIFT_HEADINGS = ("", "first half", "second half", "grew by (98 %)", "")
"""Those of the columns of `drift_rows`."""
RUNG_HEADINGS = ("tokens", "read", "boundary", "recall", "")
"""Those of the columns of `rung_rows`."""
HEADINGS = ("", "median", "95 % interval", "quartiles", "p95", "p99", "n", "")
"""Those of the columns of `figure_row`."""
_LISTED_PARTS = 2
_FEWEST = 5

Strike = Callable[[str], str]


def marked(text: str) -> str:
    """Strike a figure where a line through it cannot be drawn."""
    return f"[struck {text}]"


def figure_row(figure: Figure, strike: Strike = marked) -> list[str]:
    """Return a figure as the cells of a row."""
    name = NAMES[figure.quantity]
    if figure.value is None:
        return [name, "n/a", "", "", "", "", "", figure.why]
    struck = figure.standing is Standing.STRUCK

    def shown(*values: float | None) -> str:
        known = [value for value in values if value is not None]
        text = " to ".join(_amount(figure, value) for value in known)
        return strike(text) if struck and text else text

    bounds = shown(figure.low, figure.high)
    if bounds and figure.samples == _FEWEST:
        # The lowest and the highest of five hold the true median in 15 of 16 cases.
        bounds += " (94 %)"
    return [
        name,
        median_text(figure, strike),
        bounds,
        shown(figure.q1, figure.q3),
        shown(figure.p95),
        shown(figure.p99),
        str(figure.samples),
        f"struck: {figure.why}" if struck else figure.why,
    ]


def median_text(figure: Figure, strike: Strike = marked) -> str:
    """Return the median with its unit."""
    if figure.value is None:
        return "n/a"
    text = f"{_amount(figure, figure.value)} {'tok/s' if figure.quantity in _RATES else 'ms'}"
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
    if not run.complete:
        return f"partial ({run.ended_by})" if run.ended_by else "partial"
    state = "drifted" if run.drifted else "struck" if run.struck else "complete"
    if run.baseline:
        state += ", baseline"
    return f"{state}, stale: {run.stale}" if run.stale else state


def title(run: LabRun) -> str:
    """Return what was asked of whom."""
    return f"{run.workload}: {run.engine.model} ({server_text(run)})"


def server_text(run: LabRun) -> str:
    """Return the engine with its version, or the address where that is all that is known."""
    one = run.engine
    # vLLM's own name stands in its version.
    named = one.version.lower().startswith(one.engine.lower())
    return (one.version if named else f"{one.engine} {one.version}".strip()) or one.address


def about(run: LabRun) -> list[str]:
    """Return the conditions of a run, a line each."""
    machine = run.machine
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    lines = [f"{run.id}, {at}, {duration(run.seconds)}, seed {run.seed}, sndr {machine.program}"]
    if machine.processor:
        driver = f", driver {machine.driver}" if machine.driver else ""
        lines.append(", ".join([*machine.gpus, machine.processor]) + driver)
    if run.engine.command:
        lines.append(f"started by: {run.engine.command}")
    for check in run.checks:
        why = f" ({check.why})" if check.why else ""
        lines.append(f"output check: {check.title}: {check.outcome.value}{why}")
    if run.turns_with:
        lines.append(f"measured in turns with {run.turns_with}")
    for resumed in run.resumed_at:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(resumed))
        lines.append(f"it was cut short, and gone on with at {at}")
    if run.replaced:
        lines.append(f"the file of runs is full: to keep this one, {', '.join(run.replaced)} went")
    if not run.complete:
        lines.append(f"PARTIAL: {run.ended_by or 'it did not come to its end'}")
    return lines


def heading(part: PartResult) -> str:
    """Return what a part asked."""
    each = f"{part.streams} at once"
    streams = f"{each}, " if part.streams > 1 and part.name != each else ""
    energy = "" if part.energy is None else f", {part.energy:.0f} J for 1,000 tokens"
    warm = f"{part.warm} warm-up{'' if part.warm == 1 else 's'}"
    return (
        f"{part.name}: {streams}{part.done} of {part.measured} measured after {warm}, "
        f"at most {part.max_tokens} tokens each{energy}"
    )


def knee_text(run: LabRun) -> str:
    """Return where more streams stop to pay; empty for a run that is no sweep."""
    if run.knee is None:
        return ""
    where = (
        "none"
        if run.knee.streams is None
        else f"at {run.knee.streams} {'stream' if run.knee.streams == 1 else 'streams'}"
    )
    return f"Knee: {where}; {run.knee.why}"


def rung_rows(run: LabRun) -> list[list[str]]:
    """Return the rungs of a context ladder: what was taken, and what was found in it, apart."""
    rows = []
    for rung in run.rungs:
        read = "n/a" if rung.tokens is None else f"{rung.tokens:,}"
        found = "n/a" if rung.found is None else "found" if rung.found else "NOT found"
        rows.append([f"{rung.aimed:,}", read, "taken" if rung.taken else "NOT taken", found, rung.why])
    return rows


def drift_rows(run: LabRun) -> list[list[str]]:
    """Return what changed over a soak, each with its interval."""
    rows = []
    for drift in run.drifts:
        memory = drift.kind in {DriftKind.MEMORY, DriftKind.GPU_MEMORY}
        ends = [
            f"{value / (1 << 20):,.0f} MiB" if memory else f"{value:.2f}"
            for value in (drift.first, drift.second)
        ]
        if drift.low is None or drift.high is None:
            said = f"cannot be told from {drift.sessions} sessions"
        else:
            between = f"{100 * drift.low:+.1f} to {100 * drift.high:+.1f} %"
            said = between if drift.told else f"cannot be told from noise: {between}"
        rows.append([DRIFTS[drift.kind], *ends, said, "FAILED" if drift.failed else ""])
    return rows


def _amount(figure: Figure, value: float) -> str:
    if figure.quantity in _RATES:
        return f"{value:.1f}"
    milliseconds = value * 1000
    return f"{milliseconds:.2f}" if milliseconds < 100 else f"{milliseconds:.0f}"
