"""Windows that are gone are freed, with all of their pages."""

import asyncio
import gc
import weakref
from pathlib import Path

from sndr_gui.views.window.context import PageContext
from sndr_gui.views.window.main import Window
from tests.views.conftest import opened


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
