"""The inspector, the capture of texts and the prefix lens of Monitor, over the fake host."""

import json
import stat
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine_host.protocol.endpoint.requests import (
    CapturedRequest,
    CaptureState,
    Conversation,
    Divergence,
    KeptText,
    PrefixReason,
    PrefixTurn,
    PromptPart,
    RequestDetail,
)
from engine_host.protocol.engines import RequestState
from engine_host.protocol.events import EngineRequestEvent
from sndr_gui.views.monitor.inspector import InspectorDialog
from sndr_gui.views.monitor.page import MonitorView
from tests.views.conftest import Stage
from tests.views.samples import host as samples

HOSTILE = "\x1b[2J<b onload=x>&amp;</b>\u202ekcab\u2028" + "y" * 300_000


def turn(request: str, reason: PrefixReason, **changes: Any) -> PrefixTurn:
    return PrefixTurn(
        request=request, at=1000.0, engine="engine-1", model="sndr-demo", parts=3, reason=reason
    ).model_copy(update=changes)


def captured(text: str) -> CapturedRequest:
    kept = KeptText(text=json.dumps({"messages": [text]}), bytes=10)
    return CapturedRequest(
        path="/v1/messages", headers=(("user-agent", text[:2000]),), asked=kept, engine_path="/v1/x",
        translated=kept, difference=f"-{text}\n+b", engine_answer=KeptText(text=text, bytes=9),
        answer=KeptText(text=text, bytes=9), status=200, text=text, curl="curl 'safe'",
    )  # fmt: skip


async def opened(stage: Stage, **changes: Any) -> MonitorView:
    """Monitor in front, with one request."""
    request = samples.request(RequestState.DECODE, 1, client_name="Claude Code 2.1", **changes)
    stage.host.requests.append(request)
    stage.host.details["req-1"] = RequestDetail(request=request)
    stage.window.go("monitor")
    page = stage.window.page
    assert isinstance(page, MonitorView)
    stage.host.publish(EngineRequestEvent(request=request))
    await stage.until(lambda: page.model.requests.total == 1)
    page.table.selectRow(0)
    return page


async def inspector(stage: Stage, page: MonitorView) -> InspectorDialog:
    """The inspector of the chosen request, opened by a key."""
    page.table.setFocus()
    QTest.keyClick(page.table, Qt.Key.Key_Return)
    found = page.findChildren(InspectorDialog)
    if not found:  # A window that is drawn nowhere is not always active, and then has no keys.
        page.inspect.click()
        found = page.findChildren(InspectorDialog)
    dialog = found[-1]
    await stage.until(lambda: dialog.model.detail is not None)
    return dialog


async def test_without_texts_the_inspector_shows_figures_and_teaches(stage: Stage) -> None:
    page = await opened(stage)
    await stage.until(lambda: page.keeping.model.sentence == "Texts of requests are not kept.")
    dialog = await inspector(stage, page)
    facts = dict(dialog.model.facts())
    assert facts["Client"] == "Claude Code 2.1"
    assert facts["Tokens in"] == facts["Decode"] == facts["Drafts accepted"] == "not measured"
    assert "not kept" in dialog._note.text()
    assert not dialog.tabs.buttons[1].isEnabled()
    assert not dialog.export.isEnabled()
    dialog.keep.click()
    await stage.until(lambda: stage.host.sent("PUT", "/v1/captures"))
    await stage.until(lambda: dialog.keep.isHidden())
    assert page.keeping.model.sentence.startswith("Texts are kept in memory until")
    dialog.reject()
    page.keeping.forget.click()
    await stage.until(lambda: not page.keeping.model.on)


