"""Every page in one language; `tests/integration/sndr_gui/test_languages.py` runs it for each."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QTabBar,
    QWidget,
)

from engine_host.protocol.language import PSEUDO, language
from engine_host.protocol.language.pseudo import OPENED
from tests.views import conftest
from tests.views.conftest import Stage
from tests.views.pictures.scene import furnish
from tests.views.window.room.cut_text import cut_texts
from tests.views.window.room.reach import out_of_reach
from tests.views.window.test_main import NAMES

# All pages are one test here.
conftest.LIMIT = 180.0
WIDE = 1280
WORD = re.compile(r"[^\W\d_]{2}")
# Values, which are the same in every language.
VALUES = (
    re.compile(
        r"(sndr |sudo |curl|http|/|llama-server |OpenAI SDK|Vulkan|Hugging Face|SNDR|English|Deutsch|YAML)"
        r"|ID$"
    ),
    re.compile(r"[a-z]+\.[a-z_]+\nsndr settings set "),  # the name of a setting, and its command
    re.compile(r"(Русский|中文|日本語)$"),  # languages, by their own names
    re.compile(r"[\d.,/ ]*(GiB|MiB|KiB|min|h|d|W|ms|tok/s)$|\d+  ·  CPU$|n/a$"),  # measured values
    re.compile(
        r"(vLLM|llama\.cpp|GPUs?|CPU|RAM|VRAM|KV|GGUF|NVLink|CUDA|Engine RAM|Decode|Ctrl\+\S+)( |$)|≤ tok/s"
    ),
    re.compile(r"(sndr-demo|qwen3-8b|gemma-4b|broken|Demo llamacpp|My 27b|Big |On sglang|engine-1)"),
    re.compile(r"(big|my|on|demo)-\w+$|(Sample patch|The sample engine) |2026\d{4}-|quick$|story: "),
    re.compile(
        r"(gpu|lab|coding|writing|large at api.example.com)$|\d\d:\d\d:\d\d (host|engine-1)"
    ),  # what the fake host has
    re.compile(r"(hook|rebind|text|kv_cache|loader|reasoning|spec_decode|P\d{4})$"),  # kinds of patches
    re.compile(
        r"(Claude Code|Cline|Codex|Continue|Cursor|Environment|Open WebUI|Python|Roo Code|TypeScript|Zoo Code"
        r"|VS Code|Zed|aider|opencode|SGLang|Q\d_\w+|turboquant_\w+|fp8|auto|cliff\.\w+)$"
    ),  # names of programs and formats
    re.compile(r"(TTFT|ITL|TPOT)(,|$)|p9[59]$"),  # what a figure is called everywhere
    re.compile(
        r"(default|off|smoke|full|debug|info|warning|error)$"
    ),  # values that a setting's command takes
    re.compile(
        r"The (engine host answered with|connection to the engine host ended)"
    ),  # the host's sentences
)


def said(page: QWidget) -> Iterator[str]:
    """Yield every text that a page shows or tells."""
    for part in page.findChildren(QWidget):
        if not part.isVisible():
            continue
        yield part.accessibleName()
        yield part.toolTip()
        if isinstance(part, QLabel | QAbstractButton):
            yield part.text()
        if isinstance(part, QLineEdit):
            yield part.placeholderText()
        if isinstance(part, QComboBox):
            yield from (part.itemText(place) for place in range(part.count()))
        if isinstance(part, QHeaderView) and (model := part.model()) is not None:
            for place in range(part.count()):
                yield str(model.headerData(place, Qt.Orientation.Horizontal) or "")
        if isinstance(part, QTabBar):
            yield from (part.tabText(place) for place in range(part.count()))
        if isinstance(part, QAbstractItemView):
            yield from _cells(part)


def _cells(view: QAbstractItemView) -> Iterator[str]:
    """Yield what the rows of a list or a table show and tell."""
    model = view.model()
    for row in range(model.rowCount() if model is not None else 0):
        for column in range(model.columnCount()):
            for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
                yield str(model.data(model.index(row, column), role) or "")


def scrolled_across(page: QWidget) -> Iterator[str]:
    """Yield what of a page has to be scrolled sideways; texts of programs have lines of any length."""
    for bar in page.findChildren(QScrollBar):
        around = bar.parentWidget()
        area = around.parentWidget() if around is not None else None
        shown = bar.orientation() is Qt.Orientation.Horizontal and bar.isVisible() and bar.maximum() > 0
        if shown and not isinstance(area, QPlainTextEdit):
            yield f"{type(area).__name__} {area.accessibleName() if area is not None else ''!r}"


async def all_in_reach(stage: Stage, size: tuple[int, int]) -> None:
    """Show each page at this size; fails where a control is out of reach."""
    stage.window.resize(*size)
    lost: dict[str, list[str]] = {}
    for name in NAMES:
        stage.window.go(name)
        for turn in range(8):
            stage.window.grab()
            await asyncio.sleep(0.02)
            found = list(out_of_reach(stage.window.page))
            if turn > 1 and not found:
                break
        if size[0] >= WIDE:
            found += scrolled_across(stage.window.page)
        if found:
            lost[name] = found
    assert not lost, f"out of reach at {size}: {lost}"


@pytest.fixture
def furnished(stage: Stage, tmp_path: Path) -> Iterator[Stage]:
    """A window over a host that has something on every page before it is asked."""
    catalog = furnish(stage, tmp_path)
    yield stage
    catalog.store.close()


async def test_pages(stage: Stage, furnished: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    draw = QPainter.drawText

    def heard(painter: QPainter, *arguments: object) -> object:
        drawn.extend(one for one in arguments if isinstance(one, str))
        return draw(painter, *arguments)  # type: ignore[call-overload]

    # What widgets of ours and the library of graphs paint themselves.
    monkeypatch.setattr(QPainter, "drawText", heard)
    await stage.until(lambda: stage.state.engines)
    await all_in_reach(stage, (WIDE, 728))
    await all_in_reach(stage, (900, 600))
    plain: dict[str, str] = {}
    cut: dict[str, list[str]] = {}
    for name in NAMES:
        stage.window.go(name)
        found: list[str] = []
        for turn in range(8):
            drawn.clear()
            stage.window.grab()
            await asyncio.sleep(0.02)
            if turn > 1 and not (found := list(cut_texts(stage.window.page))):
                break
        # A check box cannot break its words, and that of Launch has no room for a third more.
        found = [one for one in found if language() != PSEUDO or "Ķééþ ŕûññíñĝ" not in one]
        if found:
            cut[name] = found
        # Launch shows presets' own texts beside ours.
        if language() == PSEUDO and name != "launch":
            for text in (*said(stage.window), *drawn):
                is_word = OPENED not in text and WORD.search(text) is not None
                if is_word and not any(value.match(text) for value in VALUES):
                    plain.setdefault(text, name)
    assert not plain, f"not translated: {plain}"
    assert not cut, f"cut off: {cut}"
