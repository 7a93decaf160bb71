"""The plots of runs, comparisons and sweeps: what is drawn, and that what a server says is no markup."""

import re
from typing import Any
from xml.etree import ElementTree

from engine_host.bench.lab.comparing import compared
from engine_host.client.bench_reports.html import comparison_html, run_html, sweep_html
from engine_host.client.bench_reports.markdown import comparison_markdown, run_markdown, sweep_markdown
from engine_host.client.bench_reports.plots import comparison_plots, run_plots, sweep_plots
from engine_host.client.bench_reports.svg import steps_of
from engine_host.protocol.bench.lab import (
    Figure,
    Knee,
    LabRun,
    MemoryReading,
    PartResult,
    Quantity,
    Sample,
    Standing,
    WorkloadName,
)
from engine_host.protocol.bench.sweeps import LabSweep, SweepArm, SweepKind, SweepReport
from tests.unit.bench.lab.test_comparing import FAST, SLOW, made
from tests.unit.cli.bench.test_lab import a_run

_HOSTILE = '</svg><script>alert(1)</script>"\x1b[31m'


def a_part(name: str, streams: int, rate: float, standing: Standing = Standing.PUBLISHED) -> PartResult:
    figures = tuple(
        Figure(quantity=one, standing=standing, value=rate, low=rate * 0.9, high=rate * 1.1, samples=5)
        for one in (Quantity.AGGREGATE, Quantity.TTFT)
    )
    return PartResult(name=name, streams=streams, warm=1, measured=5, max_tokens=9, done=5, figures=figures)


def pictures(lines: list[str]) -> list[ElementTree.Element]:
    """Return the pictures of a document, each read as XML: what is no picture would not be."""
    found = re.findall(r"<svg .*?</svg>", "\n".join(lines), re.DOTALL)
    return [ElementTree.fromstring(one) for one in found]


def test_a_sweep_is_a_curve_with_its_knee_and_a_struck_step_a_gap() -> None:
    parts = (
        a_part("1", 1, 100.0),
        a_part("2", 2, 150.0, Standing.STRUCK),
        a_part("4", 4, 220.0),
    )
    run = a_run(workload=WorkloadName.CONCURRENCY, parts=parts, knee=Knee(streams=4, why=""))
    rate, wait = run_plots(run)
    assert [(point.x, point.y) for point in rate.series[0].points] == [(0.0, 100.0), (2.0, 220.0)]
    assert (rate.marks, [label for _, label in rate.ticks]) == (((2.0, "knee at 4"),), ["1", "2", "4"])
    assert wait.series[0].points[0].y == 100_000.0
    assert len(pictures(run_html(run))) == 2
    assert run_plots(a_run(parts=())) == []


def test_each_request_is_a_dot_and_hostile_names_are_text() -> None:
    plain: dict[str, Any] = {"part": _HOSTILE, "warm": False, "salt": "", "started": 0.0, "total": 1.0}
    samples = tuple(Sample(number=n, first=0.1 * n, **plain) for n in range(1, 4))
    run = a_run(parts=(a_part(_HOSTILE, 1, 0.2),), samples=samples)
    (plot,) = run_plots(run)
    dots, median = plot.series
    assert [round(point.y) for point in dots.points] == [100, 200, 300]
    assert len(median.points) == 1
    document = run_html(run)
    (picture,) = pictures(document)
    assert len(picture.findall("circle")) == 4
    assert "<script" not in "\n".join(document)
    assert "\x1b" not in "\n".join(document)


def test_a_comparison_and_a_sweep_are_drawn() -> None:
    found = compared(made("20260101-000000-quick-aaaa", FAST), made("20260102-000000-quick-bbbb", SLOW))
    (plot,) = comparison_plots(found)
    assert all(point.y < 0 for point in plot.series[0].points)
    assert plot.note == "lines: 98 % interval of the change", "as the table under it says"
    assert len(pictures(comparison_html(found))) == 1
    assert plot.y_title == "% faster"
    far = compared(
        made("20260101-000000-quick-aaaa", FAST),
        made("20260102-000000-quick-bbbb", [14 * step for step in FAST]),
    )
    (plot,) = comparison_plots(far)
    assert plot.y_title == "times as fast"
    assert 0 < max(point.y for point in plot.series[0].points) < 0.1
    assert "factor of about 14" in "\n".join(comparison_html(far) + comparison_markdown(far))
    arms = (SweepArm(value="0", run="20260101-000000-quick-aaaa", complete=True), SweepArm(value="1"))
    sweep = LabSweep(
        id="20260101-000000-kv-aaaa",
        kind=SweepKind.KV,
        engine=_HOSTILE,
        started_at=1.0,
        command="sndr",
        values=("0", "1"),
        arms=arms,
    )
    report = SweepReport(sweep=sweep, runs=(a_run(),), changes=())
    # Its decode is struck, so only the other one is drawn.
    assert [one.title for one in sweep_plots(report)] == ["TTFT by type of the KV cache"]
    document = "\n".join(sweep_html(report))
    assert "<script" not in document
    assert "<s>35.0 tok/s</s>" in document
    assert "struck: 1 of 5 answers: it is empty" in document
    written = sweep_markdown(report)
    assert "<script" not in "\n".join(written)
    (row,) = (line for line in written if line.startswith("| 0 |"))
    assert "~~35.0 tok/s~~" in row
    assert row.endswith("| struck: 1 of 5 answers: it is empty |")


