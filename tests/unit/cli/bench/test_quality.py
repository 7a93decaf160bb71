"""`sndr bench quality` against a host of canned answers."""

from collections.abc import Callable
from typing import Any

from engine_host.protocol.bench.quality import KvQuality, MeasureQuality, NeedleFound, QualityReport
from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
PROBLEM = {"reason": "engine_crashed", "message": "fp8 is not \x1b[31mfor this GPU."}


def report(*rows: KvQuality) -> QualityReport:
    return QualityReport(
        id="quality-1",
        at=1.0,
        model="demo",
        model_path="/m",
        engine="vllm",
        server_version="vLLM 0.32.0",
        machine="a box",
        program="0.2.0",
        text="quality.txt",
        text_sha256="0",
        asked=MeasureQuality(model="demo", answer_tokens=8),
        measured_positions=1024,
        rows=rows,
        command="sndr bench quality demo",
    )


def job(made: QualityReport) -> tuple[int, dict[str, Any]]:
    found = {
        "id": "job-1",
        "kind": "kv.quality",
        "title": "Measure",
        "touches": "x",
        "state": "done",
        "created_at": 1.0,
        "result": made.model_dump(mode="json"),
    }
    return 202, found


NEEDLES = (
    NeedleFound(depth=0.5, found=True, logprob=-0.1),
    NeedleFound(depth=0.9, found=False, logprob=-9.0),
)
AUTO = KvQuality(kv="auto", perplexity=1.21578, needles=NEEDLES)
K8V4 = KvQuality(
    kv="turboquant_k8v4",
    perplexity=1.25,
    divergence=0.000512,
    divergence_99=0.0123,
    same_best=0.998,
    needles=NEEDLES,
    agreed=(8, 8, 3),
    how="by the kernels' arithmetic",
)


def test_a_measurement_is_a_table_with_the_command_that_makes_it_again(host: FakeHost, sndr: Sndr) -> None:
    host.answers["POST /v1/quality"] = job(report(AUTO, K8V4))
    code, out, _ = sndr("bench", "quality", "demo", "--kv", "turboquant_k8v4", "--set", "eager=true")
    assert code == 0
    assert "1024 positions of quality.txt" in out
    row = next(line for line in out.splitlines() if line.startswith("turboquant_k8v4 "))
    for figure in ("1.2500", "0.000512", "0.01230", "99.80 %", "1 of 2", "2 of 3 whole, median 8 of 8"):
        assert figure in row
    assert "turboquant_k8v4: by the kernels' arithmetic" in out
    assert "Again: sndr bench quality demo" in out
    body = next(body for name, _, body in host.received if name == "POST /v1/quality")
    assert body["kv"] == ["turboquant_k8v4"]
    assert body["overrides"]["eager"] is True


def test_a_type_that_could_not_be_measured_is_not_zero(host: FakeHost, sndr: Sndr) -> None:
    broken = KvQuality.model_validate({"kv": "fp8", "problem": PROBLEM})
    host.answers["POST /v1/quality"] = job(report(AUTO, broken))
    code, out, _ = sndr("bench", "quality", "demo")
    assert code == 5
    assert "not measured" in out
    assert "for this GPU." in out
    assert "\x1b" not in out


def test_the_list_shows_what_was_measured_here(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/quality"] = (200, {"seq": 0, "reports": []})
    assert "sndr bench quality" in sndr("bench", "quality", "--list")[1]
    host.answers["GET /v1/quality"] = (200, {"seq": 0, "reports": [report(AUTO).model_dump(mode="json")]})
    code, out, _ = sndr("bench", "quality", "--list")
    assert code == 0
    assert "demo on vLLM 0.32.0, a box" in out


def test_a_size_that_makes_no_sense_is_refused_before_the_host(host: FakeHost, sndr: Sndr) -> None:
    code, _, err = sndr("bench", "quality", "demo", "--positions", "0")
    assert code == 2
    assert "positions" in err
    assert not [name for name, _, _ in host.received if name.startswith("POST")]
