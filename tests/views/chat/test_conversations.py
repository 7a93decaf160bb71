"""Conversations that are kept, branches of a question, two models side by side, and hostile answers."""

import json
import time
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from engine_host.client import Folders
from engine_host.client.chats.store import ChatStore
from engine_host.protocol.engines import EngineState
from sndr_gui.views.chat.page import ChatView
from sndr_gui.views.settings.page import SettingsView
from tests.views.conftest import Stage
from tests.views.samples import engines as engine_samples
from tests.views.samples import host as samples

PATH = "/openai/v1/chat/completions"


def delta(**fields: object) -> str:
    return f"data: {json.dumps({'choices': [{'delta': fields}]})}\n\n"


async def chat(stage: Stage, engines: int = 1) -> ChatView:
    stage.host.set_engine(samples.engine(EngineState.READY, name="first"))
    if engines > 1:
        at = time.time() - 300
        stage.host.set_engine(
            engine_samples.vllm(EngineState.READY, id="engine-2", name="second", created_at=at)
        )
    await stage.until(lambda: len(stage.state.live) == engines)
    stage.window.go("chat")
    page = stage.window.page
    assert isinstance(page, ChatView)
    await stage.until(lambda: page.model.available)
    return page


async def ask(stage: Stage, page: ChatView, question: str, answer: str = "Yes.") -> None:
    stage.host.chat = [delta(content=answer), "data: [DONE]\n\n"]
    page.model.send(question)
    await stage.until(lambda: not page.model.busy)


def said(stage: Stage) -> list[str]:
    return [notice.text for notice in stage.window.toasts.shown]


async def test_a_conversation_is_kept_found_renamed_deleted_and_brought_back(stage: Stage) -> None:
    page = await chat(stage)
    model = page.model
    store = ChatStore(Folders.resolve().chats)
    page.options.click()
    QTest.keyClicks(page.panel.fields["seed"].edit, "7")
    QTest.keyClicks(page.panel.fields["presence_penalty"].edit, "-0,5")
    assert "--presence-penalty -0.5 --seed 7" in page.panel.command.label.text()
    await ask(stage, page, "Is <b>it</b> blue?")
    first = model.shown.id
    await stage.until(lambda: store.ids() and len(store.read(first).lanes[0].messages) == 2)
    assert page.title.text() == "Is <b>it</b> blue?"
    model.new_chat()
    assert model.options.sampling == {"seed": 7, "presence_penalty": -0.5}, "settings go on"
    page.panel.reset.click()
    await ask(stage, page, "Is it red?")
    stage.window.page.focus_filter()
    assert page.history.isVisible()
    await stage.until(lambda: page.history.list.count() == 2)
    QTest.keyClicks(page.history.filter, "BLUE")
    await stage.until(lambda: page.history.list.count() == 1)
    QTest.keyClick(page.history.filter, Qt.Key.Key_Return)
    QTest.keyClick(page.history.list, Qt.Key.Key_Return)
    await stage.until(lambda: model.shown.id == first)
    assert [message.text for message in model.messages] == ["Is <b>it</b> blue?", "Yes."]
    assert model.options.sampling == {"seed": 7, "presence_penalty": -0.5}
    assert page.panel.fields["seed"].edit.text() == "7"
    page._views[1].curl.click()
    assert '"seed": 7' in QGuiApplication.clipboard().text(), "a kept answer has its request too"
    page.history.rename.click()
    editor = page.history.list.focusWidget()
    assert editor is not None
    QTest.keyClicks(editor, "Colours")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    await stage.until(lambda: store.read(first).title == "Colours")
    await stage.until(lambda: page.title.text() == "Colours")
    await stage.until(lambda: page.history.remove.isEnabled())
    page.history.remove.click()
    await stage.until(lambda: first not in store.ids())
    await stage.until(lambda: not model.messages)
    notice = next(notice for notice in stage.window.toasts.shown if "deleted" in notice.text)
    assert notice.action is not None
    notice.action()
    await stage.until(lambda: first in store.ids())


async def test_switched_off_nothing_is_written_and_export_still_is(stage: Stage, tmp_path: Path) -> None:
    page = await chat(stage)
    stage.window.go("settings")
    settings = stage.window.page
    assert isinstance(settings, SettingsView)
    settings.chats.keep.click()
    stage.window.go("chat")
    page.show_history.click()
    assert "not kept" in page.history.note.text()
    await ask(stage, page, "A secret?", "No.")
    page.model.export(str(tmp_path / "out.md"))
    page.model.export(str(tmp_path / "out.json"))
    await stage.until(lambda: (tmp_path / "out.md").exists() and (tmp_path / "out.json").exists())
    assert "## You\n\nA secret?" in (tmp_path / "out.md").read_text()
    assert json.loads((tmp_path / "out.json").read_text())["lanes"][0]["messages"][1]["text"] == "No."
    page.model.export(str(tmp_path / "out.md" / "x.md"))
    await stage.until(lambda: any("could not be saved" in text for text in said(stage)))
    assert not Folders.resolve().chats.exists()


async def test_a_damaged_or_full_store_is_said_and_the_chat_goes_on(stage: Stage) -> None:
    folder = Folders.resolve().chats
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file is in the way")
    page = await chat(stage)
    await ask(stage, page, "Hello?")
    await stage.until(lambda: any("could not be saved" in text for text in said(stage)))
    await ask(stage, page, "Still there?")
    assert len(page.model.messages) == 4


