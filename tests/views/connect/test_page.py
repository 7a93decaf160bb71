"""Connect: its states, and what its buttons do to a person's files."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel

from engine_host.connect.probe import watch
from engine_host.protocol.endpoint.connect import EndpointModel
from engine_host.protocol.engines import EngineState
from sndr_gui.views.connect.dialog import WriteDialog
from sndr_gui.views.connect.page import ConnectView
from tests.integration.connect.strange_endpoint import answering
from tests.views.conftest import Stage
from tests.views.samples import host as samples

QWEN = EndpointModel(id="qwen", context=65_536, chat=True, tools=True)


async def opened(stage: Stage, client: str = "codex", model: EndpointModel | None = QWEN) -> ConnectView:
    """Connect with a model that runs, at a client."""
    stage.host.endpoint_models = (model,) if model is not None else ()
    stage.window.go("connect")
    page = stage.window.page
    assert isinstance(page, ConnectView)
    await stage.until(lambda: page.model.rows.total and (page.model.facts or page.model.missing))
    page.model.choose(client)
    return page


def texts(page: ConnectView) -> str:
    """All that the page says."""
    return "\n".join(label.text() for label in page.findChildren(QLabel) if label.isVisible())


def person() -> Path:
    """The home folder of this test's person."""
    return Path.home()


async def test_written_after_a_look_and_undone(stage: Stage) -> None:
    file = person() / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text('model = "gpt" # mine\n')
    page = await opened(stage)
    detail = page.detail
    assert detail.state.text() == "not set up"
    assert not detail.undo.isVisible()
    detail.write.click()
    await stage.until(lambda: page.findChildren(WriteDialog))
    dialog = page.findChildren(WriteDialog)[0]
    assert '-model = "gpt" # mine' in dialog.diff.toPlainText()
    assert file.read_text() == 'model = "gpt" # mine\n', "nothing is written before a yes"
    dialog.write.click()
    await stage.until(lambda: detail.state.text() == "set to this endpoint")
    assert 'model = "qwen" # mine' in file.read_text()
    assert "config.toml.sndr-backup" in detail.done.text()
    assert detail.undo.isVisible()
    detail.undo.click()
    await stage.until(lambda: detail.state.text() == "not set up")
    assert file.read_text() == 'model = "gpt" # mine\n'
    assert "Put back" in detail.done.text()


async def test_a_refused_dialog_and_a_changed_file_change_nothing(stage: Stage) -> None:
    page = await opened(stage, "opencode")
    page.detail.write.click()
    await stage.until(lambda: page.findChildren(WriteDialog))
    page.findChildren(WriteDialog)[0].reject()
    await asyncio.sleep(0.05)
    assert list(person().iterdir()) == []
    page.detail.write.click()
    await stage.until(lambda: [one for one in page.findChildren(WriteDialog) if one.isVisible()])
    next(one for one in page.findChildren(WriteDialog) if one.isVisible()).write.click()
    file = person() / ".config" / "opencode" / "opencode.json"
    await stage.until(lambda: page.detail.undo.isVisible() and page.detail.undo.isEnabled())
    file.write_text(file.read_text() + "// mine\n")
    page.detail.undo.click()
    await stage.until(lambda: "nothing is undone" in texts(page))
    assert file.read_text().endswith("// mine\n")
    await stage.until(lambda: page.detail.undo.text() == "Undo anyway" and page.detail.undo.isEnabled())
    page.detail.undo.click()
    await stage.until(lambda: "what stood there" in page.detail.done.text())
    assert not file.exists()
    assert file.with_name("opencode.json.sndr-undone").read_text().endswith("// mine\n")


async def test_a_file_that_cannot_be_read_is_said(stage: Stage) -> None:
    (person() / ".codex").mkdir()
    (person() / ".codex" / "config.toml").write_text("\x1b[0m<b>= ")
    page = await opened(stage)
    assert page.detail.state.text() == "its file cannot be read"
    assert "is left alone" in texts(page)


async def test_without_a_model_it_says_what_to_do(stage: Stage) -> None:
    page = await opened(stage, model=None)
    assert "No model runs" in texts(page)
    assert page.detail.launch.isVisible()
    assert not page.detail.write.isVisible()
    stage.host.endpoint_models = (QWEN,)
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: page.detail.write.isVisible())


async def test_cursor_has_an_honest_card_and_forms_can_be_copied(stage: Stage) -> None:
    page = await opened(stage, "cursor")
    assert "its own servers" in texts(page)
    assert not page.detail.write.isVisible()
    page.model.choose("cline")
    await stage.until(lambda: "Context Window Size" in texts(page))
    assert "65536" in texts(page)
    assert not page.detail.write.isVisible()
    assert page.detail.probe.isVisible()


async def test_a_probe_shows_each_step_and_ends_with_the_window(stage: Stage) -> None:
    async with answering(b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno") as url:
        endpoint = samples.endpoint(url=url, local_url=url)
        stage.host.host = stage.host.host.model_copy(update={"endpoint": endpoint})
        page = await opened(stage)
        page.detail.probe.click()
        assert page.detail.state.text() == "probing…"
        assert not page.detail.write.isEnabled()
        await stage.until(lambda: not page.model.working)
        assert [step.name for step in page.model.steps] == ["models", "stream", "tool call", "cancel"]
        assert "HTTP status 500" in texts(page)
        assert page.detail.write.isEnabled()


async def test_a_probe_asks_the_host_what_became_of_a_cancelled_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_PATIENCE", 0.2)
    chunk = b'data: {"choices": [{"delta": {"content": "sea"}}]}\n\ndata: [DONE]\n\n'
    async with answering(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + chunk) as url:
        endpoint = samples.endpoint(url=url, local_url=url)
        stage.host.host = stage.host.host.model_copy(update={"endpoint": endpoint})
        page = await opened(stage, "opencode")
        page.detail.probe.click()
        await stage.until(lambda: len(page.model.steps) == 4)
        assert "does not list the request" in texts(page)


async def test_several_models_can_be_told(stage: Stage) -> None:
    stage.host.endpoint_models = (QWEN, QWEN.model_copy(update={"id": "other", "context": 9_000}))
    stage.window.go("connect")
    page = stage.window.page
    assert isinstance(page, ConnectView)
    await stage.until(lambda: page.model.facts)
    page.model.choose("codex")
    page.models.setCurrentText("other")
    page.models.activated.emit(1)
    await stage.until(lambda: "9,000" in texts(page))
    assert page.detail.command._content == "sndr connect codex --model other"
    assert "does not" in texts(page) or "leaves no room" in texts(page)
