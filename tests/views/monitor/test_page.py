"""Monitor: the chosen request stays chosen among new ones, and the header is about what runs now."""

import math
import time

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QScrollArea

from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.events import EngineRequestEvent, TelemetryEvent
from engine_host.protocol.telemetry import Sample
from engine_host.telemetry.series import describe
from sndr_gui.host.connection import Phase
from sndr_gui.kit import formats
from sndr_gui.models.monitor.graphs import RATES, SETS
from sndr_gui.models.monitor.lines import Line
from sndr_gui.views.monitor.page import MonitorView
from sndr_gui.views.widgets.problems import ProblemBox
from tests.views.conftest import Stage
from tests.views.samples import host as samples


def opened(stage: Stage) -> MonitorView:
    """Monitor in front."""
    stage.window.go("monitor")
    page = stage.window.page
    assert isinstance(page, MonitorView)
    return page


async def come(stage: Stage, page: MonitorView, *numbers: int) -> None:
    """Have requests come, the one with the lowest number on top, and wait until they are shown."""
    for number in numbers:
        request = samples.request(RequestState.DECODE, number)
        stage.host.requests.append(request)
        stage.host.publish(EngineRequestEvent(request=request))
    await stage.until(lambda: all(page.model.requests.place_of(f"req-{n}") is not None for n in numbers))


async def test_the_chosen_request_can_be_cancelled_while_others_come(stage: Stage) -> None:
    page = opened(stage)
    await come(stage, page, 20, 30)
    page.table.selectRow(1)
    await come(stage, page, 10)
    assert page.model.requests.place_of("req-30") == page.table.chosen == 2
    assert page.cancel.isEnabled()
    page.cancel.click()
    await stage.until(lambda: stage.host.sent("DELETE", "/v1/requests/req-30"))
    done = samples.request(RequestState.DONE, 30)
    stage.host.publish(EngineRequestEvent(request=done))
    await stage.until(lambda: not page.cancel.isEnabled())
    assert not stage.host.sent("DELETE", "/v1/requests/req-20")


async def test_a_request_that_is_no_longer_listed_leaves_none_chosen(stage: Stage) -> None:
    page = opened(stage)
    await come(stage, page, 20, 30)
    page.table.selectRow(1)
    stage.state.requests.pop("req-30")
    await come(stage, page, 10)
    assert page.table.chosen == -1
    assert not page.cancel.isEnabled()


async def test_the_list_stays_where_it_was_scrolled_to_while_others_come(stage: Stage) -> None:
    page = opened(stage)
    await come(stage, page, *range(10, 60))
    # The graphs take their place when they are loaded, and the list what is left.
    await stage.until(lambda: page.graphs.rates.graph is not None)
    page.table.selectRow(0)
    bar = page.table.verticalScrollBar()
    await stage.until(lambda: bar.maximum() > 0)
    bar.setValue(bar.maximum())
    place = bar.value()
    await come(stage, page, 1)
    assert page.table.chosen == 1
    assert bar.value() == place


async def test_the_header_names_the_engine_that_runs_now(stage: Stage) -> None:
    page = opened(stage)
    assert page.subtitle.text() == "no engine runs"
    engine = samples.engine(EngineState.READY)
    stage.host.set_engine(engine)
    await stage.until(lambda: page.subtitle.text() == f"{engine.name}  ·  live")
    stage.host.set_engine(engine.model_copy(update={"state": EngineState.FAILED}))
    await stage.until(lambda: page.subtitle.text() == "no engine runs")


async def test_an_engine_that_ended_has_no_values_of_now(stage: Stage) -> None:
    page = opened(stage)
    await stage.until(lambda: page.model.loaded and page.graphs.rates.graph is not None)
    now = time.time()
    kind = describe("engine.x.decode_rate")
    engine = samples.engine(EngineState.READY)
    name = f"engine.{engine.id}.decode_rate"
    page.model._series = {
        name: Line(name, kind.unit, kind.title, kind.source, True, [now - 60, now], [9.0, 7.0])
    }

    def told(at: float | None = None) -> str:
        if at is not None:
            page.model.past.look_at(at)
        page.graphs.draw()
        ((_line, label),) = page.graphs.rates._values
        assert isinstance(label, QLabel)
        return label.text()

    stage.host.set_engine(engine)
    await stage.until(lambda: told() == RATES.word(7.0))
    stage.host.set_engine(engine.model_copy(update={"state": EngineState.FAILED}))
    await stage.until(lambda: told() == formats.UNMEASURED)
    assert told(now - 60) == RATES.word(9.0), "what it did then stays"
    assert told(now - 120) == formats.UNMEASURED, "a value of another minute is none of that moment"