async def test_an_edit_and_a_new_answer_are_branches(stage: Stage) -> None:
    page = await chat(stage)
    model = page.model
    await ask(stage, page, "One?", "First.")
    await ask(stage, page, "Two?", "Second.")
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Up)
    assert page.composer.edit.toPlainText() == "Two?"
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Escape)
    assert page.composer.edit.toPlainText() == ""
    page._views[0].edit.click()
    stage.host.chat = [delta(content="Anew.")]
    page.composer.edit.setPlainText("One, edited?")
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Return)
    await stage.until(lambda: not model.busy)
    assert [message.text for message in model.messages] == ["One, edited?", "Anew."]
    assert stage.host.sent("POST", PATH)[-1]["messages"] == [{"role": "user", "content": "One, edited?"}]
    assert page._views[0].branch.text() == "2 of 2"
    page._views[0].before.click()
    assert [message.text for message in model.messages] == ["One?", "First.", "Two?", "Second."]
    assert len(page._views) == 4
    stage.host.chat = [delta(content="Other.")]
    model.regenerate()
    await stage.until(lambda: not model.busy)
    assert [message.text for message in model.messages][-1] == "Other."
    page._views[3].before.click()
    assert model.messages[3].text == "Second."
    kept = model.shown.record()
    model._open(kept)
    await stage.until(lambda: len(page._views) == 4)
    assert [message.text for message in model.messages] == ["One?", "First.", "Two?", "Second."]
    assert page._views[3].branch.text() == "1 of 2"


async def test_two_models_answer_side_by_side_each_with_its_figures(stage: Stage) -> None:
    page = await chat(stage, 2)
    model = page.model
    await ask(stage, page, "Before?", "One.")
    page.compare.click()
    assert [lane.partner.name for lane in model.lanes] == ["first", "second"]
    assert [len(lane.messages) for lane in model.lanes] == [2, 2]
    figures = {"predicted_per_second": 50.0, "draft_n": 10, "draft_n_accepted": 7}
    stage.host.chat = [delta(content="Half "), 0.3, samples.chunk("more", timings=figures)]
    model.send("Both?")
    await stage.until(lambda: all(lane.messages[-1].text for lane in model.lanes))
    page.lanes[1].stop.click()
    await stage.until(lambda: not model.busy)
    assert [lane.messages[-1].state for lane in model.lanes] == ["done", "stopped"]
    assert "70 % of drafts accepted" in model.lanes[0].messages[-1].metrics()
    assert "drafts" not in model.lanes[1].messages[-1].metrics(), "it was not measured"
    assert [body["model"] for body in stage.host.sent("POST", PATH)[-2:]] == ["first", "second"]
    stage.host.chat = [delta(content="Half "), 20.0]
    page.in_turns.click()
    model.send("In turns?")
    await stage.until(lambda: model.lanes[0].messages[-1].text == "Half ")
    assert not model.lanes[1].busy
    page.composer.stop.click()
    await stage.until(lambda: not model.busy)
    assert len(model.lanes[1].messages) == 4, "stopping both, the second does not begin"
    first = model.shown.id
    page.lanes[1].alone.click()
    assert [lane.partner.name for lane in model.lanes] == ["second"]
    await stage.until(lambda: len(ChatStore(Folders.resolve().chats).ids()) == 2)
    titles = {entry.title for entry in ChatStore(Folders.resolve().chats).entries()[0]}
    assert titles == {"Before?", "Before? (first)"}
    assert model.shown.id == first


async def test_reasoning_and_tool_calls_are_folded(stage: Stage) -> None:
    page = await chat(stage)
    call = {"index": 0, "function": {"name": "look\u202e<b>", "arguments": '{"a": [1, "<img src=x>"]}'}}
    stage.host.chat = [
        delta(reasoning_content="Let me see. "),
        0.05,
        delta(content="So."),
        delta(tool_calls=[call]),
    ]
    page.model.send("Go")
    await stage.until(lambda: not page.model.busy)
    view = page._views[1]
    assert view.fold.text().startswith("Thought for")
    assert view.thought is None
    view.fold.click()
    thought = page._views[1].thought
    assert thought is not None
    assert thought.toPlainText().strip() == "Let me see."
    assert (view.fold.accessibleName(), view.fold.isChecked()) == ("Hide the reasoning", True)
    tool = view.call_views[0]
    assert "\u202e" not in tool.fold.text()
    tool.fold.click()
    assert tool.arguments is not None
    assert '"<img src=x>"' in tool.arguments.toPlainText(), "indented and literal"


async def test_hostile_answers_leave_a_page_that_works(stage: Stage) -> None:
    page = await chat(stage)
    for answer in (
        "<script>alert(1)</script>" * 200,
        "x" * 20_000,
        "\u202e\u2066" * 3000 + "\ufdd0\ufffc\x00\r\n\u2028",
        "|a" * 900 + "|\n" + "|-" * 900 + "|\n",
        "```\nx\n```\n" * 300,
        "*_`[" * 2000,
        "```py\n" + "\n" * 3000 + "é" * 5000,
    ):
        page.model.new_chat()
        await ask(stage, page, "Half \ud83d of a letter", answer)
        body = page._views[1].body
        await stage.until(lambda body=body: body.drawn)  # type: ignore[misc]
        assert page.model.messages[1].text == answer
        assert page._views[0].body.toPlainText() == "Half ? of a letter"
    assert page.minimumSizeHint().width() < 900
    assert page._views[1].body.findChild(type(page._views[1].copy)) is not None, "code has a copy button"
