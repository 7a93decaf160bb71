"""The doctor: empty, healthy, slow, failed, starting, and what it asks the host for."""

import time
from functools import partial
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from engine_host.protocol.bench.autopsy import (
    Autopsy,
    AutopsyEntry,
    AutopsyReading,
    Ending,
    HeldMemory,
    Knob,
    OpenedAutopsy,
)
from engine_host.protocol.bench.diagnosis import Diagnosis, DiagnosisQuery, SlowCause, SlowReason
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import install
from sndr_gui.models.doctor.words import missing_word, reason_words, remedy_of, title_of
from sndr_gui.views.doctor.page import DoctorView
from sndr_gui.views.doctor.record import RecordDialog
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.window.pages import PAGES
from tests.views.conftest import Stage
from tests.views.samples import host as samples

QUEUED = SlowCause(
    reason=SlowReason.QUEUED,
    engine="sndr-demo",
    sentence="Requests waited for a free stream in 62 % of the time.",
    share=0.62,
    evidence={"waiting_at_most": 9.0, "streams": 4.0},
    fix=Fix(text="Start it with more streams.", command="sndr fit sndr-demo --streams 8"),
)
EAGER = SlowCause(
    reason=SlowReason.EAGER,
    engine="sndr-demo",
    sentence="It was started without compiled graphs.",
    fix=Fix(text="Start it without this setting.", settings={"eager": False}),
)
LOG = (*(f"INFO loading {number}" for number in range(50)), "E cudaMalloc failed: out of memory", "INFO end")
FULL = Problem(
    reason=Reason.OUT_OF_MEMORY,
    message="The memory did not suffice.",
    cause="Weights and KV cache are larger than what is free.",
    fix=Fix(text="Choose a smaller context."),
    evidence={"line": "E cudaMalloc failed: out of memory"},
)


def doctor(stage: Stage) -> DoctorView:
    stage.window.go("doctor")
    page = stage.window.page
    assert isinstance(page, DoctorView)
    return page


def words(page: DoctorView) -> str:
    """Return all texts that are shown."""
    return "\n".join(one.text() for one in page.findChildren(QLabel) if one.isVisible())


async def test_an_empty_page_teaches(stage: Stage) -> None:
    page = doctor(stage)
    await stage.until(lambda: page.model.found)
    assert page.empty.isVisible()
    assert not page.slow.isVisible()
    assert not page.failure.isVisible()
    assert "measured and judged here" in page.empty.sentence.text()
    command = page.empty.findChild(CopyField)
    assert command is not None
    assert command.label.text() == "sndr run --demo"


