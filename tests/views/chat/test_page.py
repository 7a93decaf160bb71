"""Chat: streaming, stopping, failing in the middle, waiting, tool calls, and what is not loaded."""

import asyncio
import json
import shlex

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Problem, Reason
from sndr_gui.views.chat.page import ChatView
from sndr_gui.views.chat.rich_text import MessageText
from tests.views.conftest import Stage
from tests.views.samples import host as samples

PATH = "/openai/v1/chat/completions"


async def chat(stage: Stage) -> ChatView:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.running)
    stage.window.go("chat")
    page = stage.window.page
    assert isinstance(page, ChatView)
    await stage.until(lambda: page.model.available)
    return page


async def test_answer_streams_and_is_measured(stage: Stage) -> None:
    page = await chat(stage)
    QTest.keyClicks(page.composer.edit, "Hello")
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Return)
    assert page.model.busy
    assert page.composer.stop.isVisible()
    await stage.until(lambda: not page.model.busy)
    answer = page.model.messages[1]
    assert answer.text == "Hello **there**.\n\nSecond paragraph."
    assert (answer.rate, answer.tokens, answer.state) == (120.5, 9, "done")
    assert "120.5 tok/s" in answer.metrics()
    assert "9 tokens" in answer.metrics()
    assert "(client)" in answer.metrics()
    view = page._views[1]
    assert view.metrics.accessibleDescription().startswith("Measured by the client")
    assert view.body.toPlainText().startswith("Hello there."), "Markdown is shown as text"
    assert view.copy.isVisible()
    sent = stage.host.sent("POST", PATH)[0]
    assert sent["messages"] == [{"role": "user", "content": "Hello"}]
    assert sent["stream"] is True


async def test_shift_enter_begins_a_line(stage: Stage) -> None:
    page = await chat(stage)
    QTest.keyClicks(page.composer.edit, "one")
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(page.composer.edit, "two")
    assert page.composer.edit.toPlainText() == "one\ntwo"
    assert not page.model.messages


async def test_stop_keeps_what_came(stage: Stage) -> None:
    stage.host.chat = [samples.chunk("Half of "), 20.0, samples.chunk("never")]
    page = await chat(stage)
    page.model.send("Go")
    await stage.until(lambda: page.model.messages[1].text == "Half of ")
    page.composer.stop.click()
    await stage.until(lambda: not page.model.busy)
    answer = page.model.messages[1]
    assert (answer.text, answer.state) == ("Half of ", "stopped")
    assert "stopped" in answer.metrics()
    page.model.new_chat()
    assert not page.model.messages


async def test_escape_stops_an_answer_and_nothing_else(stage: Stage, qtbot: QtBot) -> None:
    stage.host.chat = [samples.chunk("Half of "), 20.0, samples.chunk("never")]
    page = await chat(stage)
    assert "Esc" in page.composer.stop.toolTip()
    with qtbot.waitActive(stage.window):
        stage.window.activateWindow()
    page.composer.edit.setFocus()
    QTest.keyClicks(page.composer.edit, "kept")
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Escape)
    assert page.composer.edit.toPlainText() == "kept", "with no answer under way it does nothing"
    page.model.send("Go")
    await stage.until(lambda: page.model.messages[1].text == "Half of ")
    stage.window.palette_box.open()
    QTest.keyClick(stage.window.palette_box.edit, Qt.Key.Key_Escape)
    assert not stage.window.palette_box.isVisible()
    await asyncio.sleep(0.05)
    assert page.model.busy, "Esc closed what lay over the page"
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Escape)
    await stage.until(lambda: not page.model.busy)
    assert page.model.messages[1].state == "stopped"


async def test_the_rate_of_an_engine_that_tells_none_is_that_of_its_text(stage: Stage) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 9}}
    stage.host.chat = [
        samples.chunk("One"),
        0.1,
        samples.chunk(" two"),
        0.2,
        f"data: {json.dumps(usage)}\n\n",
        "data: [DONE]\n\n",
    ]
    page = await chat(stage)
    page.model.send("Go")
    await stage.until(lambda: not page.model.busy)
    answer = page.model.messages[1]
    assert answer.ttft is not None
    assert answer.last is not None
    # What came after the last piece of text is not of the text.
    assert answer.rate == pytest.approx(8 / (answer.last - answer.ttft))
    assert "tok/s" in answer.metrics()


async def test_error_in_the_middle_keeps_the_text_and_says_what_happened(stage: Stage) -> None:
    error = {"error": {"message": "The engine ended.", "code": "engine_crashed"}}
    stage.host.chat = [samples.chunk("So far"), f"data: {json.dumps(error)}\n\n"]
    page = await chat(stage)
    page.model.send("Go")
    await stage.until(lambda: not page.model.busy)
    answer = page.model.messages[1]
    assert answer.text == "So far"
    assert answer.problem is not None
    assert answer.problem.reason is Reason.ENGINE_CRASHED
    assert page._views[1].problem.isVisible()


async def test_broken_connection_keeps_the_text(stage: Stage) -> None:
    stage.host.chat = [samples.chunk("So far"), 0.05]
    stage.host.chat_broken = True
    page = await chat(stage)
    page.model.send("Go")
    await stage.until(lambda: not page.model.busy)
    assert page.model.messages[1].text == "So far"
    assert page.model.messages[1].state == "failed"


async def test_refused_request_shows_the_problem(stage: Stage) -> None:
    stage.host.refuse[PATH] = Problem(reason=Reason.QUEUE_FULL, message="64 requests wait already.")
    page = await chat(stage)
    page.model.send("Go")
    await stage.until(lambda: not page.model.busy)
    problem = page.model.messages[1].problem
    assert problem is not None
    assert (problem.reason, problem.message) == (Reason.QUEUE_FULL, "64 requests wait already.")


