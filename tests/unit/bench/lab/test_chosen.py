"""Workloads with their choices, the arrivals of the serving ones, and the verdicts of a context ladder."""

from dataclasses import replace
from typing import Any

import pytest

from engine_host.bench.lab.chosen import chosen, longest
from engine_host.bench.lab.ladder import ended_ladder, rungs_of
from engine_host.bench.lab.workloads import WORKLOADS, ladder_parts, workload_hash
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import RunBench, Sample, WorkloadName


def test_the_serving_workloads_ask_as_the_reference_does() -> None:
    parts = {part.name: part for part in WORKLOADS[WorkloadName.SERVING].parts}
    counts = {name: len(part.requests(part.warm)) * part.measured for name, part in parts.items()}
    assert list(counts.values()) == [10, 32, 48, 48, 48]
    assert [part.warm for part in parts.values()] == [2] * 5
    assert [len(part.requests(turn)) for part in parts.values() for turn in range(2)] == [1] * 10
    assert WORKLOADS[WorkloadName.SERVING].sampling == {"temperature": 0.0}
    steady = parts["continuous batching"].planned
    assert steady[4].at - steady[0].at == 1.0
    assert {one.at for one in parts["burst"].planned} == {0.0}
    mixed = parts["mixed prompts"].planned
    long = [one for one in mixed if (one.tokens or 0) >= 1024]
    assert 0.6 < len(long) / len(mixed) < 0.9
    assert 4 < mixed[-1].at < 14
    assert all(one.head == 1024 for one in parts["shared prefix"].planned)


def test_choices_make_the_parts_and_what_does_not_fit_is_refused() -> None:
    def of(context: int | None = 8192, **asked: Any) -> list[str]:
        return [part.name for part in chosen(RunBench(**asked), context).parts]

    assert of(workload="concurrency", streams=(3, 1)) == ["1 at once", "3 at once"]
    assert of(workload="context")[::4] == ["300 tokens", "7,536 tokens"]
    assert of(workload="serving", only=("burst",)) == ["burst"]
    turns = chosen(RunBench(workload=WorkloadName.AGENTIC), 8192).parts
    assert (len(turns), turns[0].tokens) == (15, 391)
    assert chosen(RunBench(workload=WorkloadName.AGENTIC), None).parts[0].tokens == 3500
    for context, asked in (
        (8192, {"workload": "prefill-10k"}),
        (None, {"workload": "context"}),
        (512, {"workload": "agentic"}),
        (8192, {"workload": "quick", "streams": (2,)}),
        (8192, {"workload": "serving", "only": ("nothing",)}),
    ):
        with pytest.raises(HostError):
            of(context, **asked)
    assert longest(WORKLOADS[WorkloadName.PREFILL_90K]) == 90_064
    # What earlier versions asked still compares.
    quick = WORKLOADS[WorkloadName.QUICK]
    longer = replace(quick, parts=(replace(quick.parts[0], tokens=64),))
    assert workload_hash(longer) != workload_hash(quick)


def asked(part: str, **told: Any) -> Sample:
    plain: dict[str, Any] = {"number": 0, "warm": False, "salt": "s", "started": 0.0, "total": 1.0}
    return Sample(part=part, **{**plain, **told})


def test_boundary_and_recall_are_judged_apart() -> None:
    parts = ladder_parts((300, 1000, 2000, 3000))
    names = [part.name for part in parts]
    samples = [
        asked(names[0], prompt_tokens=300, found=True),
        asked(names[1], prompt_tokens=1001, found=False),
        asked(names[2], prompt_tokens=1500, found=True),
        asked(names[3], error="it answered 400: too long"),
    ]
    found = rungs_of(parts, samples)
    assert [(rung.taken, rung.found) for rung in found] == [
        (True, True),
        (True, False),
        (False, None),
        (False, None),
    ]
    assert "1,500" in found[2].why
    assert [ended_ladder(part, found) for part in parts] == [False, False, True, True]
    # One that does not find it in a short text is not blamed, and a cached text says nothing.
    blind = rungs_of(parts, [asked(names[0], prompt_tokens=300, found=False), *samples[1:2]])
    assert [(rung.taken, rung.found) for rung in blind] == [(True, False), (True, None)]
    cached = rungs_of(parts, [samples[0], asked(names[1], prompt_tokens=1000, cached_tokens=900, found=True)])
    assert cached[1].found is None
