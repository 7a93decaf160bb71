"""What leaves the machine as a report says nothing of its person, machine and keys."""

import getpass
import json
from pathlib import Path

import pytest

from engine_host.bench.lab.comparing import compared
from engine_host.cli.bench.lab_text import comparison_lines
from engine_host.client.bench_reports.figures import name_of
from engine_host.client.bench_reports.for_others import comparison_for_others, run_for_others
from engine_host.client.bench_reports.html import comparison_html, run_html
from engine_host.client.bench_reports.markdown import comparison_markdown, run_markdown
from engine_host.client.bench_reports.regression import judged
from engine_host.protocol.bench.lab import LabEngine, LabRun, Quantity
from engine_host.protocol.language import install
from tests.unit.client.test_bench_regression import measured

HOME = "/home" + "/ottilie"
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> LabRun:
    monkeypatch.setenv("HOME", HOME)
    monkeypatch.setattr(Path, "home", lambda: Path(HOME))
    monkeypatch.setattr(getpass, "getuser", lambda: "ottilie")
    engine = LabEngine(
        address="/run/user/1000/sndr/plan-1.sock",
        model="m",
        id="e",
        engine="llama.cpp",
        version="b1",
        pid=7,
        model_path=f"{HOME}/models/m.gguf",
        command=f"sndr run m --env HF_TOKEN={KEY} --set extra_arguments='--api-key {KEY}'",
        argv=("llama-server", "--api-key", KEY, "--host", "192.168.7.9"),
        settings={"api_key": KEY, "context": "8192"},
    )
    return measured(1, 0.1, engine=engine)


def test_reports_have_no_keys_names_and_addresses(run: LabRun) -> None:
    other = run.model_copy(update={"id": "20260202-000000-quick-bbbb"})
    pair = compared(run, other)
    shown = [
        run_for_others(run).model_dump_json(),
        *("\n".join(told(run)) for told in (run_markdown, run_html)),
        *("\n".join(told(pair)) for told in (comparison_markdown, comparison_html)),
    ]
    for text in shown:
        assert not [secret for secret in (KEY, "ottilie", "192.168.7.9", "plan-1.sock") if secret in text]
        assert run.id in text


def test_reports_are_english_whoever_makes_them(run: LabRun) -> None:
    english = run_markdown(run)
    try:
        install("ru")
        assert (run_markdown(run), name_of(Quantity.TOTAL)) == (english, "от начала до конца")
    finally:
        install("en")


@pytest.mark.parametrize(
    ("model", "path", "shown_model", "shown_path"),
    [
        ("ottilie-coder", f"{HOME}/m/ottilie-coder.gguf", "ottilie-coder", "~/m/ottilie-coder.gguf"),
        ("ottilie/coder", "", "ottilie/coder", ""),
        (f"{HOME}/m/ottilie-coder", "", "~/m/ottilie-coder", ""),
        ("m", "/srv/ottilie/ottilie.gguf/", "m", "/srv/[user]/ottilie.gguf"),
    ],
)
def test_weights_keep_the_name_by_which_they_are_compared(
    run: LabRun, model: str, path: str, shown_model: str, shown_path: str
) -> None:
    engine = run.engine.model_copy(update={"model": model, "model_path": path})
    own = run.model_copy(update={"engine": engine})
    shown = run_for_others(own)
    assert (shown.engine.model, shown.engine.model_path) == (shown_model, shown_path)
    later = own.model_copy(update={"id": "20260202-000000-quick-bbbb"})
    assert judged(compared(shown, later)).refused == ""
    other = later.model_copy(
        update={"engine": engine.model_copy(update={"model": "n", "model_path": "n.gguf"})}
    )
    pair = comparison_for_others(compared(own, other))
    assert pair.doubts[0].text == f"other models: {shown_model} and n"
    assert (pair.differing[0].a, pair.differing[0].b) == (shown_path or shown_model, "n.gguf")
    assert HOME not in pair.model_dump_json()


def test_what_is_needed_to_repeat_and_compare_it_stays(run: LabRun) -> None:
    shown = run_for_others(run)
    assert shown.samples == run.samples
    assert shown.parts == run.parts
    assert (shown.seed, shown.workload_hash, shown.started_at) == (
        run.seed,
        run.workload_hash,
        run.started_at,
    )
    assert shown.engine.model_path == "~/models/m.gguf"
    assert shown.engine.settings["context"] == "8192"
    assert LabRun.model_validate(json.loads(shown.model_dump_json())) == shown


def test_runs_without_a_part_in_common_are_said_to_have_none(run: LabRun) -> None:
    other = run.model_copy(update={"id": "20260202-000000-quick-bbbb"})
    odd = other.model_copy(
        update={"parts": tuple(one.model_copy(update={"name": "x"}) for one in other.parts)}
    )
    for told in (comparison_markdown, comparison_html, comparison_lines):
        assert "No part stands in both runs" in "\n".join(told(compared(run, odd)))
        assert "No part" not in "\n".join(told(compared(run, other)))


def test_variables_of_a_run_that_kept_their_values_are_hidden(run: LabRun) -> None:
    # As versions before kept them.
    settings = {"variables": "['BILLING=kassel-777', 'VLLM_USE_V1=1']", "context": "8192"}
    own = run.model_copy(
        update={"engine": run.engine.model_copy(update={"settings": settings, "argv": (), "command": "x"})}
    )
    other = run.model_copy(update={"id": "20260202-000000-quick-bbbb"})
    pair = comparison_for_others(compared(own, other))
    for text in (run_for_others(own).model_dump_json(), pair.model_dump_json(), *comparison_html(pair)):
        assert "kassel" not in text
    assert "VLLM_USE_V1=1" in run_for_others(own).engine.settings["variables"]
