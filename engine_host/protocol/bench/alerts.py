"""Alerts: what passed a threshold or ended badly on a machine, now or in the past."""

from enum import StrEnum

from engine_host.protocol.base import Command, Query, Seconds, Wire
from engine_host.protocol.language.spoken import Sentence, Spoken


class AlertKind(StrEnum):
    """The subject of an alert."""

    GPU_TEMPERATURE = "gpu_temperature"
    GPU_MEMORY = "gpu_memory"
    GPU_ECC = "gpu_ecc"
    RAM = "ram"
    DISK = "disk"
    ENGINE_DIED = "engine_died"


class Alert(Spoken):
    """One alert: `value` and `threshold` in `unit` (celsius, share, bytes); `ended_at` None while it lasts.

    `subject` is a GPU (`GPU 0`), a folder or an engine's name; `worst` is the worst value measured while it
    lasted. `seen` tells that somebody put it away.
    """

    id: str
    kind: AlertKind
    subject: str
    text: Sentence
    at: Seconds
    ended_at: Seconds | None = None
    value: float | None = None
    worst: float | None = None
    threshold: float | None = None
    unit: str = ""
    engine: str | None = None
    seen: bool = False

    @property
    def told(self) -> str:
        """The alert by the name of its subject: why an engine died is a sentence about "it"."""
        return f"{self.subject}: {self.text}" if self.kind is AlertKind.ENGINE_DIED else self.text

    @property
    def needs_attention(self) -> bool:
        """Tell that it still lasts, or that nobody has seen it yet."""
        return self.ended_at is None or not self.seen


class AlertQuery(Query):
    """All alerts that are kept, or those alone that last or that nobody has seen."""

    everything: bool = False


class AlertPage(Wire):
    """Alerts, the newest first."""

    seq: int
    alerts: tuple[Alert, ...]


class SeeAlerts(Command):
    """Put alerts away: those named, or all that there are."""

    ids: tuple[str, ...] = ()