def test_an_axis_of_time_has_numbers_and_only_lines_that_are_drawn_are_explained() -> None:
    memory = tuple(MemoryReading(session=0, at=30.0 * n, resident=1 << 30) for n in range(4))
    soak = a_run(workload=WorkloadName.SOAK, parts=(), memory=memory)
    (picture,) = pictures(run_html(soak))
    assert [one.text for one in picture.iter("text")][-6:] == ["0.0", "0.5", "1.0", "1.5", "MiB", "minutes"]
    figure = Figure(quantity=Quantity.TTFT, standing=Standing.PUBLISHED, value=0.1, samples=1)
    part = PartResult(name="1", streams=1, warm=0, measured=1, max_tokens=9, done=1, figures=(figure,))
    (plot,) = run_plots(a_run(workload=WorkloadName.CONCURRENCY, parts=(part,)))
    assert plot.note == ""


def prefilled() -> LabRun:
    """Return a run of prefill, whose prompts are of about 7,500 tokens."""
    figures = tuple(
        Figure(quantity=one, standing=Standing.PUBLISHED, value=rate, q1=rate, q3=rate, samples=3)
        for one, rate in ((Quantity.DECODE, 70.0), (Quantity.PREFILL, 800.0), (Quantity.TTFT, 9.0))
    )
    part = PartResult(
        name="long prompt", streams=1, warm=1, measured=3, max_tokens=64, done=3, figures=figures
    )
    plain: dict[str, Any] = {"part": "long prompt", "salt": "", "started": 0.0, "total": 10.0, "first": 10.0}
    samples = (
        Sample(number=0, warm=True, prompt_tokens=9, **plain),
        *(
            Sample(number=n, warm=False, prompt_tokens=7500 + n, cached_tokens=500, **plain)
            for n in (1, 2, 3)
        ),
    )
    return a_run(workload=WorkloadName.PREFILL, parts=(part,), samples=samples)


def test_an_axis_of_time_begins_at_0_and_ends_with_the_run() -> None:
    memory = tuple(MemoryReading(session=0, at=at, resident=1 << 28) for at in (2.0, 6.0, 12.0))
    soak, *_ = run_plots(a_run(workload=WorkloadName.SOAK, parts=(), memory=memory))
    first, last = soak.places()
    assert first == 0.0
    assert 0.2 <= last < 0.22, "12 seconds of a soak filled a fifth of a picture"
    named, *_ = run_plots(a_run())
    assert named.places()[0] < 0.0, "a part stands in the middle of its place"


def test_a_run_of_prefill_shows_prefill_and_says_how_long_its_prompts_were() -> None:
    run = prefilled()
    plots = run_plots(run)
    assert [one.title for one in plots] == ["prefill", "TTFT"]
    assert [point.y for point in plots[0].series[0].points] == [700.1, 700.2, 700.3]
    said = "3 of 3 measured, after 1 warm-up, prompts of 7,501 to 7,503 tokens, at most 64 tokens each"
    for document in (run_html(run), run_markdown(run)):
        assert said in "\n".join(document)


def test_a_report_says_what_its_figures_are_and_only_of_those_that_it_shows() -> None:
    for lines in (run_html(prefilled()), run_markdown(prefilled())):
        document = "\n".join(lines)
        assert "What the figures are" in document
        assert "prefill: tokens of the prompt" in document
        assert "TTFT: time to first token" in document
        assert "ITL:" not in document
    assert "What the figures are" not in "\n".join(run_html(a_run(parts=())))


def test_a_figure_of_hundreds_of_digits_is_short() -> None:
    figures = tuple(
        Figure(quantity=one, standing=Standing.PUBLISHED, value=1e300, low=1e300, high=1e300, samples=6)
        for one in (Quantity.DECODE, Quantity.TTFT)
    )
    part = PartResult(name="1", streams=1, warm=0, measured=6, max_tokens=9, done=6, figures=figures)
    document = "\n".join(run_markdown(a_run(parts=(part,))))
    assert "1.00e+300 tok/s" in document
    assert max(map(len, document.splitlines())) < 400


def test_boxes_are_explained_wherever_they_are_drawn_and_a_sweep_says_what_it_changed() -> None:
    run = prefilled()
    arms = tuple(SweepArm(value=value, run=run.id, complete=True) for value in ("f16", "q8_0"))
    sweep = LabSweep(
        id="s",
        kind=SweepKind.KV,
        engine="m",
        started_at=1.0,
        command="sndr",
        values=("f16", "q8_0"),
        arms=arms,
    )
    report = SweepReport(sweep=sweep, runs=(run,), changes=())
    assert {plot.note for plot in sweep_plots(report)} == {"boxes: quartiles"}
    document = "\n".join(sweep_html(report))
    assert document.count('class="box"') == 4
    assert "sweep: type of the KV cache, m" in document
    assert "each start: prefill; long prompt: 3 of 3 measured" in document
    assert "tokens a step" not in document, "nothing was drafted, so there is nothing to say of it"
    drafted = tuple(arm.model_copy(update={"acceptance_length": 1.9}) for arm in arms)
    sweep = sweep.model_copy(update={"arms": drafted, "kind": SweepKind.SPECULATION})
    document = "\n".join(sweep_html(report.model_copy(update={"sweep": sweep})))
    assert ">1.90<" in document
    assert "by draft tokens a step" in document


def test_the_words_of_a_picture_can_be_read_on_a_telephone() -> None:
    document = "\n".join(run_html(a_run(parts=())))
    least, words = (int(re.findall(rule, document)[0]) for rule in (r"min-width:(\d+)", r"text{font:(\d+)"))
    assert words * least / 640 >= 10, "a picture of 640 pixels is not shrunk until they are too small"
    assert "overflow-x:auto}figcaption" in document, "it is moved sideways instead"


def test_lines_are_at_round_values() -> None:
    assert [steps_of(0, high) for high in (1, 7, 99, 0.03)] == [0.2, 2, 20, 0.01]
