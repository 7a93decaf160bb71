"""A window that is gone is freed, with all of its pages."""

import asyncio
import gc
import weakref
from pathlib import Path

from sndr_gui.views.window.context import PageContext
from sndr_gui.views.window.main import Window
from tests.views.conftest import opened


async def seen_and_closed(folder: Path) -> tuple["weakref.ref[Window]", "weakref.ref[PageContext]"]:
    async with opened(folder) as stage:
        for page in ("launch", "chat", "hosts", "monitor", "home"):
            stage.window.go(page)
        await stage.until(lambda: stage.window.current == "home")
        return weakref.ref(stage.window), weakref.ref(stage.pages)


async def test_a_window_that_is_gone_is_freed(tmp_path: Path) -> None:
    window, context = await seen_and_closed(tmp_path)
    for _ in range(3):
        await asyncio.sleep(0)
        gc.collect()
    assert window() is None
    assert context() is None
