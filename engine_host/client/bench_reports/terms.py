"""The quantities of a report in a sentence each, for somebody who gets one without this program."""

from collections.abc import Iterable

from engine_host.client.bench_reports.figures import name_of
from engine_host.protocol.bench.lab import Quantity

HEADING = "What the figures are"
_TERMS = {
    Quantity.DECODE: "tokens a second of one answer, from its first text to its last",
    Quantity.AGGREGATE: "tokens of all answers of a round by its whole time, the reading of prompts included",
    Quantity.PREFILL: "tokens of the prompt that were read a second, until the first text",
    Quantity.TTFT: "time to first token: from sending a request to its first text",
    Quantity.ITL: "time between two pieces of text; its p95 and p99 are of all such gaps, not of n requests",
    Quantity.TPOT: "time per output token: that of an answer from its first text to its last, by its tokens",
    Quantity.TOTAL: "from sending a request to the end of its answer",
}


def terms(shown: Iterable[Quantity]) -> list[str]:
    """Return what each quantity is that a report shows, in the order of its tables."""
    known = set(shown)
    return [f"{name_of(one)}: {said}" for one, said in _TERMS.items() if one in known]
