"""Alerts as the host keeps and tells them."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.event_log import EventLog
from engine_host.core.paths import Folders
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.operations.measurements import alerts as module
from engine_host.operations.measurements.alerts import AlertOperations
from engine_host.protocol.bench.alerts import AlertKind, AlertQuery, SeeAlerts
from engine_host.protocol.engines import EngineState
from engine_host.protocol.events import EngineStateEvent, TelemetryEvent
from engine_host.protocol.telemetry import Sample
from tests.unit.operations.measurements.test_bench import engine as engine_of

ALL = AlertQuery(everything=True)
HOT = {"gpu.0.temperature": 95.0}
COOL = {"gpu.0.temperature": 50.0}


class Place:
    """Alerts over a store of their own; `again` is the host after its next start."""

    def __init__(self, home: Path, free: list[tuple[str, float]]) -> None:
        self.events = EventLog()
        self._store = Store(home / "sndr.sqlite")
        self.settings = SettingsFile(home / "settings.toml")
        self._folders = Folders.resolve()
        self.free = free
        self.again()

    def again(self) -> None:
        self.alerts = AlertOperations(self.events, self._store, self.settings, self._folders)

    async def sample(self, at: float, values: dict[str, float]) -> None:
        self.alerts.publish(TelemetryEvent(sample=Sample(at=at, values=values)))
        await asyncio.gather(*self.alerts._looking.values())

    def told(self) -> list[str]:
        found = [json.loads(one.data) for one in self.events._ring]
        return [one["text"] for one in found if one["kind"] == "notice"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("SNDR_HOME", str(tmp_path))
    place = Place(tmp_path, [])
    monkeypatch.setattr(module, "_free", lambda folder: place.free[0] if place.free else None)
    return place


def run(go: Callable[[], Any]) -> None:
    asyncio.run(go())


def test_a_hot_gpu_is_told_once_and_kept_with_its_worst(place: Place) -> None:
    async def go() -> None:
        await place.sample(0, HOT)
        for at in (10, 11, 12):
            await place.sample(at, HOT | {"gpu.0.temperature": 95.0 + at})
        [alert] = place.alerts.page(AlertQuery()).alerts
        assert (alert.kind, alert.subject, alert.worst, alert.ended_at) == (
            AlertKind.GPU_TEMPERATURE,
            "GPU 0",
            107.0,
            None,
        )
        assert place.told() == ["GPU 0 is at 105 °C (alert from 88 °C). sndr alerts"]
        await place.sample(20, COOL)
        await place.sample(30, COOL)
        [alert] = place.alerts.page(AlertQuery()).alerts
        assert (alert.ended_at, alert.worst, alert.needs_attention) == (30, 107.0, True)
        assert place.alerts.see(SeeAlerts()).alerts == ()
        assert len(place.alerts.page(ALL).alerts) == 1

    run(go)


def test_what_lasts_is_still_open_after_the_next_start_and_not_told_again(place: Place) -> None:
    async def go() -> None:
        await place.sample(0, HOT)
        await place.sample(10, HOT)
        place.again()
        await place.sample(20, HOT)
        await place.sample(40, HOT)
        assert len(place.alerts.page(ALL).alerts) == 1
        assert len(place.told()) == 1
        await place.sample(50, COOL)
        await place.sample(60, COOL)
        assert place.alerts.page(ALL).alerts[0].ended_at == 60

    run(go)


def test_one_that_lasts_cannot_be_put_away_for_good(place: Place) -> None:
    async def go() -> None:
        await place.sample(0, HOT)
        await place.sample(10, HOT)
        [alert] = place.alerts.see(SeeAlerts()).alerts
        assert alert.seen

    run(go)


def test_a_full_disk_is_an_alert_until_it_has_room(place: Place) -> None:
    async def go() -> None:
        place.free[:] = [("/models", 1 << 30)]
        await place.sample(0, {})
        [alert] = place.alerts.page(AlertQuery()).alerts
        assert alert.text == "The disk at /models has 1.0 GiB left (alert below 5.0 GiB)."
        place.free[:] = [("/models", 512 << 20)]
        await place.sample(30, {})
        assert place.alerts.page(AlertQuery()).alerts[0].worst == 1 << 30, (
            "the disks are looked at once a minute"
        )
        await place.sample(60, {})
        [alert] = place.alerts.page(AlertQuery()).alerts
        assert alert.worst == 512 << 20
        assert alert.text == "The disk at /models has 512.0 MiB left (alert below 5.0 GiB).", (
            "what it has now"
        )
        changes = [one for one in place.events._ring if json.loads(one.data)["kind"] == "alerts.changed"]
        assert len(changes) == 2
        place.free[:] = [("/models", 1 << 40)]
        await place.sample(120, {})
        assert place.alerts.page(AlertQuery()).alerts[0].ended_at == 120
        await place.alerts.close()

    run(go)


def test_memory_errors_are_told(place: Place) -> None:
    async def go() -> None:
        await place.sample(0, {"gpu.1.ecc.errors": 4})
        await place.sample(1, {"gpu.1.ecc.errors": 5})
        assert place.told() == ["GPU 1 counted 1 memory error that it could not correct. sndr alerts"]

    run(go)


def test_an_engine_that_served_and_died_is_one_and_a_start_that_failed_is_none(place: Place) -> None:
    engine = engine_of("demo")
    for ready in (None, 5.0):
        died = engine.model_copy(update={"state": EngineState.FAILED, "ready_at": ready, "ended_at": 9.0})
        place.alerts.publish(EngineStateEvent(engine=died))
    [alert] = place.alerts.page(AlertQuery()).alerts
    assert (alert.kind, alert.subject, alert.at, alert.engine) == (
        AlertKind.ENGINE_DIED,
        engine.name,
        9.0,
        engine.id,
    )


def test_a_changed_threshold_holds_from_the_next_sample_on(place: Place) -> None:
    async def go() -> None:
        await place.sample(0, HOT)
        await place.sample(10, HOT)
        place.settings.change({"alerts.gpu_temperature": 0})
        await place.sample(11, HOT)
        assert place.alerts.page(AlertQuery()).alerts[0].ended_at == 11

    run(go)


def test_what_is_kept_is_bounded_and_a_damaged_document_left_out(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST", 3)
    for number in range(6):
        place.alerts._begin(AlertKind.GPU_ECC, f"GPU {number}", "x", float(number), ended_at=float(number))
    assert [one.subject for one in place.alerts.page(ALL).alerts] == ["GPU 5", "GPU 4", "GPU 3"]
    place._store.put("alert", "odd", 9.0, '{"kind": "heat death"}')
    place.again()
    assert [one.subject for one in place.alerts.page(ALL).alerts] == ["GPU 5", "GPU 4"]


def test_what_is_not_measured_any_more_ends(place: Place) -> None:
    async def go() -> None:
        place.free[:] = [("/mnt/usb", 1 << 30)]
        await place.sample(0, HOT)
        await place.sample(10, HOT)
        assert len(place.alerts.page(AlertQuery()).alerts) == 2
        place.free.clear()
        place.again()
        await place.sample(20, {})
        await place.sample(600, {})
        assert [one.ended_at for one in place.alerts.page(ALL).alerts] == [None, None]
        await place.sample(621, {})
        assert [one.ended_at for one in place.alerts.page(ALL).alerts] == [621, 621]

    run(go)


def test_a_folder_of_nobody_stops_no_look_at_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    assert module._free(Path("/proc")) is not None
    assert module._free(Path("/nowhere/at/all")) is None
    place.settings.change({"models.folders": ["~nobody-at-all/x", "/"], "alerts.disk_free": 900_000})

    async def go() -> None:
        await place.sample(0, {})
        assert place.alerts.page(AlertQuery()).alerts
        await place.alerts.close()

    run(go)
