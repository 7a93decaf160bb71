"""Every page in one language; `tests/integration/sndr_gui/test_languages.py` runs it for each."""

import asyncio
import re
from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QComboBox, QHeaderView, QLabel, QLineEdit, QWidget

from engine_host.protocol.engines import EngineState
from engine_host.protocol.language import PSEUDO, language
from engine_host.protocol.language.pseudo import OPENED
from tests.views import conftest
from tests.views.conftest import Stage
from tests.views.samples import host as samples
from tests.views.window.room.cut_text import cut_texts
from tests.views.window.room.reach import out_of_reach
from tests.views.window.test_main import NAMES

# All pages are one test here.
conftest.LIMIT = 180.0
# Values, which are the same in every language.
VALUES = (
    re.compile(
        r"(sndr |curl|http|/|llama-server |OpenAI SDK|Vulkan|Hugging Face|SNDR|English|Deutsch|YAML|ID$)"
    ),
    re.compile(r"[a-z]+\.[a-z_]+\nsndr settings set "),  # the name of a setting, and its command
    re.compile(r"(Русский|中文|日本語)$"),  # languages, by their own names
    re.compile(r"[\d.,/ ]*(GiB|MiB|min|h|d|W|ms|tok/s)$|\d+  ·  CPU$"),  # measured values
    re.compile(
        r"(vLLM|llama\.cpp|GPUs?|CPU|RAM|VRAM|KV|GGUF|NVLink|CUDA|Engine RAM|Decode|Ctrl\+\S+)( |$)|≤ tok/s"
    ),
    re.compile(r"(sndr-demo|qwen3-8b|gemma-4b|Demo llamacpp|My 27b)"),  # what the fake host has
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
        if found:
            lost[name] = found
    assert not lost, f"out of reach at {size}: {lost}"


async def test_pages(stage: Stage) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.engines)
    await all_in_reach(stage, (1280, 728))
    await all_in_reach(stage, (900, 600))
    plain: dict[str, str] = {}
    cut: dict[str, list[str]] = {}
    for name in NAMES:
        stage.window.go(name)
        found: list[str] = []
        for turn in range(8):
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
            for text in said(stage.window):
                is_word = OPENED not in text and any(letter.isalpha() for letter in text)
                if is_word and not any(value.match(text) for value in VALUES):
                    plain.setdefault(text, name)
    assert not plain, f"not translated: {plain}"
    assert not cut, f"cut off: {cut}"