async def test_causes_are_ranked_with_evidence_and_what_helps(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    stage.host.diagnosis = partial(samples.diagnosis, worked=42.0)
    page = doctor(stage)
    await stage.until(lambda: page.model.found and not page.empty.isVisible())
    assert "sndr-demo worked for at most 42.0 s of the last 10 minutes." in words(page)
    assert "Nothing that was measured slowed it down." in words(page)
    assert "sndr-demo: prefix hits" in page.not_measured.text()
    said = words(page)
    assert "its kernel module is not loaded (NVIDIA 10de:2684 at 0000:01:00.0)" in said
    assert "sudo modprobe nvidia" in said
    assert "no start has failed" in words(page)
    stage.host.diagnosis = lambda asked: samples.diagnosis(asked, QUEUED, EAGER)
    await stage.until(page.again.isEnabled)
    QTest.mouseClick(page.again, Qt.MouseButton.LeftButton)
    await stage.until(lambda: len(page.causes.rows) == 2)
    said = words(page)
    assert "1. Requests queue  ·  sndr-demo" in said
    assert "62 %" in said
    assert "all the time; its cost is not measured" in said
    assert "waiting at most 9  ·  streams 4" in said
    assert "sndr fit sndr-demo --streams 8" in said
    assert "Start it without this setting. (--set eager=false)" in said
    assert "Nothing that was measured" not in said
    first = page.causes.rows[0]
    page.refresh()
    assert page.causes.rows[0] is first, "the same causes keep their widgets, and the focus"
    QTest.mouseClick(page.causes.rows[1].open, Qt.MouseButton.LeftButton)
    assert stage.window.current == "launch"


async def test_a_moment_of_work_is_no_verdict(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    short = samples.diagnosis(DiagnosisQuery(), worked=2.0).model_copy(update={"too_little": ("sndr-demo",)})
    stage.host.diagnosis = lambda _asked: short
    page = doctor(stage)
    await stage.until(lambda: "Too little was measured" in page.verdict.text())
    assert "Nothing that was measured" not in words(page)


async def test_engine_and_time_are_chosen(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    asked: list[tuple[str | None, float]] = []

    def diagnose(query: DiagnosisQuery) -> Diagnosis:
        asked.append((query.engine, query.minutes))
        return samples.diagnosis(query)

    stage.host.diagnosis = diagnose
    page = doctor(stage)
    await stage.until(lambda: page.engine.count() == 2 and asked)
    assert page.command.label.text() == "sndr doctor"
    page.engine.setCurrentIndex(1)
    page.engine.activated.emit(1)
    await stage.until(lambda: asked[-1] == ("engine-1", 10.0))
    page.span.setCurrentIndex(2)
    page.span.activated.emit(2)
    await stage.until(lambda: asked[-1] == ("engine-1", 60.0))
    assert page.command.label.text() == "sndr doctor sndr-demo --minutes 60"
    await stage.until(lambda: not page.model.reading)


async def test_a_failed_start_is_told_with_its_decisive_lines(stage: Stage) -> None:
    failed = samples.engine(EngineState.FAILED, problem=FULL, last_lines=LOG)
    stage.host.set_engine(failed)
    page = doctor(stage)
    await stage.until(lambda: page.failure.failure.isVisible())
    said = words(page)
    assert page.failure.reason.text() == "out of memory"
    assert "Choose a smaller context." in said
    assert "> E cudaMalloc failed: out of memory" in said
    assert "INFO loading 48" in said
    assert "INFO loading 40" not in said
    assert "sndr logs engine-1" in said
    assert "sndr autopsy engine-1" in said
    again = samples.engine(EngineState.READY, id="engine-2", created_at=failed.created_at + 60)
    stage.host.set_engine(again)
    await stage.until(lambda: "is running" in page.failure.about.text())
    QTest.mouseClick(page.failure.failure.log, Qt.MouseButton.LeftButton)
    assert stage.window.current == "logs"
    assert stage.pages.logs.source == "engine-1"


async def test_the_engine_that_died_last_is_told_whenever_it_was_started(stage: Stage) -> None:
    made = partial(samples.engine, EngineState.FAILED, problem=FULL, last_lines=LOG)
    now = time.time()
    stage.host.set_engine(made(id="engine-9", created_at=now - 9, ended_at=now - 8))
    stage.host.set_engine(made(id="engine-1", name="older", created_at=now - 90, ended_at=now - 1))
    page = doctor(stage)
    await stage.until(lambda: "older (engine-1)" in page.failure.about.text())
    assert "sndr autopsy engine-1" in words(page)


def record(**more: Any) -> AutopsyEntry:
    """Return the record of an end under an earlier host."""
    told = {"id": "20261124-005319-3bbfc3", "at": time.time() - 7200, "engine": "engine-7", "name": "earlier"}
    told |= {"model": "m", "ending": Ending.CRASHED, "sentence": "It crashed.", "bytes": 9}
    return AutopsyEntry.model_validate({**told, **more})


async def test_ends_under_earlier_hosts_are_listed(stage: Stage) -> None:
    stage.host.autopsies = [record(), record(engine="engine-8", name="<b>evil</b>", sentence="<i>x</i>" * 99)]
    page = doctor(stage)
    await stage.until(page.failure.earlier.isVisible)
    said = words(page)
    assert not page.empty.isVisible()
    assert "2 h 00 min ago: earlier (engine-7): It crashed." in said
    assert "<b>evil</b> (engine-8)" in said
    assert "sndr autopsy 20261124-005319-3bbfc3" in said
    assert "no start has failed" in said
    failed = samples.engine(EngineState.FAILED, problem=FULL, last_lines=LOG, ended_at=time.time())
    stage.host.autopsies.append(record(id="20261124-005320-3bbfc3", engine=failed.id))
    stage.host.set_engine(failed)
    await stage.until(page.failure.failure.isVisible)
    shown = [row.sentence.text() for row in page.failure.earlier.rows if row.isVisible()]
    assert len(shown) == 2, "what is told above is not told again"


async def test_a_record_opens_in_the_window_and_leads_to_the_log(stage: Stage) -> None:
    engine = samples.engine(EngineState.FAILED, problem=FULL, last_lines=LOG, ended_at=time.time())
    known, gone = record(id="20261124-005320-3bbfc3", engine=engine.id), record()
    told = Autopsy(id=known.id, at=time.time(), program="1", engine=engine, seconds=600.0, step=1.0)
    part = HeldMemory(what="<b>main memory</b>", bytes=3 << 30, source="the system")
    knob = Knob(text="Set context to 4096.", saves=1 << 30, enough=True)
    reading = AutopsyReading(ending=Ending.MAIN_MEMORY, sentence="It was full.", held=(part,), knobs=(knob,))
    stage.host.opened_autopsies[known.id] = OpenedAutopsy(record=told, reading=reading)
    stage.host.autopsies = [known, gone]
    stage.host.set_engine(engine)
    page = doctor(stage)
    await stage.until(page.failure.open.isEnabled)
    page.failure.open.setFocus()
    QTest.keyClick(page.failure.open, Qt.Key.Key_Space)
    (dialog,) = page.findChildren(RecordDialog)
    await stage.until(dialog.log.isEnabled)
    said = dialog.shown.toPlainText()
    for words_of_it in (
        "It was full.",
        "<b>main memory</b> (the system)",
        "saves 1.0 GiB, and fits",
        LOG[-1],
    ):
        assert words_of_it in said
    QTest.mouseClick(dialog.log, Qt.MouseButton.LeftButton)
    assert not dialog.isVisible()
    await stage.until(lambda: stage.window.page is not page)
    # One that the host has removed meanwhile says so.
    page = doctor(stage)
    QTest.mouseClick(page.failure.earlier.rows[0].open, Qt.MouseButton.LeftButton)
    dialog = page.findChildren(RecordDialog)[-1]
    await stage.until(dialog.problem.isVisible)
    assert not dialog.shown.isVisible()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)


async def test_a_start_that_takes_its_time_is_well(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.STARTING))
    page = doctor(stage)
    await stage.until(lambda: page.failure.cold.isVisible())
    assert "is starting and has not failed: Load the weights" in words(page)
    assert not page.failure.failure.isVisible()


async def test_a_refusal_is_shown_and_hostile_words_are_words(stage: Stage) -> None:
    hostile = "<b>evil</b> " * 50
    engine = samples.engine(EngineState.READY, name=hostile)
    stage.host.set_engine(engine)
    cause = QUEUED.model_copy(update={"engine": hostile, "sentence": hostile, "evidence": {hostile: hostile}})
    stage.host.diagnosis = lambda asked: samples.diagnosis(asked, cause)
    page = doctor(stage)
    await stage.until(lambda: page.causes.rows)
    assert "<b>evil</b>" in words(page)
    stage.host.refuse["/v1/diagnosis"] = Problem(reason=Reason.NOT_FOUND, message="No such engine.")
    await stage.until(page.again.isEnabled)
    page.again.click()
    await stage.until(page.problem.isVisible)
    assert "No such engine." in words(page)
    await stage.until(lambda: not page.model.reading)


async def test_without_a_host_nothing_can_be_asked(stage: Stage) -> None:
    page = doctor(stage)
    await stage.until(lambda: page.model.found)
    await stage.host.stop()
    await stage.until(lambda: not page.again.isEnabled())
    assert page.subtitle.text() == "no connection"


@pytest.mark.parametrize("reason", list(SlowReason))
def test_every_cause_has_a_title_and_a_page(reason: SlowReason) -> None:
    cause = QUEUED.model_copy(update={"reason": reason})
    assert title_of(cause)
    assert remedy_of(cause).page in {page.name for page in PAGES}


def test_reasons_are_words() -> None:
    assert reason_words(Reason.KERNEL_UNSUPPORTED) == "not for this GPU"
    assert reason_words(Reason.GGUF_TRUNCATED) == "corrupt file"


def test_what_was_not_measured_is_named_in_the_language() -> None:
    install("de")
    try:
        assert (
            missing_word("my engine: the KV cache, prefix hits") == "my engine: der KV-Cache, Präfix-Treffer"
        )
        assert missing_word("something else") == "something else"
    finally:
        install("en")
