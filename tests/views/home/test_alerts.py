"""Home names what needs attention."""

import time

from PySide6.QtWidgets import QLabel

from engine_host.protocol.bench.alerts import Alert, AlertKind
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import AlertsChangedEvent
from sndr_gui.views.home.alerts import AlertsCard
from tests.views.conftest import Stage
from tests.views.samples import host as samples


def alert(number: int, text: str = "GPU 0 is at 95 °C (alert from 88 °C).", **fields: object) -> Alert:
    kept = {"id": f"a{number}", "kind": AlertKind.GPU_TEMPERATURE, "subject": "GPU 0", "at": time.time() - 90}
    return Alert.model_validate({**kept, "text": text, **fields})


def card(stage: Stage) -> AlertsCard:
    stage.window.go("home")
    found = stage.window.findChild(AlertsCard)
    assert found is not None
    return found


def said(shown: AlertsCard) -> list[str]:
    return [label.text() for label in shown.findChildren(QLabel) if label.isVisible()]


async def test_alerts_come_and_are_put_away(stage: Stage) -> None:
    shown = card(stage)
    assert not shown.isVisible()
    gone = {"kind": AlertKind.ENGINE_DIED, "subject": "qwen", "ended_at": time.time() - 90}
    died = alert(2, "It was ended by SIGKILL.", engine="engine-1", **gone)
    stage.host.alerts = (alert(1), died)
    stage.host.publish(AlertsChangedEvent())
    # What is added to a card that is shown is shown in the next turn of the loop.
    await stage.until(lambda: "GPU 0 is at 95 °C (alert from 88 °C)." in said(shown))
    assert "qwen: It was ended by SIGKILL." in said(shown), "which engine it was"
    assert any(line.startswith("for ") for line in said(shown)), "it lasts"
    assert any(line.endswith("ago") for line in said(shown)), "it was a moment"
    assert "sndr alerts --seen" in shown.away.toolTip()
    shown.away.click()
    await stage.until(lambda: len(shown._rows) == 1)
    assert "qwen: It was ended by SIGKILL." not in said(shown)


async def test_many_are_counted_and_hostile_texts_are_plain(stage: Stage) -> None:
    shown = card(stage)
    stage.host.alerts = tuple(
        alert(number, "<img src='file:///dev/zero'>" + "x" * 4000) for number in range(9)
    )
    stage.host.publish(AlertsChangedEvent())
    await stage.until(lambda: any(line.startswith("<img") for line in said(shown)))
    assert "4 more: sndr alerts" in said(shown)


async def test_a_death_that_the_page_tells_in_full_is_told_once(stage: Stage) -> None:
    shown = card(stage)
    problem = Problem(reason=Reason.ENGINE_KILLED, message="It was ended by SIGKILL.")
    died = {"kind": AlertKind.ENGINE_DIED, "subject": "qwen", "engine": "engine-1", "ended_at": time.time()}
    stage.host.alerts = (alert(1, problem.message, **died), alert(2))
    stage.host.publish(AlertsChangedEvent())
    await stage.until(lambda: len(shown._rows) == 2)
    stage.host.set_engine(samples.engine(EngineState.FAILED, id="engine-1", problem=problem))
    await stage.until(lambda: [one.engine for one in shown._rows] == [""])
    stage.host.set_engine(samples.engine(EngineState.READY, id="engine-2"))
    await stage.until(lambda: len(shown._rows) == 2)
