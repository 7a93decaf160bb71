"""The values behind the medians of a sweep, and reports of a version that knew none of them."""

import json
import statistics
from pathlib import Path

from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.kept import sweeps
from engine_host.bench.lab.figures import RATES
from engine_host.cli.bench.sweep import sweep_lines
from engine_host.client.bench_reports.for_others import sweep_for_others
from engine_host.client.bench_reports.html import sweep_html
from engine_host.client.bench_reports.markdown import sweep_markdown
from engine_host.client.bench_reports.sweep import memory_table
from engine_host.protocol.bench.sweeps import ArmMemory, LabSweep, SweepArm, SweepKind, SweepReport
from tests.unit.asynchronous import run
from tests.unit.bench.lab.test_running import measured, well

MEMORY = ArmMemory(told_kv_cache_bytes=97 << 20, told_kv_cache_tokens=4096)


def a_report(folder: Path) -> SweepReport:
    """Return the report of two starts; one of them has a run of a FAKE server."""
    found, _, _ = run(measured(well, folder))
    arms = (
        SweepArm(value="f16", run=found.id, complete=True, memory=MEMORY),
        SweepArm(value="q8_0", run="20260101-000000-quick-gone", complete=True),
    )
    sweep = LabSweep(
        id="20260101-000000-kv-aaaa",
        kind=SweepKind.KV,
        engine="m",
        started_at=1.0,
        command="sndr bench sweep kv",
        values=("f16", "q8_0"),
        arms=arms,
    )
    sweeps.save(kept_runs.folder_of(folder), sweep)
    return sweeps.report(kept_runs.folder_of(folder), "latest")


def test_each_median_has_its_values_in_json_with_their_unit(tmp_path: Path) -> None:
    report = a_report(tmp_path)
    (run_of_first,) = report.runs
    written = json.loads(sweep_for_others(report).model_dump_json())
    (told,) = written["samples"]
    assert (told["value"], told["run"], told["part"]) == ("f16", run_of_first.id, "pair")
    figures = [one for one in run_of_first.parts[0].figures if one.value is not None]
    assert len(figures) >= 3
    for figure in figures:
        unit = "tokens_per_second" if figure.quantity in RATES else "seconds"
        values = told[f"{figure.quantity.value}_{unit}"]
        assert len(values) == figure.samples
        assert statistics.median(values) == figure.value
    # A prompt of 30 tokens tells no prefill.
    assert told["prefill_tokens_per_second"] == []
    assert written["sweep"]["arms"][0]["memory"]["told_kv_cache_bytes"] == 97 << 20


def test_a_report_of_a_version_that_knew_neither_opens(tmp_path: Path) -> None:
    report = a_report(tmp_path)
    assert "97.0 MiB" in "\n".join(sweep_lines(report))
    assert "97.0 MiB" in "".join(sweep_html(report))
    assert "97.0 MiB" in "\n".join(sweep_markdown(report))
    written = json.loads(report.model_dump_json())
    del written["samples"]
    for arm in written["sweep"]["arms"]:
        del arm["memory"]
    older = SweepReport.model_validate(written)
    assert memory_table(older) == (["value"], [])
    assert "97.0 MiB" not in "\n".join([*sweep_lines(older), *sweep_html(older), *sweep_markdown(older)])
