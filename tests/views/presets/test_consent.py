"""Somebody else's preset is shown demand by demand before it is taken in."""

import asyncio
import hashlib
import shlex
from pathlib import Path

from engine_host.protocol.operations import table as ops
from sndr_gui.views.presets.dialogs import ImportConsentDialog
from sndr_gui.views.presets.page import PresetsView
from sndr_gui.views.widgets.demands import DemandList
from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog
from tests.views.presets.opened import MINE, dialog, page
from tests.views.widgets.visible_text import visible_text

FOREIGN = MINE + "  extra_arguments: [--tools, all, --made-up, '<b>x</b>']\n"


async def exported(stage: Stage, catalogue: RealCatalog) -> tuple[PresetsView, str]:
    """The page, and what somebody else exported."""
    view = await page(stage)
    mine = catalogue.own / "mine.yaml"
    await asyncio.to_thread(catalogue.own.mkdir, parents=True, exist_ok=True)
    await asyncio.to_thread(mine.write_text, FOREIGN)
    text = (await stage.session.client.call(ops.EXPORT_PRESET, id="mine")).text
    await asyncio.to_thread(mine.unlink)
    return view, text


async def asked_of(stage: Stage, view: PresetsView) -> ImportConsentDialog:
    await stage.until(lambda: view.model.pending_import is not None)
    return dialog(ImportConsentDialog)


async def test_each_demand_is_shown_and_taking_it_in_needs_a_yes(
    stage: Stage, catalogue: RealCatalog, tmp_path: Path
) -> None:
    view, text = await exported(stage, catalogue)
    theirs = tmp_path / "their export.yaml"
    await asyncio.to_thread(theirs.write_text, text)
    view.model.import_file(str(theirs))
    asked = await asked_of(stage, view)
    shown = visible_text(asked)
    for words in ("--tools all", "run shell commands", "--made-up '<b>x</b>'", "does not know this flag"):
        assert words in shown
    assert asked.cancel.isDefault()
    assert not asked.allow.isDefault()
    digest = hashlib.sha256(text.encode()).hexdigest()
    command = shlex.split(asked.equivalent_command.label.text())
    assert command == ["sndr", "presets", "import", str(theirs), "--accept", digest]
    asked.cancel.click()
    assert view.model.pending_import is None
    assert view.model.item("mine") is None
    view.model.import_file(str(theirs))
    (await asked_of(stage, view)).allow.click()
    await stage.until(lambda: view.model.item("mine") is not None)


async def test_another_id_that_was_chosen_before_is_kept(stage: Stage, catalogue: RealCatalog) -> None:
    view, text = await exported(stage, catalogue)
    view.model.import_text("theirs.yaml", text, "theirs")
    asked = await asked_of(stage, view)
    assert "--as theirs" in asked.equivalent_command.label.text()
    asked.allow.click()
    await stage.until(lambda: view.model.item("theirs") is not None)


async def test_what_cannot_be_shown_whole_cannot_be_allowed(stage: Stage, catalogue: RealCatalog) -> None:
    view, text = await exported(stage, catalogue)
    view.model.import_text("theirs.yaml", text)
    asked = await asked_of(stage, view)
    assert asked.allow.isEnabled()
    needed = view.model.pending_import.needed if view.model.pending_import else None
    assert needed is not None
    one = needed.demands[0]
    for demands in ((one,) * 101, (one.model_copy(update={"what": "x" * 5000}),)):
        listed = DemandList(needed.model_copy(update={"demands": demands}))
        assert not listed.complete
        assert "more than can be shown" in visible_text(listed)
    asked.reject()
