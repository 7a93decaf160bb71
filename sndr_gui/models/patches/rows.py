"""The rows of the table of patches, its columns, and what it can be narrowed to."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from engine_host.protocol.language import tr
from engine_host.protocol.patches import Patch
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column
from sndr_gui.kit.setting_words import word_of

ALL = "All"
HERE = "here"
NOT_HERE = tr("not here")
"""The state of a patch of which a process says nothing."""
FACETS = {
    "family": tr("Any family"),
    "state": tr("Any state"),
    "kind": tr("Any kind"),
    "range": tr("Any version"),
}
TONES = {
    "applied": "good",
    "skipped": "warn",
    "failed": "bad",
    "reverted": "bad",
    "pending": "accent",
}


@dataclass(frozen=True)
class PatchRow:
    """One line of the table; `ms` is the longest apply time of a process."""

    patch: Patch
    state: str
    why: str
    ms: float | None

    @property
    def kinds(self) -> str:
        """The kinds of the patch, in a few words."""
        return ", ".join(self.patch.kinds)


@dataclass(frozen=True)
class Facets:
    """The facets of the table; `All` filters nothing, the range `here` means the vLLM in use."""

    family: str = ALL
    state: str = ALL
    kind: str = ALL
    range: str = ALL
    pid: int | None = None


def covers(patch: Patch, version: str) -> bool:
    """Return True when a patch is for this version of vLLM; without a version nothing is hidden."""
    if not version:
        return True
    try:
        return SpecifierSet(patch.applies_to.vllm).contains(version, prereleases=True)
    except InvalidSpecifier:
        # The host refuses such a range; what another host says must not stop the table.
        return True


def passes(row: PatchRow, facets: Facets, version: str = "") -> bool:
    """Return True when a row is in the chosen facets; `version` is what `here` means."""
    patch = row.patch
    in_range = facets.range in (ALL, patch.applies_to.vllm)
    return (
        facets.family in (ALL, patch.family)
        and facets.state in (ALL, row.state)
        and (facets.kind == ALL or facets.kind in patch.kinds)
        and (covers(patch, version) if facets.range == HERE else in_range)
        and (facets.pid is None or row.state != NOT_HERE)
    )


def columns() -> list[Column[PatchRow]]:
    """Return the table's columns."""

    def muted(_row: PatchRow) -> str:
        return "muted"

    return [
        Column("ID", lambda row: row.patch.id, tone=muted, tip=lambda row: row.patch.title),
        Column(tr("Patch"), lambda row: row.patch.title, tip=lambda row: row.patch.problem),
        Column(tr("Family"), lambda row: row.patch.family, tone=muted),
        Column(tr("Kind"), lambda row: row.kinds, tone=muted),
        Column(tr("Range"), lambda row: row.patch.applies_to.vllm, tone=muted),
        Column(
            tr("State"),
            lambda row: word_of(row.state),
            tone=lambda row: TONES.get(row.state, "muted"),
            tip=lambda row: row.why,
        ),
        Column(
            tr("Apply time"),
            lambda row: (
                formats.UNMEASURED if row.ms is None else formats.measure(formats.number(row.ms, ".1f"), "ms")
            ),
            sort=lambda row: -1.0 if row.ms is None else row.ms,
            tone=muted,
            right=True,
        ),
    ]
