"""`sndr fit` against a host of canned answers: what is asked, and the hub only with --online."""

from collections.abc import Callable
from typing import Any

import pytest

from engine_host.protocol.launch.fit import (
    Change,
    Correction,
    FitReport,
    HubModel,
    Measured,
    MeasuredPage,
    Roofline,
    Verdict,
)
from engine_host.protocol.launch.plans import EngineKind
from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPORT = FitReport(
    model="m",
    engine=EngineKind.VLLM,
    kv="auto",
    context=8192,
    streams=1,
    tensor_parallel=1,
    verdict=Verdict.FITS,
    largest_context=1000,
    most_streams=3,
)


@pytest.fixture
def served(host: FakeHost) -> FakeHost:
    """A host that computes the same for everything."""
    host.answers["POST /v1/fit"] = (200, REPORT.model_dump(mode="json"))
    found = HubModel(
        model=f"org/name@{COMMIT}",
        repository="org/name",
        revision=COMMIT,
        endpoint="https://hub",
        read_at=1.0,
    )
    host.answers["POST /v1/fit/hub"] = (200, found.model_dump(mode="json"))
    return host


def received(host: FakeHost, path: str) -> Any:
    return next((body for line, _, body in reversed(host.received) if line == f"POST {path}"), None)


def test_gpus_by_their_figures(served: FakeHost, sndr: Sndr) -> None:
    code, out, _ = sndr("fit", "m", "--gpu", "24:1.5:936", "--gpu", "8")
    assert code == 0
    assert out.startswith("m with vllm, KV auto: fits (1 stream; room for 3 streams of 8,192 tokens).\n")
    first, second = received(served, "/v1/fit")["gpus"]
    assert (first["total"], first["taken"], first["bandwidth"]) == (24 << 30, 3 << 29, 936e9)
    assert (second["total"], second["taken"], second.get("bandwidth")) == (8 << 30, 0, None)


def test_the_report_counts_in_words(served: FakeHost, sndr: Sndr) -> None:
    speed = Roofline(
        decode=51.4,
        decode_all_streams=1051.2,
        prefill=None,
        bytes_per_step=1,
        decode_at_depth=40.1,
        all_streams_at_depth=300.0,
        streams=8,
        depth=8192,
        tokens_per_step=4,
    )
    learnt = (Correction(part="compute", factor=1.0932, n=1),)
    shown = REPORT.model_copy(update={"most_streams": 256, "roofline": speed, "corrections": learnt})
    served.answers["POST /v1/fit"] = (200, shown.model_dump(mode="json"))
    out = sndr("fit", "m")[1]
    assert "Longest context of 1 stream: 1,000 tokens; most streams of 8,192 tokens: 256 or more." in out
    none = REPORT.model_copy(update={"most_streams": 0})
    served.answers["POST /v1/fit"] = (200, none.model_dump(mode="json"))
    out_of_none = sndr("fit", "m", "--kv-cache-gib", "40")[1]
    assert "most streams of 8,192 tokens: none." in out_of_none
    assert received(served, "/v1/fit")["kv_cache_gib"] == 40
    assert (
        "Decode at most, short context, 4 tokens a step: one stream 51 tok/s, 8 streams together 1,051 tok/s."
        in out
    )
    assert "at 8,192 tokens of context: one stream 40 tok/s, 8 streams together 300 tok/s." in out
    assert "Learnt from 1 start like it here: compute ×1.09" in out


def test_the_marks_of_changes_are_explained(served: FakeHost, sndr: Sndr) -> None:
    one = Change(id="eager", text="Run without CUDA graphs.", saves=1 << 30, fits=True, option="--eager")
    shown = REPORT.model_copy(update={"changes": (one, one.model_copy(update={"fits": False}))})
    served.answers["POST /v1/fit"] = (200, shown.model_dump(mode="json"))
    out = sndr("fit", "m")[1]
    other = one.model_copy(update={"option": "", "asks": {"model": "m/int4"}})
    shown = REPORT.model_copy(update={"changes": (other,)})
    served.answers["POST /v1/fit"] = (200, shown.model_dump(mode="json"))
    assert "sndr fit m/int4" in sndr("fit", "m", "--flash-attention", "off")[1]
    assert received(served, "/v1/fit")["flash_attention"] == "off"
    assert "✓ enough alone, · helps" in out
    assert "  ✓ Run without" in out
    assert "  · Run without" in out


