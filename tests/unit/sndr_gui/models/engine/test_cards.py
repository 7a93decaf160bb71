"""Cards of an engine: dashes with reasons, quantiles, draft tokens."""

import pytest

from engine_host.protocol.engines import Engine, EngineState, Latency, Readings, Request, RequestState
from sndr_gui.models.engine import cards as engine_cards
from sndr_gui.models.engine.cards import Speculation
from tests.views.samples import engines as engine_samples
from tests.views.samples import host as samples


def requests(*times: float) -> tuple[Request, ...]:
    return tuple(
        samples.request(RequestState.DONE, number, ttft=seconds, created_at=0.0, ended_at=2 * seconds)
        for number, seconds in enumerate(times)
    )


def rows(engine: Engine, readings: Readings | None, done: tuple[Request, ...] = ()) -> dict[str, str]:
    return {row.name: row.p50 for row in engine_cards.latencies(engine, readings, done)}


def test_an_engine_with_histograms_tells_its_own_latencies() -> None:
    engine = engine_samples.vllm(EngineState.READY)
    found = rows(engine, engine.readings, requests(9.0))
    assert found == {
        "First token": "40 ms",
        "Between tokens": "11 ms",
        "Queue": "< 300 ms",
        "End to end": "500 ms",
    }


def test_one_without_histograms_is_measured_at_the_endpoint() -> None:
    engine = samples.engine(EngineState.READY)
    other = samples.request(RequestState.DONE, 9, engine="engine-2", ttft=50.0)
    broken = samples.request(RequestState.FAILED, 8, ttft=50.0)
    done = (*requests(0.1, 0.2, 0.3), other, broken)
    found = rows(engine, engine.readings, done)
    assert found == {"First token": "200 ms", "End to end": "400 ms"}


def test_a_dead_engine_has_no_latencies() -> None:
    assert rows(engine_samples.failed(), None, requests(0.1)) == {}


@pytest.mark.parametrize(
    ("value", "below", "words"),
    [(None, None, "—"), (None, 0.3, "< 300 ms"), (0.0001, None, "< 1 ms"), (0.2, None, "200 ms")],
)
def test_quantiles(value: float | None, below: float | None, words: str) -> None:
    assert engine_cards.quantile_words(value, below) == words


def test_a_histogram_of_no_name_here_keeps_its_own() -> None:
    readings = Readings(at=0, latencies=(Latency(name="new one", count=1, mean=1.0),))
    assert rows(engine_samples.vllm(EngineState.READY), readings) == {"new one": "—"}


def test_without_speculation_nothing_is_said_of_drafts() -> None:
    engine = samples.engine(EngineState.READY)
    assert engine_cards.speculation(engine, engine.readings) is None


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            Speculation("mtp", None, 0, 0, (), "vllm"),
            "No draft tokens were verified yet.",
        ),
        (
            Speculation("mtp", 2.5, 30, 15, (0.9,), "vllm"),
            "2.50 tokens per step  ·  15 of 30 draft tokens accepted, 50 %",
        ),
        (
            Speculation("mtp", 1.0, 30, 0, (0.0,), "vllm"),
            "1.00 tokens per step  ·  0 of 30 draft tokens accepted, 0 %",
        ),
    ],
)
def test_drafts_in_a_sentence(found: Speculation, sentence: str) -> None:
    assert found.sentence == sentence


def test_positions_that_llama_cpp_does_not_count_say_so() -> None:
    assert "not reported by llama.cpp" in Speculation("draft-mtp", 2.0, 3, 1, (), "llama.cpp").about
