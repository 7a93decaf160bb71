"""Every page looks as in its reference picture; `make pictures` renews them after a change that was meant."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from PySide6.QtGui import QImage

from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import Look, Motion, ThemeChoice
from tests.views import conftest
from tests.views.conftest import Stage
from tests.views.pictures.comparison import Difference, compare, keep, marked
from tests.views.pictures.scene import MOMENT, furnish
from tests.views.window.test_main import NAMES

REFERENCES = Path(__file__).with_name("references")
FAILED = Path(__file__).resolve().parents[3] / "build" / "pictures"
RENEW = "SNDR_RENEW_PICTURES"
SIZE = (1280, 820)
LONGEST = 60.0
STEADY = 24
"""Pictures after one another that are the same, before a page counts as drawn."""


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A clock that stands, in one time zone; before the fake host and its samples are made."""
    local, spoken = time.localtime, time.strftime
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    monkeypatch.setattr(time, "localtime", lambda at=None: local(MOMENT if at is None else at))
    monkeypatch.setattr(time, "strftime", lambda form, at=None: spoken(form, at or local(MOMENT)))
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def stage(still: None, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """The window over a host that has something for every page."""
    # A busy machine is no difference.
    patient = httpx.Timeout(LONGEST)
    monkeypatch.setattr(httpx, "Timeout", lambda *_seconds, **_each: patient)
    monkeypatch.setattr(conftest, "LIMIT", 2 * LONGEST + 60)
    catalog = furnish(stage, tmp_path / "host")
    yield stage
    catalog.store.close()


async def settled(stage: Stage, reference: QImage | None = None) -> tuple[QImage, Difference | None]:
    """Return what the window shows once nothing moves, or as soon as it looks as in a reference."""
    last, difference, same = QImage(), None, 0
    end = time.monotonic() + LONGEST
    while same < STEADY and time.monotonic() < end:
        await asyncio.sleep(0.05)
        now = stage.window.grab().toImage()
        if now != last:
            last, same = now, 0
            difference = compare(now, reference) if reference is not None else None
        if difference is not None and difference.same:
            break
        # A page that waits for the host looks the same for a while, too.
        same = same + 1 if stage.tasks.names <= {"connection"} else 0
    return last, difference


async def differs(stage: Stage, path: Path) -> str | None:
    """Compare the window with a reference; where it is another, say where, and keep what was seen."""
    reference = QImage(str(path))
    now, difference = await settled(stage, reference)
    assert difference is not None
    if difference.same:
        return None
    kept = FAILED / f"{path.parent.name}-{path.stem}.png"
    kept.parent.mkdir(parents=True, exist_ok=True)
    now.save(str(kept))
    seen = kept.with_stem(f"{kept.stem}-difference")
    marked(now, reference, difference).save(str(seen))
    return f"{path.stem} ({path.parent.name}): {difference.said}; see {seen}"


@pytest.mark.parametrize("name", NAMES)
async def test_page_looks_as_it_did(stage: Stage, name: str) -> None:
    told: list[str] = []
    stage.notices.posted.connect(lambda notice: told.append(notice.text))
    stage.window.resize(*SIZE)
    wrong = []
    for choice in (ThemeChoice.LIGHT, ThemeChoice.DARK):
        theme.wear(Look(choice, motion=Motion.REDUCED))
        stage.window.go(name)
        path = REFERENCES / choice.value / f"{name}.png"
        if os.environ.get(RENEW):
            keep((await settled(stage))[0], path)
        elif (found := await differs(stage, path)) is not None:
            wrong.append(found)
    assert not told, f"a notice goes away while a page is looked at: {told}"
    assert not wrong, "\n".join([*wrong, "Where that was meant: make pictures"])


def test_there_is_no_reference_of_a_page_that_is_gone() -> None:
    assert {path.stem for path in REFERENCES.glob("*/*.png")} == set(NAMES)
    assert sum(path.stat().st_size for path in REFERENCES.glob("*/*.png")) < 3_000_000