async def test_hostile_texts_are_text_and_can_be_copied_and_exported(stage: Stage, tmp_path: Path) -> None:
    page = await opened(stage, captured=True)
    request = stage.host.requests[0]
    again = turn("req-1", PrefixReason.CACHE_COLD, read_again=900, lost_seconds=1.5, checkpoint=768)
    again = again.model_copy(update={"checkpoint_again": 1232})
    stage.host.details["req-1"] = RequestDetail(request=request, captured=captured(HOSTILE), turn=again)
    dialog = await inspector(stage, page)
    await stage.until(lambda: bool(dialog.texts["Answer"].toPlainText()))
    for name, shown in dialog.texts.items():
        told = shown.toPlainText()
        assert told, name
        assert not {"\x1b", "\u202e"} & set(told), name
        assert len(told) < 210_000
    assert "<b onload=x>&amp;</b>" in dialog.texts["Answer"].toPlainText()
    facts = dict(dialog.model.facts())
    assert facts["Prefix"] == (
        "same prompt, cold cache: another slot, or evicted; "
        "the hit ended at the state kept at 768 tokens, so that 1,232 were computed again"
    )
    assert (facts["Hit ended at state"], facts["Recomputed after it"]) == ("768", "1,232")
    for place, chosen in enumerate(dialog.tabs.buttons):
        chosen.click()
        assert dialog.stack.currentIndex() == place
    dialog.curl.click()
    assert QApplication.clipboard().text() == "curl 'safe'"
    file = tmp_path / "one.json"
    dialog.model.export(str(file))
    await stage.until(file.exists)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["requests"][0]["request"]["id"] == "req-1"
    dialog.reject()


async def test_the_capture_is_read_when_a_captured_request_comes(stage: Stage) -> None:
    page = await opened(stage)
    stage.host.capture = CaptureState(until=4e9, requests=3, bytes=2048, most_requests=9, most_bytes=9999)
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DONE, 2, captured=True)))
    await stage.until(lambda: "3 requests, 2 KiB" in page.keeping.model.sentence)
    assert page.keeping.forget.isVisibleTo(page)


async def test_the_menu_of_a_request_has_what_keys_have(stage: Stage) -> None:
    page = await opened(stage)
    menu = page.menu_of(stage.host.requests[0])
    actions = {action.text(): action for action in menu.actions()}
    assert set(actions) == {"Inspect", "Cancel request", "Copy its id"}
    actions["Copy its id"].trigger()
    assert QApplication.clipboard().text() == "req-1"
    actions["Cancel request"].trigger()
    await stage.until(lambda: stage.host.sent("DELETE", "/v1/requests/req-1"))
    menu.deleteLater()


async def test_the_prefix_lens_teaches_and_then_shows_conversations(stage: Stage) -> None:
    page = await opened(stage)
    page.panes.buttons[1].click()
    await stage.until(lambda: page.lens.model.loaded)
    assert page.lens._empty.isVisibleTo(page)
    assert not page.table.isVisibleTo(page)
    place = Divergence(part=PromptPart.MESSAGE, role="user", number=2, of=3, bytes_kept=5, bytes_before=50)
    turns = (
        turn("a", PrefixReason.FIRST_TURN, prompt_tokens=1000, cached_tokens=0),
        turn("b", PrefixReason.NOT_MEASURED),
        turn("c", PrefixReason.MESSAGE_CHANGED, diverged=place, prompt_tokens=1000, cached_tokens=250),
    )
    one = Conversation(
        id="c0ffee", label="0f3a9c1e", source="x-session-id", client=HOSTILE[:60],
        started_at=1.0, last_at=2.0, count=3, prompt_tokens=2000,
        cached_tokens=250, measured=2, lost_seconds=1.5, turns=turns,
    )  # fmt: skip
    stage.host.conversations = [one, one.model_copy(update={"id": "other", "label": "", "turns": turns[:1]})]
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DONE, 1)))
    await stage.until(lambda: page.lens.model.turns.total == 3)
    assert page.lens.model.conversations.total == 2
    assert page.lens.bars.accessibleName().endswith("1: 0 %, 2: —, 3: 25 %")
    assert page.lens.model.turns.row_at(0) == turns[-1]
    shown = page.lens.model.turns
    assert shown.data(shown.index(0, 5)) == "a message was edited at message 2 (user)"
    assert shown.data(shown.index(1, 1)) == "—", "not measured is no 0"
    page.lens.conversations.selectRow(1)
    assert page.lens.model.turns.total == 0, "those of the other do not stand under its name"
    await stage.until(lambda: page.lens.model.turns.total == 1)
    page.panes.buttons[0].click()
    assert page.table.isVisibleTo(page)
