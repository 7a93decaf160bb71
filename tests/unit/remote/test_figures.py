"""The figures of a host's card, made of what machines say of themselves."""

import json

import pytest

from engine_host.protocol.remote.hosts import RemoteHostState
from engine_host.remote.figures import Counter, Figures, rate_of_engines, serving_engines, tokens_in


def test_a_counter_has_a_rate_from_its_second_reading_on() -> None:
    counter = Counter()
    assert counter.add(0.0, 100.0) is None
    assert counter.add(10.0, 300.0) == 20.0
    assert counter.add(20.0, 300.0) == 0.0, "idle is a measured 0"
    assert counter.add(30.0, 5.0) is None, "it began anew"
    assert counter.add(40.0, None) is None
    assert counter.add(50.0, 9.0) is None
    assert counter.add(500.0, 99.0) is None, "too long ago to be a rate of now"


def test_tokens_of_each_kind_of_engine() -> None:
    assert tokens_in('vllm:generation_tokens_total{model_name="a"} 10.0\nvllm:prompt_tokens_total 5\n') == 10
    assert tokens_in("llamacpp:tokens_predicted_total 7\n") == 7
    assert tokens_in('sglang:generation_tokens_total{a="b"} 1e3\nsglang:generation_tokens_total 1\n') == 1001


@pytest.mark.parametrize(
    "text",
    [
        "",
        "vllm:generation_tokens_total nan",
        "llamacpp:tokens_predicted_total 1e999",
        "llamacpp:tokens_predicted_total 1e..e",
        "\x00" * 100,
    ],
)
def test_what_counts_nothing_is_not_measured(text: str) -> None:
    assert tokens_in(text) is None


def test_the_engines_of_a_host_one_by_one_and_together() -> None:
    def engine(state: str, rate: object, name: str = "m", **others: object) -> dict[str, object]:
        readings = {"decode_rate": rate, **others}
        return {"id": f"e-{name}", "name": name, "state": state, "readings": readings}

    def told(*engines: object) -> float | None:
        return rate_of_engines(serving_engines(json.dumps({"engines": engines}).encode()))

    assert told(engine("busy", 10.5), engine("ready", 0, "n"), engine("ended", 99, "o")) == 10.5
    assert told(engine("ready", None), {"state": "ready"}, None, 7) is None
    assert told(engine("ready", "x"), engine("ready", True), engine("ready", -1)) is None
    for body in (b"[]", b'{"engines": 7}', b"{", json.dumps({"engines": [engine("ready", 1, "")]}).encode()):
        assert serving_engines(body) == ()
    huge = b'{"engines": [{"id": "a", "name": "a", "state": "ready", "readings": {"decode_rate": 1e999}}]}'
    assert rate_of_engines(serving_engines(huge)) is None
    odd = [engine("busy", 2, memory=7, kv_usage="x", latencies=[1]), engine("busy", 2, "a\nb")]
    (one,) = serving_engines(json.dumps({"engines": [*odd, engine("busy", 9)]}).encode())
    assert (one.id, one.model, one.values) == ("e-m", "m", {"decode_rate": 2.0, "memory": 7.0})
    many = [engine("ready", 1, f"m{number}") for number in range(500)]
    assert len(serving_engines(json.dumps({"engines": many}).encode())) == 64


def last(figures: Figures) -> tuple[str | None, float | None]:
    """Return the last that happened, and when."""
    return figures.last, figures.last_at


def rate(figures: Figures) -> float | None:
    """Return the rate as it is now."""
    return figures.rate


def test_the_last_that_happened() -> None:
    now = [100.0]
    figures = Figures(clock=lambda: now[0])
    figures.state(RemoteHostState.CONNECTING)
    assert last(figures) == (None, None)
    figures.state(RemoteHostState.CONNECTED)
    assert last(figures) == ("connected", 100.0)
    now[0] = 200.0
    figures.answers((), ("b", "a"))
    assert last(figures) == ("a, b answer", 200.0)
    assert figures.measured(12.34)
    assert (rate(figures), figures.rate_at) == (12.3, 200.0)
    assert not figures.measured(12.31)
    figures.answers(("a", "b"), ("a",))
    assert last(figures)[0] == "b does not answer any more"
    figures.answers(("a", "b"), ("a",), told=True)
    assert last(figures)[0] == "b ended", "its engine host says so: nothing broke"
    figures.state(RemoteHostState.RECONNECTING)
    assert (last(figures)[0], rate(figures)) == ("the connection was lost", None)
