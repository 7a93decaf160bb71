"""Windows that are gone are freed, with all of their pages and models, also those of other tests."""

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

from sndr_gui.host.state import HostState
from sndr_gui.models.chat.page import ChatModel
from sndr_gui.views.window.context import PageContext
from sndr_gui.views.window.main import Window
from tests.views.conftest import Stage, opened


async def seen_and_closed(folder: Path) -> tuple["weakref.ref[Window]", "weakref.ref[PageContext]"]:
    async with opened(folder) as stage:
        for page in ("launch", "chat", "hosts", "monitor", "doctor", "home"):
            stage.window.go(page)
        await stage.until(lambda: stage.window.current == "home")
        return weakref.ref(stage.window), weakref.ref(stage.pages)


async def test_windows_that_are_gone_are_freed(tmp_path: Path) -> None:
    window, context = await seen_and_closed(tmp_path)
    for _ in range(50):
        gc.collect()
        if window() is None and context() is None:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("a window that was closed is still held")


_before: list["weakref.ref[Stage] | weakref.ref[HostState] | weakref.ref[ChatModel]"] = []


@pytest.mark.parametrize("turn", ["first", "next"])
async def test_no_test_leaves_its_window_and_models_to_the_next(stage: Stage, turn: str) -> None:
    """Else each is dearer than the one before: a hundred of them took six times as long to clear away."""
    assert [one() for one in _before] == [None] * len(_before)
    stage.window.go("chat")
    _before[:] = [weakref.ref(stage), weakref.ref(stage.state), weakref.ref(stage.pages.chat)]