async def test_waiting_is_shown(stage: Stage) -> None:
    stage.host.chat = [": waiting for a free slot, 3 ahead\n\n", 0.3, samples.chunk("At last")]
    page = await chat(stage)
    page.model.send("Go")
    await stage.until(lambda: "Waiting for a free slot, 3 ahead" in page._views[1].metrics.text())
    await stage.until(lambda: not page.model.busy)


async def test_tool_calls_are_cards(stage: Stage) -> None:
    def call(**function: str) -> str:
        delta = {"tool_calls": [{"index": 0, "function": function}]}
        return f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n"

    stage.host.chat = [call(name="weather"), call(arguments='{"city": '), call(arguments='"Bern"}')]
    page = await chat(stage)
    page.model.send("Go")
    await stage.until(lambda: not page.model.busy)
    assert page.model.messages[1].calls[0].name == "weather"
    assert json.loads(page.model.messages[1].calls[0].arguments) == {"city": "Bern"}
    assert page._views[1]._calls.count() == 1


async def test_regenerate_options_and_curl(stage: Stage) -> None:
    page = await chat(stage)
    page.options.click()
    QTest.keyClicks(page.panel.system, "Be brief.")
    QTest.keyClicks(page.panel.temperature, "0.5")
    QTest.keyClicks(page.panel.tokens, "64")
    page.model.send("It's me")
    await stage.until(lambda: not page.model.busy)
    page._views[1].regenerate.click()
    await stage.until(lambda: len(stage.host.sent("POST", PATH)) == 2)
    await stage.until(lambda: not page.model.busy)
    body = stage.host.sent("POST", PATH)[1]
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "It's me"},
    ]
    assert (body["temperature"], body["max_tokens"]) == (0.5, 64)
    assert len(page.model.messages) == 2
    page._views[1].curl.click()
    command = QGuiApplication.clipboard().text()
    assert command.startswith("curl http://127.0.0.1:8020/v1/chat/completions")
    assert "It'\\''s me" in command
    page.panel.system.clear()
    page.panel.temperature.clear()
    stage.host.set_engine(samples.engine(EngineState.FAILED))
    await stage.until(lambda: stage.state.running is None)
    page._views[1].curl.click()
    words = shlex.split(QGuiApplication.clipboard().text())
    assert json.loads(words[words.index("-d") + 1]) == body, "what was sent, whatever runs and is set now"


async def test_without_an_engine_the_page_says_so(stage: Stage) -> None:
    stage.window.go("chat")
    page = stage.window.page
    assert isinstance(page, ChatView)
    assert "No engine runs" in page.empty.sentence.text()
    assert page.launch.isVisible()
    assert not page.composer.send.isEnabled()
    assert not any(example.isVisible() for example in page.examples)


async def test_two_models_with_one_engine_say_what_is_missing(stage: Stage) -> None:
    page = await chat(stage)
    page.compare.click()
    assert "need two engines" in stage.window.toasts.shown[-1].text
    assert not page.compare.isChecked()


async def test_examples_send_themselves(stage: Stage) -> None:
    page = await chat(stage)
    page.examples[0].click()
    await stage.until(lambda: page.model.messages and not page.model.busy)
    assert page.model.messages[0].text == page.examples[0].text()


async def test_text_is_drawn_thirty_times_a_second_at_most(stage: Stage) -> None:
    stage.host.chat = [piece for _ in range(200) for piece in (samples.chunk("word "), 0.002)]
    page = await chat(stage)
    drawn: list[str] = []
    page.model.lanes[0].appended.connect(lambda _place, text: drawn.append(text))
    page.model.send("Go")
    began = asyncio.get_running_loop().time()
    await stage.until(lambda: not page.model.busy, 15)
    seconds = asyncio.get_running_loop().time() - began
    assert "".join(drawn) == "word " * 200
    assert len(drawn) <= 31 * seconds + 3


def test_markdown_never_reaches_out(qtbot: QtBot) -> None:
    text = MessageText("Answer")
    qtbot.addWidget(text)
    text.append_text(
        "![pixel](http://example.invalid/x.png) <img src='file:///etc/passwd'> [link](http://a.invalid)\n\n"
    )
    text.finish()
    assert not text.loadResource(2, QUrl("http://example.invalid/x.png"))
    chosen: list[str] = []
    text.link_chosen.connect(chosen.append)
    text.anchorClicked.emit(QUrl("http://a.invalid"))
    assert chosen == ["http://a.invalid"]
    assert not text.openLinks()
    assert not text.openExternalLinks()


def test_code_blocks_survive_the_cut_into_paragraphs(qtbot: QtBot) -> None:
    text = MessageText("Answer")
    qtbot.addWidget(text)
    source = "Look:\n\n```python\ndef a():\n\n    return 1\n```\n\nDone *now*."
    for letter in source:
        text.append_text(letter)
    text.finish()
    shown = text.toPlainText()
    assert "def a():" in shown
    assert "```" not in shown
    assert shown.rstrip().endswith("Done now.")
    assert text.written == source


async def test_arguments_of_a_tool_call_that_are_nested_for_ever_are_shown_as_they_are(stage: Stage) -> None:
    nested = "[" * 50_000
    delta = {"tool_calls": [{"index": 0, "function": {"name": "weather" * 9_000, "arguments": nested}}]}
    stage.host.chat = [f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n"]
    page = await chat(stage)
    page.model.send("Go")
    await stage.until(lambda: not page.model.busy)
    assert page.model.messages[1].calls[0].arguments == nested
    assert page._views[1]._calls.count() == 1
    assert page._views[1].minimumSizeHint().width() < 2_000
