"""The memory bars and the question behind them: what is drawn is what was computed, the newest wins."""

import asyncio

from PySide6.QtCore import QPointF

from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.launch.fit import FitRequest
from sndr_gui.models.fit.device_memory import device_memories
from sndr_gui.models.fit.query import FitQuery
from sndr_gui.views.graphs.memory_bar import MemoryView
from tests.views.conftest import Stage
from tests.views.samples import fit as fit_samples

FIT = "/v1/fit"


def asked(stage: Stage) -> list[int]:
    """The contexts that were asked for."""
    return [body["context"] for body in stage.host.sent("POST", FIT)]


async def test_of_many_questions_in_a_row_few_are_sent_and_the_last_one_stays(stage: Stage) -> None:
    question = FitQuery(stage.session)
    for context in range(1024, 66_560, 1024):
        question.ask(FitRequest(model="m", context=context))
    assert question.waiting
    await stage.until(lambda: not question.waiting)
    assert asked(stage) == [65_536]
    assert question.report is not None
    assert question.report.context == 65_536


async def test_a_slow_answer_never_overwrites_a_newer_question(stage: Stage) -> None:
    stage.host.fit_seconds = 0.15
    question = FitQuery(stage.session)
    seen: list[int] = []
    question.changed.connect(lambda: seen.append(question.report.context) if question.report else None)
    for context in (1024, 2048, 4096, 8192):
        question.ask(FitRequest(model="m", context=context))
        # Longer than the pause before a question, shorter than an answer takes.
        await asyncio.sleep(0.08)
    await stage.until(lambda: not question.waiting)
    assert seen == sorted(seen)
    assert question.report is not None
    assert question.report.context == asked(stage)[-1] == 8192


async def test_the_answer_for_another_model_is_dropped(stage: Stage) -> None:
    stage.host.fit_seconds = 0.1
    question = FitQuery(stage.session)
    question.ask(FitRequest(model="first", context=1024))
    await stage.until(lambda: asked(stage))
    question.ask(FitRequest(model="second", context=2048))
    assert not question.report
    await stage.until(lambda: not question.waiting)
    assert question.report is not None
    assert question.report.model == "second"


async def test_a_refusal_is_kept_with_its_sentence_and_asked_again_on_demand(stage: Stage) -> None:
    stage.host.refuse[FIT] = Problem(reason=Reason.NOT_FOUND, message="There is no such model.")
    question = FitQuery(stage.session)
    question.ask(FitRequest(model="m", context=1024))
    await stage.until(lambda: question.problem is not None)
    assert question.sentence == "There is no such model."
    assert not question.waiting
    assert question.report is None
    question.ask(FitRequest(model="m", context=1024))
    assert question.problem is not None, "the same question is not asked twice by itself"
    del stage.host.refuse[FIT]
    question.refresh()
    await stage.until(lambda: question.report is not None)
    assert question.sentence == ""


async def test_nothing_is_drawn_before_something_was_computed(stage: Stage) -> None:
    view = MemoryView()
    view.show_report(None, True)
    assert view.bars.devices == ()
    assert view.bars.accessibleDescription() == "not computed"
    assert view.legend.isHidden()
    report = fit_samples.report(FitRequest(model="m", context=32_768))
    view.show_report(report, False)
    assert "18.6\u00a0GiB needed" in view.summary.text()
    view.show_report(report, True)
    assert view.bars.waiting
    assert view.summary.text() == "Computing…"
    assert view.bars.accessibleDescription().startswith("not computed; before: ")


async def test_the_bar_says_what_lies_under_the_pointer(stage: Stage) -> None:
    view = MemoryView()
    view.resize(400, 200)
    view.bars.resize(386, view.bars.height())
    (device,) = device_memories(fit_samples.report(FitRequest(model="m", context=32_768)))
    view.bars.show_devices((device,), False)

    def at(share: float) -> str:
        return view.bars.tooltip_at(QPointF(1 + share * 384, 30))

    assert at(0.02) == "Other processes hold 2 GiB"
    assert at(0.4).startswith("weights 16 GiB")
    assert at(0.83).startswith("KV cache and states 2 GiB")
    assert at(0.92) == "2.4 GiB free"
    assert at(0.99).startswith("Beyond")
    view.bars.grab()
