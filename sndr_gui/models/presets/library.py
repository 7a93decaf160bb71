"""The rows of the list on Presets, and its columns."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.language import tr
from sndr_gui.kit.rows import Column
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.presets.rows import STATUS_TONES

ALL, OWN, SHIPPED = "all", "own", "shipped"
_TONES: dict[str, str] = {
    "cannot be used": "bad",
    "not saved": "warn",
    **{status.value: tone for status, tone in STATUS_TONES.items()},
}


@dataclass(frozen=True)
class LibraryRow:
    """A preset, an own file that cannot be used, or a draft that was never saved."""

    id: str
    title: str
    origin: str
    model: str = ""
    engine: str = ""
    status: str = ""
    draft: bool = False
    extends: str | None = None
    why: str = ""

    @property
    def own(self) -> bool:
        """True for a preset of the person's own."""
        return self.origin != SHIPPED

    @property
    def kind(self) -> str:
        """Return the words for its origin."""
        words = {SHIPPED: tr("shipped"), OWN: tr("own")}.get(self.origin)
        if words is None:
            return tr("draft")
        return tr("{words}, draft", words=words) if self.draft else words


def library_columns() -> tuple[Column[LibraryRow], ...]:
    """Return the columns of the list."""
    return (
        Column(tr("Preset"), lambda row: row.title, tip=lambda row: f"{row.id}\n{row.why}".strip()),
        Column("ID", lambda row: row.id, tone=lambda _row: "muted"),
        Column(
            tr("Origin"),
            lambda row: row.kind,
            tone=lambda row: "warn" if row.draft else "accent" if row.own else "muted",
        ),
        Column(tr("Model"), lambda row: row.model, tone=lambda _row: "muted"),
        Column(tr("Engine"), lambda row: row.engine, tone=lambda _row: "muted"),
        Column(
            tr("Status"),
            lambda row: word_of(row.status),
            tone=lambda row: _TONES.get(row.status, "muted"),
            tip=lambda row: row.why or word_of(row.status),
        ),
    )
