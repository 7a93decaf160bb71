"""Alerts of this machine: begun and ended by what is measured, kept, and told once."""

import asyncio
import contextlib
import logging
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.outside import files
from engine_host.core.paths import Folders
from engine_host.core.settings import AlertSettings, SettingsFile
from engine_host.core.sizes import size_text
from engine_host.core.store import Store
from engine_host.operations.performs import performs
from engine_host.protocol.base import Severity
from engine_host.protocol.bench.alerts import Alert, AlertKind, AlertPage, AlertQuery, SeeAlerts
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.events import (
    AlertsChangedEvent,
    EngineStateEvent,
    EventBase,
    NoticeEvent,
    TelemetryEvent,
)
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import Sample
from engine_host.telemetry.alerts import AlertWatch, Key, Measured, disk, measurements

_log = logging.getLogger(__name__)
_KIND = "alert"
_MOST = 500
_DISK_SECONDS = 60.0
"""Seconds between two looks at the disks; a sleeping one is not woken by asking for its free bytes."""
_FORGOTTEN = 600.0
"""Seconds without a value after which an alert ends: its GPU or disk is gone."""


class AlertOperations:
    """Hears what is measured and what engines do, and keeps what somebody should look at."""

    def __init__(
        self,
        events: EventLog,
        store: Store,
        settings: SettingsFile,
        folders: Folders,
    ) -> None:
        self._events = events
        self._store = store
        self._file = settings
        self._folders = folders
        self._watch = AlertWatch()
        self._alerts = {alert.id: alert for alert in _read(store)}
        self._looked: float | None = None
        self._looking: dict[Path, asyncio.Task[None]] = {}
        self._measured: dict[Key, float] = {}
        self._since: float | None = None

    @performs(ops.ALERTS)
    def page(self, asked: AlertQuery) -> AlertPage:
        """Return the alerts, the newest first."""
        found = [one for one in self._alerts.values() if asked.everything or one.needs_attention]
        return AlertPage(seq=self._events.seq, alerts=tuple(sorted(found, key=lambda one: -one.at)))

    @performs(ops.SEE_ALERTS)
    def see(self, asked: SeeAlerts) -> AlertPage:
        """Put alerts away; those that last stay until they end."""
        for alert in [one for one in self._alerts.values() if not one.seen]:
            if not asked.ids or alert.id in asked.ids:
                self._keep(alert.model_copy(update={"seen": True}))
        self._events.publish(AlertsChangedEvent())
        return self.page(AlertQuery())

    def publish(self, event: EventBase) -> None:
        """Publish an event; a sample and an engine that failed are judged after it."""
        self._events.publish(event)
        if isinstance(event, TelemetryEvent):
            self._judge(event.sample)
        elif isinstance(event, EngineStateEvent) and event.engine.state is EngineState.FAILED:
            self._died(event.engine)

    async def close(self) -> None:
        """Leave the disks alone."""
        for task in self._looking.values():
            task.cancel()
        await asyncio.gather(*self._looking.values(), return_exceptions=True)

    def _settings(self) -> AlertSettings:
        return self._file.current.alerts

    def _on_disks(self) -> tuple[Path, ...]:
        """Return the folders whose disks must not fill up."""
        models = (files.expanded(folder) for folder in self._file.current.models.folders)
        return (self._folders.data, self._folders.cache, *models)

    def _open(self) -> dict[Key, Alert]:
        return {(one.kind, one.subject): one for one in self._alerts.values() if one.ended_at is None}

    def _judge(self, sample: Sample) -> None:
        settings = self._settings()
        self._take_values(sample.at, list(measurements(sample.values, settings)))
        for subject, more in self._watch.new_errors(sample.values, settings):
            errors = tr("memory error") if more == 1 else tr("memory errors")
            text = tr(
                "{subject} counted {more} {errors} that it could not correct.",
                subject=subject,
                more=more,
                errors=errors,
            )
            self._begin(AlertKind.GPU_ECC, subject, text, sample.at, ended_at=sample.at, value=float(more))
        self._forget(sample.at)
        if self._looked is None or not 0 <= sample.at - self._looked < _DISK_SECONDS:
            self._looked = sample.at
            for folder in self._on_disks():
                # A disk of the network that does not answer holds its own look alone.
                if folder not in self._looking or self._looking[folder].done():
                    self._looking[folder] = asyncio.create_task(
                        self._look(folder, sample.at), name="free space"
                    )

    async def _look(self, folder: Path, at: float) -> None:
        found = await asyncio.to_thread(_free, folder)
        if found is not None:
            self._take_values(at, list(disk(*found, self._settings())))

    def _forget(self, at: float) -> None:
        """End the alerts of what is not measured any more."""
        if self._since is None:
            self._since = at
        for key, alert in self._open().items():
            if at - self._measured.get(key, self._since) > _FORGOTTEN:
                self._keep(alert.model_copy(update={"ended_at": at}))
                self._events.publish(AlertsChangedEvent())

    def _take_values(self, at: float, measured: list[Measured]) -> None:
        self._measured |= {one.key: at for one in measured}
        is_open = self._open()
        judged = self._watch.judge(at, measured, self._settings(), is_open)
        for key in judged.ended:
            if key in is_open:
                self._keep(is_open[key].model_copy(update={"ended_at": at}))
                self._events.publish(AlertsChangedEvent())
        for one in judged.going_on:
            self._go_on(is_open[one.key], one)
        for one in judged.begun:
            self._begin(
                one.kind,
                one.subject,
                _sentence(one),
                at,
                value=one.value,
                threshold=one.threshold,
                unit=one.unit,
            )

    def _go_on(self, alert: Alert, now: Measured) -> None:
        """Keep the worst value; what is left on a disk is said anew, as it is looked at once a minute."""
        on_disk = alert.kind is AlertKind.DISK
        before = alert.worst if alert.worst is not None else now.value
        worst = min(before, now.value) if on_disk else max(before, now.value)
        text = _sentence(now) if on_disk else alert.text
        if (worst, text) != (alert.worst, alert.text):
            # Written to the disk when it ends: a temperature moves every second.
            self._alerts[alert.id] = alert.model_copy(update={"worst": worst, "text": text})
        if text != alert.text:
            self._events.publish(AlertsChangedEvent())

    def _died(self, engine: Engine) -> None:
        if engine.ready_at is None:
            # Whoever started it was told.
            return
        why = engine.problem.message if engine.problem is not None else tr("It ended by itself.")
        at = engine.ended_at if engine.ended_at is not None else engine.created_at
        self._begin(AlertKind.ENGINE_DIED, engine.name, why, at, ended_at=at, engine=engine.id, quiet=True)

    def _begin(
        self,
        kind: AlertKind,
        subject: str,
        text: str,
        at: float,
        *,
        ended_at: float | None = None,
        value: float | None = None,
        threshold: float | None = None,
        unit: str = "",
        engine: str | None = None,
        quiet: bool = False,
    ) -> None:
        """Keep an alert and tell of it; `quiet`: somebody else tells."""
        alert = Alert(
            id=secrets.token_hex(6),
            kind=kind,
            subject=subject,
            text=text,
            at=at,
            ended_at=ended_at,
            value=value,
            worst=value,
            threshold=threshold,
            unit=unit,
            engine=engine,
        )
        self._keep(alert)
        if len(self._alerts) > _MOST:
            oldest = min(self._alerts.values(), key=lambda one: one.at)
            self._alerts.pop(oldest.id)
            with _logged():
                self._store.prune(_KIND, _MOST)
        self._events.publish(AlertsChangedEvent())
        if not quiet:
            self._events.publish(
                NoticeEvent(
                    key=f"alert {kind} {subject}",
                    severity=Severity.WARNING,
                    text=tr("{text} sndr alerts", text=text),
                )
            )

    def _keep(self, alert: Alert) -> None:
        self._alerts[alert.id] = alert
        with _logged():
            self._store.put(_KIND, alert.id, alert.at, alert.model_dump_json())


