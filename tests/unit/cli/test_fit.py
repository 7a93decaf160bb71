"""`sndr fit` against a host of canned answers: what is asked, and the hub only with --online."""

from collections.abc import Callable
from typing import Any

import pytest

from engine_host.protocol.fit import FitReport, HubModel, Verdict
from engine_host.protocol.plans import EngineKind
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


def asked(host: FakeHost, path: str) -> Any:
    return next((body for line, _, body in reversed(host.asked) if line == f"POST {path}"), None)


def test_gpus_by_their_figures(served: FakeHost, sndr: Sndr) -> None:
    code, out, _ = sndr("fit", "m", "--gpu", "24:1.5:936", "--gpu", "8")
    assert code == 0
    assert "fits" in out
    first, second = asked(served, "/v1/fit")["gpus"]
    assert (first["total"], first["taken"], first["bandwidth"]) == (24 << 30, 3 << 29, 936e9)
    assert (second["total"], second["taken"], second["bandwidth"]) == (8 << 30, 0, None)


@pytest.mark.parametrize("figures", ["", "x", "24:1:2:3", "0", "-1", "24:-1"])
def test_figures_that_are_none_are_refused(served: FakeHost, sndr: Sndr, figures: str) -> None:
    code, _, err = sndr("fit", "m", "--gpu", figures)
    assert code == 2
    assert "--gpu takes" in err
    assert asked(served, "/v1/fit") is None


def test_the_hub_is_asked_with_online_alone(served: FakeHost, sndr: Sndr) -> None:
    assert sndr("fit", "org/name")[0] == 0
    assert asked(served, "/v1/fit/hub") is None
    assert sndr("fit", "org/name@main", "--online", "--context", "4096")[0] == 0
    assert asked(served, "/v1/fit/hub") == {"repository": "org/name", "revision": "main"}
    question = asked(served, "/v1/fit")
    assert (question["model"], question["context"]) == (f"org/name@{COMMIT}", 4096)
