"""A comparison of two runs in words: the parts that its text, its Markdown and the window share."""

from engine_host.client.bench_reports.figures import Strike, marked, median_text, name_of, server_text
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.language import tr

_SHORT = 80


def headings() -> tuple[str, ...]:
    """Return those of the columns of `figure_rows`."""
    return "", "A", "B", tr("B is"), tr("rounds")


def differing() -> str:
    """Return the heading of what is not the same."""
    return tr("What differs")


def nothing_differs() -> str:
    """Return what stands there instead of what differs."""
    return tr("Nothing that is known of the two: settings, versions, patches and machine are the same.")


def of_chance(found: LabComparison) -> str:
    """Return how sure the verdicts are, or why there is none."""
    if not found.figures:
        return tr("No part stands in both runs, so there is nothing to compare.")
    return tr(
        "Each line stands for itself at 98 %: of fifty lines about things that are the same, one is called "
        "different by chance. A time counts by its speed: half of it is twice as "
        "fast. What is more than that is told as a factor."
    )


def headline(found: LabComparison) -> str:
    """Return both sides in a line."""
    one, other = found.a.engine, found.b.engine
    return tr("{workload}: B {b} beside A {a}", workload=found.a.workload.value, b=other.model, a=one.model)


def sides(found: LabComparison) -> list[str]:
    """Return which run is which, and how they were measured."""
    how = (
        tr("measured in turns, so that a machine that drifts does so for both")
        if found.in_turns
        else tr("measured one after the other")
    )
    return [
        *(
            f"{name}: {run.id}, {run.engine.model} ({server_text(run)})"
            for name, run in (("A", found.a), ("B", found.b))
        ),
        how,
    ]


def doubts(found: LabComparison) -> list[str]:
    """Return what speaks against comparing the two, a line each."""
    return [tr("Mind: {doubt}", doubt=doubt.text) for doubt in found.doubts]


def differing_rows(found: LabComparison) -> list[list[str]]:
    """Return what differs, as cells."""
    return [[one.name, _short(one.a), _short(one.b)] for one in found.differing]


def figure_rows(found: LabComparison, strike: Strike = marked) -> dict[str, list[list[str]]]:
    """Return the rows of each part."""
    parts: dict[str, list[list[str]]] = {}
    for one in found.figures:
        row = [
            name_of(one.quantity),
            median_text(one.a, strike),
            median_text(one.b, strike),
            one.words,
            str(one.rounds) if one.verdict is not None else "",
        ]
        parts.setdefault(one.part, []).append(row)
    return parts


def _short(text: str) -> str:
    if not text:
        return tr("(none)")
    # Of a path or a long value the end is what differs.
    return text if len(text) <= _SHORT else f"…{text[1 - _SHORT :]}"