async def test_the_age_of_the_last_values_grows_without_any_event(stage: Stage) -> None:
    page = opened(stage)
    await stage.host.stop()
    await stage.until(lambda: stage.connection.phase is Phase.FAILED)
    stage.connection.lost_at = time.time() - 7200
    await stage.until(lambda: page.subtitle.text() == "No connection: last values 2 h ago")


async def test_monitor_draws_history_with_gaps_then_live(stage: Stage) -> None:
    page = opened(stage)
    await stage.until(lambda: page.model.loaded)
    await stage.until(lambda: page.graphs.rates.graph is not None and page.graphs.rates.graph._curves)
    assert page.graphs.rates.graph is not None
    _xs, ys = page.graphs.rates.graph._curves[0].getData()
    assert any(math.isnan(y) for y in ys), "a gap is a gap"

    def decode() -> Line:
        return next(line for line in page.model.lines_of(RATES) if line.name == "engine.decode_rate")

    before = len(decode().at)
    values = {"engine.engine-2.decode_rate": 99.0}
    stage.host.publish(TelemetryEvent(sample=Sample(at=time.time() + 2, values=values)))
    await stage.until(lambda: decode().latest == 99.0)
    assert len(decode().at) > before
    assert [line.title for line in page.model.memory()] == ["RAM used", "Engine RAM"]


async def test_each_set_of_graphs_has_its_series(stage: Stage) -> None:
    page = opened(stage)
    await stage.until(lambda: page.model.loaded)
    now = {
        "engine.engine-2.ttft": 0.25,
        "engine.engine-2.itl": 0.02,
        "engine.engine-2.prefix_hits": 0.75,
        "engine.engine-2.acceptance.1": 0.8,
        "engine.engine-2.kv.share": 0.5,
        "gpu.0.power": 349.0,
        "gpu.1.power": 120.0,
        "gpu.0.power.limit": 350.0,
        "gpu.0.memory.temperature": 72.0,
        "cpu.share": 0.5,
        "disk.read": 2.0**20,
    }
    names = [describe(one) for one in now]
    assert len(names) == len(now)
    page.model._series |= {
        name: Line(name, kind.unit, kind.title, kind.source, kind.peaks, [time.time() - 1], [value])
        for (name, value), kind in zip(now.items(), names, strict=True)
    }
    said: dict[str, list[str]] = {}
    for place, shown in enumerate(SETS):
        page.graphs.sets.buttons[place].click()
        cards = page.graphs.cards()
        assert page.graphs.shown_set == shown
        assert all(card.isVisibleTo(page) for card in cards)
        await stage.until(lambda cards=cards: all(card.graph is not None for card in cards))  # type: ignore[misc]
        page.graphs.draw()
        said |= {
            card.title.text(): [label.text() for _, label in card._values if isinstance(label, QLabel)]
            for card in cards
        }
        hidden = [one for several in page.graphs._cards.values() if several is not cards for one in several]
        assert not any(one.isVisibleTo(page) for one in hidden)
    assert said["Time to first token, s"] == ["250 ms"]
    assert said["Between tokens, ms"] == ["20 ms"]
    assert said["Power, W"] == ["349 W", "120 W"], "the limit is a line of its own, and not of this graph"
    assert said["Memory temperature, °C"] == ["72 °C"]
    assert said["Disk, MiB/s"] == ["1 MiB/s"]
    assert said["Clock, MHz"] == [], "what was not measured has no line"
    assert said["KV cache, %"] == ["50 %"], "no other share is the KV cache"
    assert sorted(said["Prefix cache hits and draft acceptance, %"]) == ["75 %", "80 %"]


