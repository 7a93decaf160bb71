"""`/metrics`: our own figures and the engines', in a format that no engine can break."""

import asyncio
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from engine_host.gateway.directory import Target
from engine_host.gateway.metrics.engines import _families
from engine_host.gateway.metrics.exposition import Family, Line, written
from tests.unit.gateway.asking import CHAT, HELLO, ask, code_of

ENGINE = b"""# HELP llamacpp:tokens_predicted_total Number of generation tokens.
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 42
# TYPE vllm:e2e histogram
vllm:e2e_bucket{engine="0",le="1.0"} 1
vllm:e2e_bucket{engine="0",le="+Inf"} 2
vllm:e2e_sum{engine="0"} 3.5
vllm:e2e_count{engine="0"} 2
# TYPE sndr_requests_total counter
sndr_requests_total{model="forged"} 999
"""
HOSTILE = [
    b'a 1\n__name__{"a b", =}\n', b'__name__1b{"a b", =# HELP}h{ le__name__',
    b"\xff\xfe", b"{",
    b"a{b=\"c\" 1", b"a 1\na 1\n", b"# TYPE a counter\n# TYPE a gauge\na 1\n",
    b"a NaN\nb +Inf\n",
    b'a{x="\\n\\"} injected 7\\n"} 1\n', b"# HELP a x\\nb 7\n# TYPE a gauge\na 1\n", b"a{__name__=\"b\"} 1\n",
    b"# TYPE a histogram\na_bucket{le=\"1\"} 1\n", b"a 1 1 1 1\n", b"a" * 100_000,
    b"a{" + b'l="v",' * 5000 + b"} 1\n",
    b"sndr_build_info 7\n", b"# TYPE b info\nb_info{x=\"y\"} 1\n",
    b"a{engine=\"z\",model=\"z\",exported_engine=\"q\"} 1\n",
]  # fmt: skip


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of a text, read by Prometheus' own parser; none stands twice."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = (sample.name, frozenset(sample.labels.items()))
            assert series not in found, series
            found[series] = sample.value
    return found


def value(text: str, name: str, **labels: str) -> float:
    """The one sample of a name that has these labels."""
    (found,) = [
        number
        for (known, pairs), number in samples(text).items()
        if known == name and labels.items() <= dict(pairs).items()
    ]
    return found


def test_requests_are_counted_by_outcome_with_their_times(world: Any) -> None:
    async def go() -> None:
        async with world() as served, httpx.AsyncClient(base_url=served.url) as client:
            served.engine.go.set()
            await client.post(CHAT, json=HELLO)
            await client.post(CHAT, json={**HELLO, "model": "none"})
            answer = await client.get("/metrics")
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            text = answer.text
            asked = {"model": "m", "route": CHAT, "outcome": "done"}
            assert value(text, "sndr_requests_total", **asked) == 1
            assert value(text, "sndr_refusals_total", code="model_not_found") == 1
            assert value(text, "sndr_tokens_total", kind="generated") == 2
            assert value(text, "sndr_request_seconds_count", model="m") == 1
            assert value(text, "sndr_requests_active", engine="e1") == 0
            assert value(text, "sndr_requests_waiting", engine="e1") == 0
            assert value(text, "sndr_slots", engine="e1") == 2

    asyncio.run(go())


def test_an_engines_own_are_labelled_and_cannot_speak_for_us(world: Any, scripts: Any) -> None:
    async def go() -> None:
        script = scripts.answers(200, ENGINE, "text/plain")
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            text = (await client.get("/metrics")).text
            assert value(text, "llamacpp:tokens_predicted_total", engine="e1", model="m") == 42
            assert value(text, "vllm:e2e_count", engine="e1", exported_engine="0") == 2
            assert value(text, "sndr_engine_metrics_up", engine="e1") == 1
            assert "forged" not in text
            await client.get("/metrics")
            assert [path for path, _ in served.engine.received] == ["/metrics"], "asked once a second"

    asyncio.run(go())


@pytest.mark.parametrize("told", HOSTILE)
def test_hostile_text_breaks_nothing(world: Any, scripts: Any, told: bytes) -> None:
    async def go() -> None:
        script = scripts.answers(200, told, "text/plain")
        async with world(script) as served, httpx.AsyncClient(base_url=served.url) as client:
            text = (await client.get("/metrics")).text
            assert value(text, "sndr_slots", engine="e1") == 2
            assert value(text, "sndr_build_info") == 1
            for name, labels in samples(text):
                ours = name.startswith("sndr_")
                assert ours or {("engine", "e1"), ("model", "m")} <= labels, (name, labels)

    asyncio.run(go())


@given(st.lists(st.text(max_size=60), max_size=20))
@settings(max_examples=300, deadline=None)
def test_whatever_engines_say_the_format_holds(lines: list[str]) -> None:
    target = Target("e1", 'a"b\n', 1, 128, 0.0, socket="unused")
    other = Target("e2", "c", 1, 128, 0.0, socket="unused")
    text = written(_families([(target, "\n".join(lines)), (other, "a 1\n"), (target, None)])).decode()
    assert value(text, "a", engine="e2") == 1


@given(
    st.lists(
        st.builds(
            lambda name, kind, about, labels, number: Family(name, kind, about, [Line(name, labels, number)]),
            st.text(max_size=8),
            st.sampled_from(["counter", "gauge", "histogram", "summary", "untyped", "odd"]),
            st.text(max_size=20),
            st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3),
            st.floats(),
        ),
        max_size=6,
    )
)
@settings(max_examples=300, deadline=None)
def test_what_is_written_is_read_again(families: list[Family]) -> None:
    samples(written(families).decode())


def test_one_that_does_not_answer_is_not_up_and_keeps_nobody(world: Any) -> None:
    def away(served: Any) -> None:
        served.running[0] = Target("e1", "m", 2, 4096, 1000.0, url="http://127.0.0.1:1")

    assert value(ask(world, "GET", "/metrics", away).text, "sndr_engine_metrics_up", engine="e1") == 0


def test_a_key_that_may_only_ask_does_not_see_them(world: Any) -> None:
    def lock(served: Any) -> None:
        served.keys = frozenset({"asks"})

    assert code_of(ask(world, "GET", "/metrics", lock)) == (401, "invalid_api_key")
    refused = ask(world, "GET", "/metrics", lock, headers={"x-api-key": "asks"})
    assert code_of(refused) == (403, "permission_missing")