def _sentence(one: Measured) -> str:
    """Return one sentence with the value and its threshold."""
    match one.kind:
        case AlertKind.GPU_TEMPERATURE:
            return tr(
                "{subject} is at {one:.0f} °C (alert from {threshold:.0f} °C).",
                subject=one.subject,
                one=one.value,
                threshold=one.threshold,
            )
        case AlertKind.GPU_MEMORY:
            return tr(
                "{subject}'s memory is {one:.1%} full (alert from {threshold:.1%}).",
                subject=one.subject,
                one=one.value,
                threshold=one.threshold,
            )
        case AlertKind.RAM:
            return tr(
                "RAM is {one:.1%} full (alert from {threshold:.1%}).", one=one.value, threshold=one.threshold
            )
        case _:
            free, least = size_text(one.value), size_text(one.threshold)
            return tr(
                "The disk at {subject} has {free} left (alert below {least}).",
                subject=one.subject,
                free=free,
                least=least,
            )


def _free(folder: Path) -> tuple[str, float] | None:
    """Return where a folder's disk is mounted and its free bytes; None for one that is not there."""
    with contextlib.suppress(OSError):
        free = float(shutil.disk_usage(folder).free)
        mount = folder.resolve()
        while not mount.is_mount():
            mount = mount.parent
        return str(mount), free
    return None


def _read(store: Store) -> list[Alert]:
    """Return what is kept; a document that is none is left out."""
    found = []
    for text in store.newest(_KIND, _MOST):
        with contextlib.suppress(ValidationError):
            found.append(Alert.model_validate_json(text))
    return found


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """Log that an alert could not be kept: it is told all the same."""
    try:
        yield
    except HostError as error:
        _log.warning("An alert is not kept on the disk: %s", error)
