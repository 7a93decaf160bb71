"""The first start of somebody else's preset asks, wherever it is begun, and starts with the answer."""

import pytest

from engine_host.core.errors import consent_needed
from engine_host.protocol.launch.consents import ConsentNeeded, Demand
from engine_host.protocol.launch.plans import StartRequest
from sndr_gui.views.window.consent import ConsentDialog
from tests.views.conftest import Stage
from tests.views.presets.opened import dialog
from tests.views.widgets.visible_text import visible_text

NEEDED = ConsentNeeded(
    digest="d" * 64,
    demands=(
        Demand(file="own/mine.yaml", line=7, key="settings.x", what="--tools all", does="Runs commands."),
        Demand(file="own/mine.yaml", key="patches", what="off: all", does="Who knows.", known=False),
    ),
    contents=("d" * 64,),
)


def sent(stage: Stage) -> list[StartRequest]:
    return [StartRequest.model_validate(one) for one in stage.host.sent("POST", "/v1/engines")]


@pytest.mark.parametrize("allowed", [True, False])
async def test_each_demand_is_shown_and_the_start_waits_for_a_yes(stage: Stage, allowed: bool) -> None:
    stage.host.refuse["/v1/engines"] = consent_needed(NEEDED, "its first start", "sndr launch mine").problem
    stage.pages.actions.start_preset("mine")
    await stage.until(lambda: stage.pages.actions.pending_consent is not None)
    await stage.until(lambda: not stage.pages.actions.pending("start"))
    asked = dialog(ConsentDialog)
    shown = visible_text(asked)
    for words in ("--tools all", "Runs commands.", "line 7, settings.x", "off: all", f"--accept {'d' * 64}"):
        assert words in shown
    assert asked.cancel.isDefault()
    assert not stage.window.toasts.shown, "it is a question and no failure"
    stage.host.refuse.clear()
    if not allowed:
        asked.cancel.click()
        assert [one.consent for one in sent(stage)] == [None]
        return
    asked.allow.click()
    await stage.until(lambda: len(sent(stage)) == 2)
    assert sent(stage)[1].consent == NEEDED.digest