def test_starts_are_shown_with_units(served: FakeHost, sndr: Sndr) -> None:
    one = Measured(
        at=1.0,
        engine="vllm",
        version="0.32.0",
        gpu="processor",
        patches="",
        model="m",
        part="weights",
        predicted=2 << 20,
        measured=2 << 20,
        start="8 × 8,192 tokens, KV f16",
    )
    tokens = one.model_copy(update={"part": "KV tokens", "predicted": 465_920, "measured": 465_920})
    other = one.model_copy(update={"model": "n"})
    page = MeasuredPage(starts=(one, tokens, other))
    served.answers["GET /v1/fit/starts"] = (200, page.model_dump(mode="json"))
    out = sndr("fit", "--starts")[1]
    assert "2.0 MiB" in out
    assert "465,920" in out
    assert "8 × 8,192 tokens, KV f16" in out
    assert "\nn " in out
    assert "\nn " not in sndr("fit", "m", "--starts")[1]
    assert "\nn " not in sndr("fit", "a-path-of-m", "--starts")[1]
    of_other = REPORT.model_copy(update={"model": "nope"})
    served.answers["POST /v1/fit"] = (200, of_other.model_dump(mode="json"))
    code, out, err = sndr("fit", "nope", "--starts")
    assert (code, out) == (2, "")
    assert "m, n" in err
    for words in (("--preset", "p"), ("m", "--online")):
        code, out, err = sndr("fit", "--starts", *words)
        assert (code, out) == (2, "")
        assert "--starts takes a MODEL at most" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--taken", "1"), "--taken goes with --hardware"),
        (("--hardware", "l4", "--cpu"), "--hardware and --cpu"),
        (("--hardware", "l4", "--gpu", "24"), "--hardware and --gpu"),
        (("--gpu", "24", "--cpu"), "--gpu and --cpu"),
        (("--hardware", "0x h100"), "1 to 8 GPUs, not 0"),
        (("--hardware", "9x h100"), "1 to 8 GPUs, not 9"),
    ],
)
def test_machines_that_contradict_each_other_or_nobody_has(
    served: FakeHost, sndr: Sndr, words: tuple[str, ...], said: str
) -> None:
    code, _, err = sndr("fit", "m", *words)
    assert code == 2
    assert said in err
    assert received(served, "/v1/fit") is None


@pytest.mark.parametrize("figures", ["", "x", "24:1:2:3", "0", "-1", "24:-1"])
def test_figures_that_are_none_are_refused(served: FakeHost, sndr: Sndr, figures: str) -> None:
    code, _, err = sndr("fit", "m", "--gpu", figures)
    assert code == 2
    assert "--gpu takes" in err
    assert received(served, "/v1/fit") is None


def test_the_hub_is_asked_with_online_alone(served: FakeHost, sndr: Sndr) -> None:
    assert sndr("fit", "org/name")[0] == 0
    assert received(served, "/v1/fit/hub") is None
    assert sndr("fit", "org/name@main", "--online", "--context", "4096")[0] == 0
    assert received(served, "/v1/fit/hub") == {"repository": "org/name", "revision": "main"}
    question = received(served, "/v1/fit")
    assert (question["model"], question["context"]) == (f"org/name@{COMMIT}", 4096)


def test_more_than_there_is_cannot_be_taken(served: FakeHost, sndr: Sndr) -> None:
    code, _, err = sndr("fit", "m", "--gpu", "24:30")
    assert (code, "others cannot hold 30 of 24 GiB" in err) == (2, True)
    assert received(served, "/v1/fit") is None


@pytest.mark.parametrize(
    ("verdict", "code"),
    [(Verdict.FITS, 0), (Verdict.TIGHT, 0), (Verdict.DOES_NOT_FIT, 5), (Verdict.CANNOT_RUN, 5)],
)
def test_the_exit_code_says_whether_it_would_work(
    served: FakeHost, sndr: Sndr, verdict: Verdict, code: int
) -> None:
    shown = REPORT.model_copy(update={"verdict": verdict})
    served.answers["POST /v1/fit"] = (200, shown.model_dump(mode="json"))
    assert sndr("fit", "m")[0] == code
    assert sndr("fit", "m", "--json")[0] == code
