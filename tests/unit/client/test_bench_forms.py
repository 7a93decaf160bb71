"""Runs, comparisons and sweeps in each form: equal figures, and nothing that a stranger named is markup."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from engine_host.bench.lab.comparing import compared
from engine_host.cli.bench.lab_text import comparison_lines, report_lines
from engine_host.cli.bench.sweep import sweep_lines
from engine_host.client.bench_reports.figures import figure_row
from engine_host.client.bench_reports.for_others import (
    comparison_for_others,
    run_for_others,
    sweep_for_others,
)
from engine_host.client.bench_reports.html import comparison_html, run_html, sweep_html
from engine_host.client.bench_reports.markdown import comparison_markdown, run_markdown, sweep_markdown
from engine_host.core.visible import visible
from engine_host.protocol.bench.checks import Check, CheckName, Outcome
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.bench.lab import (
    Figure,
    Gate,
    LabEngine,
    LabMachine,
    LabRun,
    PartResult,
    Quantity,
    Sample,
    Standing,
)
from engine_host.protocol.bench.sweeps import (
    ArmMemory,
    LabSweep,
    SweepArm,
    SweepChange,
    SweepKind,
    SweepReport,
)
from engine_host.protocol.errors import Problem, Reason
from tests.unit.cli.bench.test_lab import a_run

HOSTILE = "<script>alert(1)</script>\x1b[31m|`rm`\n# A [x](javascript:y) \"onload='z' &amp; **b**\u202e=1+1"
VALUES = {Quantity.DECODE: 1234.56, Quantity.TTFT: 0.08257, Quantity.TOTAL: 12.3456}
MARKS = {Quantity.TTFT: Standing.STRUCK}


def a_part(name: str = "story", why: str = "it is empty") -> PartResult:
    figures = tuple(
        Figure(
            quantity=quantity,
            standing=MARKS.get(quantity, Standing.PUBLISHED),
            value=value,
            low=value * 0.97,
            high=value * 1.04,
            q1=value * 0.99,
            q3=value * 1.01,
            samples=7,
            gate=Gate.INCOHERENT if quantity in MARKS else None,
            why=why if quantity in MARKS else "",
        )
        for quantity, value in VALUES.items()
    )
    return PartResult(name=name, streams=1, warm=1, measured=7, max_tokens=9, done=7, figures=figures)


def samples(name: str = "story") -> tuple[Sample, ...]:
    return tuple(
        Sample(
            part=name, number=n, round=n, warm=False, salt="s", started=n * 2.0, first=0.1,
            last=0.9 + n / 100, total=1.0 + n / 100, arrivals=(0.1, 0.9 + n / 100), tokens=9,
        )
        for n in range(7)
    )  # fmt: skip


def a_sweep(run: LabRun, **words: str) -> SweepReport:
    said = words.get("said", "none")
    sweep = LabSweep(
        id="20260101-000000-kv-aaaa",
        kind=SweepKind.KV,
        engine=words.get("engine", "m"),
        started_at=1.0,
        command=words.get("command", "sndr bench sweep kv"),
        values=(words.get("value", "f16"), "q8_0"),
        arms=(
            SweepArm(
                value=words.get("value", "f16"),
                run=run.id,
                complete=True,
                acceptance_length=2.5,
                memory=ArmMemory(told_kv_cache_bytes=97 << 20, predicted_kv_cache_tokens=4096),
            ),
            SweepArm(value="q8_0", problem=Problem(reason=Reason.OUT_OF_MEMORY, message=said)),
        ),
        not_restored=Problem(reason=Reason.OUT_OF_MEMORY, message=said),
    )
    change = SweepChange(
        value="q8_0", part=words.get("part", "story"), quantity=Quantity.DECODE, verdict=None, words=said
    )
    return SweepReport(sweep=sweep, runs=(run,), changes=(change,))


def hostile_run(**changed: Any) -> LabRun:
    """A run of which every word that is not this program's own is hostile."""
    engine = LabEngine(
        address=HOSTILE,
        model=HOSTILE,
        engine=HOSTILE,
        version=HOSTILE,
        model_path=f"/models/{HOSTILE}",
        command=HOSTILE,
        argv=(HOSTILE,),
        settings={HOSTILE: HOSTILE},
        patches=(HOSTILE,),
    )
    machine = LabMachine(
        program=HOSTILE, python=HOSTILE, system=HOSTILE, processor=HOSTILE, gpus=(HOSTILE,), driver=HOSTILE
    )
    check = Check(name=CheckName.TOOL_CALL, title=HOSTILE, outcome=Outcome.FAILED, why=HOSTILE)
    plain: dict[str, Any] = {
        "engine": engine,
        "machine": machine,
        "checks": (check,),
        "parts": (a_part(HOSTILE, HOSTILE),),
        "samples": samples(HOSTILE),
        "complete": False,
        "ended_by": HOSTILE,
        "turns_with": HOSTILE,
        "replaced": (HOSTILE,),
    }
    return a_run(**{**plain, **changed})


