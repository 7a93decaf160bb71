"""A comparison of two runs in words: the parts that its text, its Markdown and the window share."""

from engine_host.client.bench_reports.figures import NAMES, Strike, marked, median_text, server_text
from engine_host.protocol.bench.comparison import LabComparison

HEADINGS = ("", "A", "B", "B is", "rounds")
"""Those of the columns of `figure_rows`."""
DIFFERING = "What differs"
NOTHING_DIFFERS = "Nothing that is known of the two: settings, versions, patches and machine are the same."
OF_CHANCE = (
    "Each line stands for itself at 98 %: of fifty lines about things that are the same, one is called "
    "different by chance. A time counts by its speed: half of it is 100 % faster."
)
_SHORT = 80


def headline(found: LabComparison) -> str:
    """Return both sides in a line."""
    one, other = found.a.engine, found.b.engine
    return f"{found.a.workload}: B {other.model} beside A {one.model}"


def sides(found: LabComparison) -> list[str]:
    """Return which run is which, and how they were measured."""
    how = (
        "measured in turns, so that a machine that drifts does so for both"
        if found.in_turns
        else "measured one after the other"
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
    return [f"Mind: {doubt.text}" for doubt in found.doubts]


def differing_rows(found: LabComparison) -> list[list[str]]:
    """Return what differs, as cells."""
    return [[one.name, _short(one.a), _short(one.b)] for one in found.differing]


def figure_rows(found: LabComparison, strike: Strike = marked) -> dict[str, list[list[str]]]:
    """Return the rows of each part."""
    parts: dict[str, list[list[str]]] = {}
    for one in found.figures:
        row = [
            NAMES[one.quantity],
            median_text(one.a, strike),
            median_text(one.b, strike),
            one.words,
            str(one.rounds) if one.verdict is not None else "",
        ]
        parts.setdefault(one.part, []).append(row)
    return parts


def _short(text: str) -> str:
    if not text:
        return "(none)"
    # Of a path or a long value the end is what differs.
    return text if len(text) <= _SHORT else f"…{text[1 - _SHORT :]}"
