"""A recorded trace is said wherever its figures are shown, and ended with one click."""

import time

from engine_host.protocol.events import TelemetryEvent
from engine_host.protocol.host import RECORDED
from engine_host.protocol.telemetry import Sample
from sndr_gui.models.monitor.graphs import GPUS, SETS
from sndr_gui.models.monitor.lines import Line
from tests.views.conftest import Stage
from tests.views.monitor.test_page import opened
from tests.views.samples import host as samples


async def test_recorded_figures_are_marked_until_the_trace_is_stopped(stage: Stage) -> None:
    page = opened(stage)
    assert not page.playback.isVisible()
    stage.host.settings = samples.settings(host__gpu_trace="/traces/<b>day")
    stage.state.set_settings(stage.host.settings)
    assert "<b>day is not played" in page.playback.said.text()
    await stage.until(lambda: page.model.loaded)
    now = time.time()
    name = "recorded.gpu.0.power"
    page.model._series[name] = Line(name, "watts", "GPU 0 power, recorded", RECORDED, at=[now], values=[90.0])
    sample = Sample(at=now, values={name: 91.0})
    stage.host.publish(TelemetryEvent(at=now, sample=sample))
    await stage.until(lambda: page.model.playback.playing)
    assert page.playback.said.text() == f"GPUs of <b>day: {RECORDED}"
    page.graphs.sets.buttons[SETS.index(GPUS)].click()
    assert page.graphs.cards()[1].title.text() == f"Power, W ({RECORDED})"
    page.playback.stop.click()
    await stage.until(lambda: stage.host.sent("PUT", "/v1/settings"))
    stage.state.set_settings(samples.settings())
    await stage.until(lambda: not page.playback.isVisible())
