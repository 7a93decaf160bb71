"""Figures by samples made by hand: the arithmetic, and each gate."""

from typing import Any

import pytest

from engine_host.bench.lab.figures import by_round, knee, part_result
from engine_host.bench.lab.workloads import Part
from engine_host.protocol.bench.lab import Figure, Gate, Knee, PartResult, Quantity, Sample, Standing

PART = Part("essay", "Write.", max_tokens=20, warm=1, measured=5)


def sample(number: int = 0, **changed: Any) -> Sample:
    """Return eleven tokens, the first after 0.5 s and then one every 0.1 s."""
    arrivals = tuple(0.5 + 0.1 * n for n in range(11))
    plain: dict[str, Any] = {
        "part": "essay",
        "number": number,
        "round": number,
        "warm": False,
        "salt": "s",
        "started": 10.0 * number,
        "first": arrivals[0],
        "last": arrivals[-1],
        "total": 2.0,
        "arrivals": arrivals,
        "prompt_tokens": 1000,
        "tokens": 11,
    }
    return Sample(**{**plain, **changed})


def five(**changed: Any) -> list[Sample]:
    return [sample(number, **changed) for number in range(5)]


def figure(result: PartResult, quantity: Quantity) -> Figure:
    return next(one for one in result.figures if one.quantity is quantity)


def test_the_figures_are_those_of_the_samples() -> None:
    result = part_result(PART, [sample(9, warm=True, first=99.0), *five()])
    expected = {
        Quantity.DECODE: 10.0,
        Quantity.AGGREGATE: 5.5,
        Quantity.PREFILL: 2000.0,
        Quantity.TTFT: 0.5,
        Quantity.ITL: 0.1,
        Quantity.TPOT: 0.1,
        Quantity.TOTAL: 2.0,
    }
    assert [one.quantity for one in result.figures] == list(Quantity)
    for one in result.figures:
        assert one.value == pytest.approx(expected[one.quantity]), one.quantity
        assert (one.standing, one.gate, one.samples) == (Standing.PUBLISHED, None, 5)
        assert one.low == pytest.approx(one.high)
        # Five values have no tail; fifty gaps have one of one in twenty, and none of one in a hundred.
        assert (one.p95 is not None) == (one.quantity is Quantity.ITL)
        assert one.p99 is None
        # Five values have no tail; fifty gaps have one of one in twenty, and none of one in a hundred.
        assert (one.p95 is not None) == (one.quantity is Quantity.ITL)
        assert one.p99 is None
    assert (result.done, result.measured, result.struck) == (5, 5, False)


def test_streams_of_a_round_are_counted_together() -> None:
    part = Part("essay", "Write.", max_tokens=20, warm=0, measured=2, streams=2)
    samples = [
        sample(0, round=0, started=0.0, total=2.0),
        sample(1, round=0, started=1.0, total=3.0),
        sample(2, round=1, started=10.0, total=2.0),
    ]
    # The second round lost one of its two: it had fewer streams at once.
    aggregate = figure(part_result(part, samples), Quantity.AGGREGATE)
    assert aggregate.value == pytest.approx(22 / 4)
    assert aggregate.samples == 1


def test_one_incoherent_answer_strikes_every_speed() -> None:
    result = part_result(PART, [*five()[:4], sample(4, fault="it goes in a circle of 2 words")])
    assert result.struck
    for one in result.figures:
        assert (one.standing, one.gate) == (Standing.STRUCK, Gate.INCOHERENT)
        assert one.value is not None
        assert "1 of 5 answers: it goes in a circle" in one.why


def test_an_answer_that_is_too_short_to_be_judged_strikes_nothing() -> None:
    short = "it has 6 words, too few to be judged"
    result = part_result(PART, [*five()[:4], sample(4, total=9.0, unjudged=short)])
    whole = part_result(PART, five())
    assert not result.struck
    for one, other in zip(result.figures, whole.figures, strict=True):
        assert one.standing is other.standing
        assert one.value == pytest.approx(other.value)
        if one.standing is Standing.PUBLISHED:
            assert (one.gate, one.why) == (Gate.ANSWER_SHORT, f"left out: 1 of 5 answers: {short}")
    by_turn = by_round(Quantity.TOTAL, result, [*five()[:4], sample(4, total=9.0, unjudged=short)])
    assert 9.0 not in by_turn.values()
    few = part_result(PART, [*five()[:2], *(sample(n, unjudged=short) for n in (2, 3, 4))])
    assert not few.struck
    assert {(one.standing, one.value, one.gate) for one in few.figures} == {
        (Standing.NOT_MEASURED, None, Gate.ANSWER_SHORT)
    }


def test_a_failed_request_strikes_too_and_none_at_all_is_no_figure() -> None:
    result = part_result(PART, [*five()[:4], sample(4, error="it broke off")])
    assert {one.gate for one in result.figures} == {Gate.REQUESTS_FAILED}
    assert result.done == 4
    nothing = part_result(PART, five(error="gone"))
    assert {(one.standing, one.value) for one in nothing.figures} == {(Standing.NOT_MEASURED, None)}
    assert not nothing.struck


