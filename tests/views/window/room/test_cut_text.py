"""No word is cut: at the smallest size of the window, and with captions that are longer by two fifths."""

import asyncio

import pytest

from engine_host.protocol.engines import EngineState
from tests.views.conftest import Stage
from tests.views.samples import host as samples
from tests.views.window.room.cut_text import cut_texts, lengthen
from tests.views.window.test_main import NAMES


@pytest.mark.parametrize("longer", [False, True], ids=["as it is", "longer"])
async def test_no_word_is_cut_on_any_page(stage: Stage, longer: bool) -> None:
    stage.host.set_engine(samples.engine(EngineState.READY))
    await stage.until(lambda: stage.state.engines)
    stage.window.resize(900, 600)
    cut: dict[str, list[str]] = {}
    for name in NAMES:
        stage.window.go(name)
        # Cards beside each other go below each other only once they know their width.
        found = []
        for turn in range(30):
            stage.window.grab()
            await asyncio.sleep(0.02)
            if longer and turn == 1:
                lengthen(stage.window.page)
            elif turn > 1 and not (found := list(cut_texts(stage.window.page))):
                break
        else:
            cut[name] = found
    assert cut == {}
