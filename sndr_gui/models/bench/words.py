"""The words of the page of the bench lab for workloads, and the columns of its table."""

from __future__ import annotations

import time
from dataclasses import dataclass

from engine_host.client.bench_reports.figures import decode_text, server_text, state_text
from engine_host.protocol.bench.lab import LabRun, Quantity, WorkloadName
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column


@dataclass(frozen=True)
class WorkloadWords:
    """A workload for people: its title, what it asks, and how often."""

    title: str
    what: str
    rounds: str


WORKLOADS = {
    WorkloadName.QUICK: WorkloadWords(
        tr("Quick: a short story"), tr("a story of at most 128 tokens"), tr("5 times after 1 warm-up")
    ),
    WorkloadName.CANONICAL: WorkloadWords(
        tr("Canonical: essay and code"),
        tr("an essay of at most 1000 tokens and code of at most 800"),
        tr("5 times each after 3 warm-ups"),
    ),
    WorkloadName.PREFILL: WorkloadWords(
        tr("Prefill: a long prompt"),
        tr("a sentence on a prompt of about 6,000 tokens, which has to fit its context"),
        tr("5 times after 1 warm-up"),
    ),
    WorkloadName.CONCURRENCY: WorkloadWords(
        tr("Concurrency: 1 to 16 at once"),
        tr("the essay, 256 tokens, at 1, 2, 4, 8 and 16 at once, and tells where more stop to pay"),
        tr("3 times each after 1 warm-up"),
    ),
    WorkloadName.PREFILL_10K: WorkloadWords(
        tr("Prefill: 10,000 tokens"),
        tr("a sentence on a prompt of exactly 10,000 tokens, which has to fit its context"),
        tr("5 times after 1 warm-up"),
    ),
    WorkloadName.PREFILL_90K: WorkloadWords(
        tr("Prefill: 90,000 tokens"),
        tr("a sentence on a prompt of exactly 90,000 tokens, which has to fit its context"),
        tr("3 times after 1 warm-up"),
    ),
    WorkloadName.SERVING: WorkloadWords(
        tr("Serving: five arrival patterns"),
        tr(
            "186 answers as clients of a server come: one by one, steadily, in a burst, "
            "long and short mixed, and with a prefix in common"
        ),
        tr("each pattern once after warm-ups"),
    ),
    WorkloadName.AGENTIC: WorkloadWords(
        tr("Agentic: 15 turns"),
        tr(
            "the turns of an agent with the results of its calls, up to 53,000 tokens or "
            "what its context holds"
        ),
        tr("3 times"),
    ),
    WorkloadName.SOAK: WorkloadWords(
        tr("Soak: 20 sessions"),
        tr("sessions of five turns, and tells whether memory or the time of answers grew"),
        tr("20 sessions"),
    ),
    WorkloadName.SOAK_CONTINUOUS: WorkloadWords(
        tr("Soak: 6 long sessions"),
        tr(
            "sessions of five turns up to 25,000 tokens, and tells whether memory or the time of answers grew"
        ),
        tr("6 sessions"),
    ),
    WorkloadName.CONTEXT: WorkloadWords(
        tr("Context: up to 0.92 of it"),
        tr("a fact in longer and longer texts, and tells what it takes and what it finds"),
        tr("once each"),
    ),
}


def columns() -> tuple[Column[LabRun], ...]:
    """Return the columns of the table of runs."""
    return (
        Column(tr("When"), at_text, lambda run: run.started_at, tip=lambda run: run.id),
        Column(tr("Workload"), lambda run: run.workload.value),
        Column(tr("Model"), lambda run: run.engine.model, tip=lambda run: run.engine.model_path),
        Column(tr("Engine"), _server_short, tip=server_text),
        Column(tr("Decode, one stream"), decode_text, _decode_key),
        Column(
            tr("State"),
            state_text,
            tone=_tone,
        ),
    )


def _server_short(run: LabRun) -> str:
    """Return the engine with its build, without the package that brought it, which the tooltip names."""
    whole = server_text(run)
    build = whole.rpartition(", ")[2]
    return f"{run.engine.engine} {build}" if run.engine.engine and build != whole else whole


def _tone(run: LabRun) -> str:
    if run.measuring:
        return ""
    if run.stale or not run.complete or run.drifted:
        return "warn"
    return "bad" if run.struck else "good"


def at_text(run: LabRun) -> str:
    """Return when a run began."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))


def one_line(run: LabRun) -> str:
    """Return a run in a line."""
    return tr(
        "{workload} of {model}, {at_text}",
        workload=run.workload,
        model=formats.shortened(run.engine.model),
        at_text=at_text(run),
    )


def _decode_key(run: LabRun) -> float:
    values = [
        figure.value
        for part in run.parts
        for figure in part.figures
        if figure.quantity is Quantity.DECODE and figure.value is not None
    ]
    return values[0] if values else -1.0