async def test_every_gpu_has_a_line_as_far_as_there_are_colours(stage: Stage) -> None:
    page = opened(stage)
    await stage.until(lambda: page.model.loaded)
    names = [f"gpu.{number}.{name}" for number in range(12) for name in ("power", "memory.used")]
    page.model._series |= {
        name: Line(name, "", name, "", True, [time.time() - 1], [float(place)])
        for place, name in enumerate(names)
    }
    await stage.until(lambda: page.graphs.rates.graph is not None)
    page.graphs.draw()
    assert page.graphs.memory.title.text().endswith(f"(and {len(page.model.memory()) - 8} more)")
    assert not page.no_gpu.isVisible()
    stage.state.host = samples.host(no_gpu=samples.NO_GPU)
    page.graphs.sets.buttons[SETS.index("GPUs")].click()
    (told,) = page.no_gpu.findChildren(ProblemBox)
    assert "kernel module is not loaded" in told.accessibleName()
    power = page.graphs.cards()[1]
    assert power.title.text() == "Power, W  (and 4 more)"
    assert [line.name for line, _ in power._values] == [f"gpu.{number}.power" for number in range(8)]


async def test_monitor_lists_requests_and_cancels(stage: Stage) -> None:
    page = opened(stage)
    assert not page.table.isVisible()
    stage.host.requests = [samples.request(RequestState.DECODE, 1)]
    stage.host.publish(EngineRequestEvent(request=stage.host.requests[0]))
    stage.host.publish(EngineRequestEvent(request=samples.request(RequestState.DONE, 2)))
    await stage.until(lambda: page.table.isVisible() and page.model.requests.total == 2)
    live = samples.request(RequestState.DECODE, 1, pieces=37, piece_rate=12.34)
    stage.host.publish(EngineRequestEvent(request=live))
    columns = {column.title: column for column in page.model.requests._columns}
    shown = stage.state.requests
    await stage.until(lambda: shown["req-1"].pieces == 37)
    row = shown["req-1"]
    assert [columns[name].text(row) for name in ("Out", "Decode")] == ["37 pieces", "12.3 pieces/s"]
    facts = dict(page.model.inspector(row).facts())
    assert (facts["Tokens out"], facts["Decode"]) == ("not measured; 37 pieces came", "12.3 pieces/s")
    page.table.selectRow(0)
    assert page.cancel.isEnabled()
    QTest.mouseClick(page.cancel, Qt.MouseButton.LeftButton)
    await stage.until(lambda: ("DELETE", "/v1/requests/req-1", None) in stage.host.received)


async def test_monitor_disconnected_says_how_old_it_is(stage: Stage) -> None:
    page = opened(stage)
    await stage.until(lambda: page.model.loaded)
    await stage.host.stop()
    await stage.until(lambda: "No connection" in page.subtitle.text())


async def test_the_client_is_in_sight_with_several_engines(stage: Stage) -> None:
    page = opened(stage)
    for number, engine in ((1, "engine-1"), (2, "engine-2")):
        request = samples.request(RequestState.DECODE, number).model_copy(update={"engine": engine})
        stage.host.publish(EngineRequestEvent(request=request))
    await stage.until(lambda: page.model.requests.total == 2)
    page.table.setColumnHidden(2, False)
    titles = [column.title for column in page.model.requests._columns]
    place = titles.index("Client")
    right = page.table.columnViewportPosition(place) + page.table.columnWidth(place)
    assert right <= page.table.viewport().width()


async def test_in_a_small_window_nothing_is_wider_than_the_page(stage: Stage) -> None:
    page = opened(stage)
    await stage.until(lambda: page.model.loaded)
    stage.window.resize(900, 700)
    area = page.findChild(QScrollArea)
    assert area is not None
    seen, canvas = area.viewport(), area.widget()
    assert canvas is not None
    await stage.until(lambda: canvas.width() == seen.width())
    await come(stage, page, *range(10, 40))
    page.only.fill([("All engines", ""), ("a-model-of-a-long-name", "a"), ("b", "b")], "")
    page.only.show()
    for place in range(len(SETS)):
        page.graphs.sets.buttons[place].click()
        await stage.until(lambda: canvas.width() == seen.width())
        # What has no room is wider than the page, for it does not scroll sideways.
        assert canvas.minimumSizeHint().width() <= seen.width()
        cards = page.graphs.cards()
        assert all(card.mapTo(seen, card.rect().topRight()).x() < seen.width() for card in cards)
