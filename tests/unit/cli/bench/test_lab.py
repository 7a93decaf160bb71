"""`sndr bench run`: what is refused before anything is measured, and how runs are shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host.bench.lab.comparing import compared
from engine_host.cli.bench.lab_text import list_lines, report_lines
from engine_host.cli.output import Exit
from engine_host.client.bench_reports.figures import figure_row
from engine_host.client.bench_reports.html import comparison_html, run_html
from engine_host.client.bench_reports.markdown import run_markdown
from engine_host.client.bench_reports.reproducing import request_of
from engine_host.protocol.bench.lab import (
    Figure,
    Gate,
    Knee,
    LabEngine,
    LabMachine,
    LabPage,
    LabRun,
    PartResult,
    Quantity,
    Standing,
    WorkloadName,
)
from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]


def a_run(**changed: Any) -> LabRun:
    """Return a run with a figure of each standing."""
    figures = (
        Figure(
            quantity=Quantity.DECODE,
            standing=Standing.STRUCK,
            value=35.0,
            low=34.0,
            high=36.0,
            samples=5,
            gate=Gate.INCOHERENT,
            why="1 of 5 answers: it is empty",
        ),
        Figure(
            quantity=Quantity.PREFILL,
            standing=Standing.NOT_MEASURED,
            gate=Gate.PROMPT_SHORT,
            why="a prompt of 31 tokens is too short for it",
        ),
        Figure(quantity=Quantity.TTFT, standing=Standing.PUBLISHED, value=0.0825, samples=5),
    )
    plain: dict[str, Any] = {
        "id": "20260101-000000-quick-aaaa",
        "workload": WorkloadName.QUICK,
        "started_at": 1.0,
        "seconds": 4.0,
        "seed": 7,
        "complete": True,
        "engine": LabEngine(address="http://x", model="<b>|m`\x1b[31m"),
        "machine": LabMachine(program="1", python="3", system="s"),
        "parts": (
            PartResult(name="p", streams=1, warm=1, measured=5, max_tokens=9, done=5, figures=figures),
        ),
    }
    return LabRun(**{**plain, **changed})


def test_a_struck_figure_is_marked_and_a_missing_one_is_no_number() -> None:
    text = "\n".join(report_lines(a_run()))
    assert "[struck 35.0 tok/s]" in text
    assert "struck: 1 of 5 answers: it is empty" in text
    assert "n/a" in text
    assert "82.50 ms" in text
    assert "PARTIAL" not in text
    cut = a_run(complete=False, ended_by="cancelled", knee=Knee(streams=4, why="8 at once give +6 %"))
    assert "PARTIAL: cancelled" in report_lines(cut)
    assert report_lines(cut)[-1] == "Knee: at 4 streams; 8 at once give +6 %"


def test_markdown_strikes_and_takes_no_markup_of_a_server() -> None:
    text = "\n".join(run_markdown(a_run()))
    assert "~~35.0 tok/s~~" in text
    assert "&lt;b>\\|m\\`" in text
    assert "\x1b" not in text
    hostile = a_run(engine=LabEngine(address="http://x", model="a\\|b ~~c~~ **d** _e_ \u202ef g_h"))
    assert "a\\\\\\|b \\~\\~c\\~\\~ \\*\\*d\\*\\* \\_e\\_ f g_h" in run_markdown(hostile)[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {9}


def test_html_strikes_loads_nothing_and_takes_no_markup_of_a_server() -> None:
    run = a_run()
    hostile = run.model_copy(update={"id": "b", "parts": (run.parts[0].model_copy(update={"name": "<i>"}),)})
    for page in (run_html(run), run_html(hostile), comparison_html(compared(run, hostile))):
        text = "\n".join(page)
        assert "default-src 'none'" in text
        assert "&lt;b&gt;|m`" in text
        assert not [sign for sign in ("<b>", "<i>", "<script", " src=", "href=", "\x1b") if sign in text]
    assert "<s>35.0 tok/s</s>" in "\n".join(run_html(run))


def test_one_value_has_no_quartiles_and_thousands_are_grouped() -> None:
    figure = Figure(
        quantity=Quantity.TTFT, standing=Standing.PUBLISHED, value=12.3456, q1=12.3, q3=12.4, samples=2
    )
    assert figure_row(figure)[1:4] == ["12,346 ms", "", "12,300 to 12,400"]
    assert figure_row(figure.model_copy(update={"samples": 1}))[3] == ""


@pytest.mark.parametrize(
    "words",
    [
        ("quick", "--url", "http://x"),
        ("quick", "--model", "m"),
        ("quick", "--url", "http://x", "--model", "m", "--engine", "e"),
        ("nothing",),
        ("quick", "--seed", "-1"),
        ("quick", "--rounds", "0"),
    ],
)
def test_what_makes_no_run_is_refused(sndr: Sndr, home: Path, words: tuple[str, ...]) -> None:
    code, out, err = sndr("bench", "run", *words)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "words",
    [
        ("a", "b", "--repeat", "5"),
        ("a", "b", "--workload", "quick"),
        ("a", "b", "--url", "http://x"),
        ("a",),
    ],
)
def test_what_makes_no_comparison_is_refused(sndr: Sndr, home: Path, words: tuple[str, ...]) -> None:
    code, out, err = sndr("bench", "compare", *words)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [("cancelled", "cancelled", Exit.INTERRUPTED), ("failed", "engine_not_ready", Exit.FAILED)],
)
def test_an_engine_is_measured_by_its_host_and_a_cut_run_is_shown(
    sndr: Sndr, host: FakeHost, state: str, reason: str, code: Exit
) -> None:
    cut = a_run(complete=False, ended_by="cancelled")
    job = {
        "id": "job-1",
        "kind": "bench.run",
        "title": "Bench",
        "touches": "bench",
        "state": state,
        "created_at": 1.0,
        "error": {"reason": reason, "message": "It was cut short.", "evidence": {"runs": [cut.id]}},
    }
    host.answers["POST /v1/bench/runs"] = (202, job)
    host.answers[f"GET /v1/bench/runs/{cut.id}"] = (200, cut.model_dump(mode="json"))
    ended, out, _ = sndr("bench", "run", "quick", "--engine", "e", "--seed", "7")
    assert ended == code
    assert "PARTIAL: cancelled" in out
    body = next(body for name, _, body in host.received if name == "POST /v1/bench/runs")
    assert (body["workload"], body["engine"], body["seed"], body.get("against")) == ("quick", "e", 7, None)


def test_runs_of_another_host_are_read_and_removed_through_it(sndr: Sndr, host: FakeHost) -> None:
    page = {"seq": 1, "runs": [a_run().model_dump(mode="json")]}
    host.answers["GET /v1/bench/runs"] = (200, page)
    assert a_run().id in sndr("bench", "list")[1]
    host.answers["DELETE /v1/bench/runs/aaaa"] = (200, {"seq": 1, "runs": []})
    assert "Nothing was measured here yet" in sndr("bench", "remove", "aaaa")[1]
    missing = {"error": {"reason": "not_found", "message": "There is no run x."}}
    host.answers["GET /v1/bench/comparison"] = (404, missing)
    assert sndr("bench", "compare", "x", "y")[0] == Exit.NOT_FOUND


def test_where_no_sweep_was_kept_it_says_where_those_of_concurrency_are(sndr: Sndr, host: FakeHost) -> None:
    host.answers["GET /v1/bench/sweeps"] = (200, {"seq": 1, "sweeps": []})
    assert "`sndr bench list`" in sndr("bench", "sweeps")[1], "one of them was swept a moment ago"


def test_what_a_sweep_cannot_take_is_refused_in_a_sentence(sndr: Sndr) -> None:
    code, _, err = sndr("bench", "sweep", "speculation", "99")
    assert code == 2
    assert "Error: Draft tokens are whole numbers from 0 to 16." in err


def test_without_an_engine_it_says_how_to_start_one(sndr: Sndr, host: FakeHost) -> None:
    fix = {"text": "Start one first.", "command": "sndr run --demo --detach"}
    none = {"error": {"reason": "no_engine_runs", "message": "No engine runs.", "fix": fix}}
    host.answers["POST /v1/bench/runs"] = (422, none)
    host.answers["POST /v1/bench/sweeps"] = (422, none)
    for words in (("run", "quick"), ("sweep", "kv", "f16", "q8_0")):
        code, out, err = sndr("bench", *words)
        assert (code, out) == (4, "")
        assert err.startswith("Error: No engine runs.")
        assert "sndr run --demo --detach" in err


def test_a_key_that_no_header_carries_is_not_shown(
    sndr: Sndr, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_API_KEY", "sk-secret\r\nx")
    code, out, err = sndr("bench", "run", "quick")
    assert code != 0
    assert "SNDR_API_KEY holds no key" in err
    assert "secret" not in out + err


def test_a_sweep_has_one_line_of_the_list() -> None:
    part = a_run().parts[0]
    sweep = a_run(
        parts=tuple(part.model_copy(update={"name": f"{n} at once", "streams": n}) for n in (1, 2, 4))
    )
    (_, line) = list_lines(LabPage(runs=(sweep,)))
    assert "1 at once: [struck 35.0 tok/s], 2 at once: [struck 35.0 tok/s], …  struck" in line
    assert "4 at once: 5 of 5 measured" in "\n".join(report_lines(sweep))


def test_a_run_of_somebody_else_is_asked_again_with_its_seed() -> None:
    again = request_of(a_run(), "mine")
    assert again.command == "sndr bench run quick --engine mine --rounds 5 --seed 7"
    part = a_run().parts[0]
    steps = tuple(part.model_copy(update={"streams": n, "measured": 3 * n}) for n in (1, 4))
    sweep = a_run(workload=WorkloadName.CONCURRENCY, parts=steps, knee=Knee(streams=1, why=""))
    assert request_of(sweep, None).command == "sndr bench sweep concurrency 1 4 --rounds 3 --seed 7"


def test_a_run_that_is_the_baseline_itself_is_held_to_nothing(sndr: Sndr, host: FakeHost) -> None:
    run = a_run(baseline=True)
    host.answers["GET /v1/bench/runs/latest"] = (200, run.model_dump(mode="json"))
    host.answers["GET /v1/bench/runs"] = (200, {"seq": 1, "runs": [run.model_dump(mode="json")]})
    code, _, err = sndr("bench", "check")
    assert code == Exit.CONFLICT
    assert "is the baseline itself" in err
    assert "sndr bench run quick" in err
    assert "sndr bench baseline" not in err


@pytest.mark.parametrize(
    ("complete", "struck", "told"),
    [
        (True, False, "sndr bench baseline"),
        (True, True, "sndr bench run quick"),
        (False, False, "sndr bench run quick"),
    ],
)
def test_without_a_baseline_only_a_run_that_may_be_one_is_offered_as_one(
    sndr: Sndr, host: FakeHost, complete: bool, struck: bool, told: str
) -> None:
    run = a_run(complete=complete)
    if not struck:
        (part,) = run.parts
        kept = tuple(one for one in part.figures if one.standing is not Standing.STRUCK)
        run = run.model_copy(update={"parts": (part.model_copy(update={"figures": kept}),)})
    host.answers["GET /v1/bench/runs/latest"] = (200, run.model_dump(mode="json"))
    host.answers["GET /v1/bench/runs"] = (200, {"seq": 1, "runs": [run.model_dump(mode="json")]})
    code, _, err = sndr("bench", "check")
    assert code == Exit.NOT_FOUND
    assert err.count("sndr bench") == 1
    assert told in err