@pytest.mark.parametrize(
    ("changed", "gate", "missing"),
    [
        (
            {"tokens": None},
            Gate.NO_USAGE,
            {Quantity.DECODE, Quantity.AGGREGATE, Quantity.ITL, Quantity.TPOT},
        ),
        ({"tokens": 4}, Gate.ANSWER_SHORT, {Quantity.DECODE, Quantity.TPOT}),
        ({"last": 0.55}, Gate.WINDOW_SHORT, {Quantity.DECODE, Quantity.TPOT}),
        (
            {"cached_tokens": 900},
            Gate.CACHE_HIT,
            {Quantity.PREFILL, Quantity.TTFT, Quantity.TOTAL, Quantity.AGGREGATE},
        ),
        ({"prompt_tokens": 40}, Gate.PROMPT_SHORT, {Quantity.PREFILL}),
        ({"prompt_tokens": None}, Gate.NO_USAGE, {Quantity.PREFILL}),
        ({"tokens": 19, "arrivals": (0.5, 1.0, 1.5)}, Gate.TOKENS_TOGETHER, {Quantity.ITL}),
        ({"arrivals": (0.5,)}, Gate.WINDOW_SHORT, {Quantity.ITL}),
        ({"decoding": 9.0}, Gate.WINDOW_SHORT, {Quantity.DECODE, Quantity.TPOT, Quantity.ITL}),
    ],
)
def test_what_cannot_be_told_has_a_reason_and_no_figure(
    changed: dict[str, Any], gate: Gate, missing: set[Quantity]
) -> None:
    result = part_result(PART, five(**changed))
    without = {one.quantity for one in result.figures if one.value is None}
    assert without == missing
    for one in result.figures:
        if one.value is None:
            assert (one.standing, one.gate) == (Standing.NOT_MEASURED, gate)
            assert one.why


def test_a_template_in_the_cache_is_no_hit_and_is_not_counted_as_read() -> None:
    result = part_result(PART, five(cached_tokens=80))
    assert figure(result, Quantity.TTFT).value == 0.5
    assert figure(result, Quantity.PREFILL).value == pytest.approx(920 / 0.5)


def test_one_short_answer_is_left_out_and_said() -> None:
    decode = figure(part_result(PART, [*five()[:4], sample(4, tokens=3)]), Quantity.DECODE)
    assert (decode.standing, decode.gate, decode.samples) == (Standing.PUBLISHED, Gate.ANSWER_SHORT, 4)
    assert decode.why == "1 of 5 left out: an answer ends after 3 of 20 tokens"
    few = [*five()[:2], *(sample(number, tokens=3) for number in (2, 3, 4))]
    assert figure(part_result(PART, few), Quantity.DECODE).value is None


def swept(**rates: float) -> list[PartResult]:
    return [
        PartResult(
            name=name,
            streams=int(name[1:]),
            warm=0,
            measured=1,
            max_tokens=1,
            done=1,
            figures=(
                Figure(
                    quantity=Quantity.AGGREGATE,
                    standing=Standing.PUBLISHED if rate else Standing.STRUCK,
                    value=rate,
                ),
            ),
        )
        for name, rate in rates.items()
    ]


def test_the_knee_is_where_more_streams_stop_to_pay() -> None:
    found = knee(swept(n1=100.0, n2=190.0, n4=350.0, n8=370.0, n16=360.0))
    assert (found.streams, found.why) == (4, "8 at once give +6 % tokens a second of all together")
    assert knee(swept(n1=100.0, n2=190.0)) == Knee(streams=None, why="not reached up to 2 at once")
    assert knee([]).why == "cannot be told: nothing was measured"


def test_no_knee_is_found_behind_a_struck_step() -> None:
    # From 2 to 8 it would look as if more paid; what 4 gave is not known.
    found = knee(swept(n1=100.0, n2=190.0, n4=0.0, n8=250.0, n16=251.0))
    assert found == Knee(streams=None, why="cannot be told: the figure of 4 at once is struck")
    assert knee(swept(n1=100.0, n2=101.0, n4=0.0)).streams == 1


def test_tokens_that_come_at_once_after_a_pause_have_no_time_between_them() -> None:
    # As vLLM's came on a busy machine: four within a tenth of a millisecond, then a pause. Median: 0.02 ms.
    arrivals = tuple(0.5 + 0.04 * (n // 4) + 0.00002 * (n % 4) for n in range(40))
    burst = five(arrivals=arrivals, first=arrivals[0], last=arrivals[-1], tokens=40)
    part = Part("essay", "Write.", max_tokens=40, warm=1, measured=5)
    found = figure(part_result(part, burst), Quantity.ITL)
    assert (found.standing, found.gate) == (Standing.NOT_MEASURED, Gate.TOKENS_TOGETHER)
    assert found.why == "4.0 tokens came at a time, at once after a pause; TPOT is the time of one"
    assert figure(part_result(part, burst), Quantity.TPOT).standing is Standing.PUBLISHED


def test_tokens_of_an_uneven_pace_are_still_apart() -> None:
    # One in ten comes at once with the one before it: the others tell the time between two.
    arrivals = tuple(0.5 + 0.01 * (n - (n % 10 == 9)) for n in range(40))
    even = five(arrivals=arrivals, first=arrivals[0], last=arrivals[-1], tokens=40)
    part = Part("essay", "Write.", max_tokens=40, warm=1, measured=5)
    found = figure(part_result(part, even), Quantity.ITL)
    assert found.standing is Standing.PUBLISHED
    assert found.value == pytest.approx(0.01)