def hostile_sweep() -> SweepReport:
    named = dict.fromkeys(("said", "engine", "command", "value", "part"), HOSTILE)
    return a_sweep(hostile_run(), **named)


def hostile_comparison() -> LabComparison:
    other = hostile_run(engine=LabEngine(address="http://x", model=f"b{HOSTILE}", version="2"), id="b")
    return compared(hostile_run(), other)


RUN = a_run(parts=(a_part(),), samples=samples())
SLOWER = RUN.model_copy(update={"id": "20260103-000000-quick-cccc"})
FORMS: list[tuple[Callable[[], Any], Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = [
    (lambda: RUN, report_lines, run_markdown, run_html),
    (lambda: compared(RUN, SLOWER), comparison_lines, comparison_markdown, comparison_html),
    (lambda: a_sweep(RUN), sweep_lines, sweep_markdown, sweep_html),
]
HOSTILE_FORMS = [
    (hostile_run, report_lines, run_markdown, run_html, run_for_others),
    (hostile_comparison, comparison_lines, comparison_markdown, comparison_html, comparison_for_others),
    (hostile_sweep, sweep_lines, sweep_markdown, sweep_html, sweep_for_others),
]
NAMES = ["run", "comparison", "sweep"]


def numbers(lines: list[str]) -> set[str]:
    """The numbers with a point or a comma in a text: those of figures, however they are framed."""
    text = re.sub(r"<svg.*?</svg>|<style.*?</style>", " ", "\n".join(lines), flags=re.S)
    return set(re.findall(r"\d[\d,]*\.\d+|\d{1,3},\d{3}", re.sub(r"<[^>]*>|\\", " ", text)))


@pytest.mark.parametrize(("made", "terminal", "markdown", "html"), FORMS, ids=NAMES)
def test_every_form_has_the_same_figures(
    made: Callable[[], Any], terminal: Any, markdown: Any, html: Any
) -> None:
    value = made()
    shown = numbers(terminal(value))
    assert shown
    for other in (numbers(markdown(value)), numbers(html(value))):
        assert shown <= other


def test_the_figures_are_those_of_json() -> None:
    part = json.loads(run_for_others(RUN).model_dump_json())["parts"][0]
    told = {one["quantity"]: one["value"] for one in part["figures"]}
    assert told == {quantity.value: value for quantity, value in VALUES.items()}
    cells = [cell for figure in RUN.parts[0].figures for cell in figure_row(figure)]
    assert {"1,234.6 tok/s", "[struck 82.57 ms]", "12,346 ms"} <= set(cells)


class Tags(HTMLParser):
    """Collects the tags of a page, and the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize(("made", "_t", "_m", "html", "_o"), HOSTILE_FORMS, ids=NAMES)
def test_html_has_no_tag_of_a_stranger(made: Any, _t: Any, _m: Any, html: Any, _o: Any) -> None:
    page = "\n".join(html(made()))
    found = Tags()
    found.feed(page)
    assert not found.tags & {"script", "a", "img", "iframe", "object", "link"}
    assert not [name for name in found.attributes if name.startswith("on") or name in {"src", "href"}]
    assert "&lt;script&gt;" in page
    assert all(sign.isprintable() or sign == "\n" for sign in page)


@pytest.mark.parametrize(("made", "_t", "markdown", "_h", "_o"), HOSTILE_FORMS, ids=NAMES)
def test_markdown_has_no_markup_of_a_stranger(made: Any, _t: Any, markdown: Any, _h: Any, _o: Any) -> None:
    lines = markdown(made())
    assert all(sign.isprintable() for line in lines for sign in line)
    text = "\n".join(lines)
    assert "&lt;script" in text
    # Each sign that would begin markup has a backslash before it.
    assert not re.findall(r"(?<!\\)(?:<script|`rm|\[x\]\(|\*\*b)", text)
    assert not [line for line in lines if line.startswith("# A")]
    tables = [line.replace("\\|", "") for line in lines if line.startswith("|")]
    blocks = re.split(r"\n(?!\|)", "\n".join(line if line.startswith("|") else "" for line in lines))
    assert tables
    for block in blocks:
        rows = [row.replace("\\|", "").count("|") for row in block.splitlines() if row.startswith("|")]
        assert len(set(rows)) <= 1, block


@pytest.mark.parametrize(("made", "terminal", "_m", "_h", "_o"), HOSTILE_FORMS, ids=NAMES)
def test_a_terminal_gets_no_sign_that_moves_it(made: Any, terminal: Any, _m: Any, _h: Any, _o: Any) -> None:
    # As the command line writes each line.
    text = "\n".join(visible(line) for line in terminal(made()))
    assert "<script>" in text
    assert all(sign.isprintable() or sign == "\n" for sign in text)


@pytest.mark.parametrize(("made", "_t", "_m", "_h", "others"), HOSTILE_FORMS, ids=NAMES)
def test_json_is_one_line_that_reads_back(made: Any, _t: Any, _m: Any, _h: Any, others: Any) -> None:
    value = others(made())
    text = value.model_dump_json()
    assert "\n" not in text
    assert "\x1b" not in text
    assert type(value).model_validate_json(text) == value
