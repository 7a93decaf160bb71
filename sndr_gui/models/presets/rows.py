"""The list of presets on Launch: its rows with their verdicts, its columns, and what narrows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import PresetStatus, Workload
from engine_host.protocol.language import ntr, tr, unit
from engine_host.protocol.launch.fit import Verdict
from engine_host.protocol.presets import EntryOrigin, PresetItem, PresetVerdict
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.fit.device_memory import VERDICTS
from sndr_gui.models.launch.subject import ENGINE_NAMES

ALL = ""
FACETS = ("status", "workload", "engine")
WORKS = (Verdict.FITS, Verdict.TIGHT)
STATUS_TONES = {
    PresetStatus.VERIFIED: "good",
    PresetStatus.REPORTED: "accent",
    PresetStatus.DEPRECATED: "bad",
    PresetStatus.UPSTREAM_GATED: "warn",
    PresetStatus.EXPERIMENTAL: "warn",
    PresetStatus.PREVIEW: "warn",
}
STATUS_MEANS = {
    PresetStatus.VERIFIED: tr("this project ran it"),
    PresetStatus.REPORTED: tr("others published results"),
    PresetStatus.COMPUTED: tr("computed to fit, not measured"),
    PresetStatus.EXPERIMENTAL: tr("it ran, with known problems"),
    PresetStatus.PREVIEW: tr("it ran, with known problems"),
    PresetStatus.UPSTREAM_GATED: tr("it waits for an upstream change"),
    PresetStatus.DEPRECATED: tr("do not use it for new setups"),
}
JUDGING = tr("checking…")


@dataclass(frozen=True)
class PresetRow:
    """A preset and what is known of it on this machine; `rank`: its place among all, the best first."""

    item: PresetItem
    verdict: PresetVerdict | None = None
    rank: int = 0

    @property
    def about(self) -> str:
        """Engine, status and what it is good for, in one line."""
        preset = self.item.preset
        own = ("own",) if self.item.origin is EntryOrigin.USER else ()
        words = [workload_words(workload) for workload in preset.card.good_for]
        return "  ·  ".join(
            (ENGINE_NAMES[preset.engine.value], word_of(preset.card.status.value), *own, ", ".join(words))
        )

    @property
    def here(self) -> tuple[str, str]:
        """The verdict in words, and its tone."""
        if not self.item.startable:
            return tr("deployment only"), "muted"
        if self.verdict is None:
            return JUDGING, "muted"
        words, tone = VERDICTS[self.verdict.verdict]
        # Most of a catalogue is for other machines: that is no alarm.
        quiet = self.verdict.verdict is Verdict.CANNOT_RUN
        words = (
            tr("needs {lacks}", lacks=lacks)
            if quiet and (lacks := self._lacks)
            else tr("cannot run")
            if quiet
            else words
        )
        if self.works and not self.ready:
            return tr("{words}, not ready", words=words), "muted"
        return words, "muted" if quiet else tone

    @property
    def _lacks(self) -> str:
        """The hardware that is lacking, in a column's words; empty where it is none."""
        missing = {finding.id for finding in self.verdict.missing} if self.verdict is not None else set()
        needs = self.item.preset.needs
        if "preset.gpus" in missing:
            return needs.short
        return f"SM {needs.sm}" if "preset.sm" in missing else ""

    @property
    def works(self) -> bool:
        """True when it fits on this machine, be it there already or not."""
        return self.verdict is not None and self.verdict.verdict in WORKS

    @property
    def ready(self) -> bool:
        """True when it fits, and this program starts it without a download or an installation first."""
        if self.verdict is None or not self.works or not self.item.startable:
            return False
        return all(finding.severity is not Severity.ERROR for finding in self.verdict.missing)

    @property
    def why(self) -> str:
        """The reason for the verdict."""
        if not self.item.startable:
            name = ENGINE_NAMES[self.item.preset.engine.value]
            return tr("This program does not start {name}: its unit or container does.", name=name)
        if self.verdict is None:
            return tr("Not computed yet.")
        missing = ntr("{n} thing missing", "{n} things missing", len(self.verdict.missing))
        parts = [self.verdict.why, missing if self.verdict.missing else ""]
        if self.verdict.needed is not None and self.verdict.room is not None:
            parts.append(
                tr(
                    "{size} needed, {size_2} usable",
                    size=formats.size(self.verdict.needed),
                    size_2=formats.size(self.verdict.room),
                )
            )
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True)
class PresetFacets:
    """The facets that the list is filtered by; an empty text filters nothing."""

    status: str = ALL
    workload: str = ALL
    engine: str = ALL
    here: bool = False


def passes(row: PresetRow, wanted: PresetFacets) -> bool:
    """Return True when a row passes the facets; while nothing is judged yet, nothing is hidden for it."""
    preset = row.item.preset
    return (
        wanted.status in (ALL, preset.card.status.value)
        and wanted.engine in (ALL, preset.engine.value)
        and (wanted.workload == ALL or wanted.workload in preset.card.good_for)
        and (not wanted.here or row.verdict is None or row.verdict.verdict in {*WORKS, Verdict.UNKNOWN})
    )


def preset_rows(items: Iterable[PresetItem], verdicts: Iterable[PresetVerdict]) -> list[PresetRow]:
    """Return the rows, what will work best first; presets without a verdict come last, in their own order."""
    judged = {verdict.preset: (place, verdict) for place, verdict in enumerate(verdicts)}
    last = len(judged)
    rows = []
    for item in items:
        place, verdict = judged.get(item.preset.id, (last, None))
        rows.append(PresetRow(item, verdict, place))
    return sorted(rows, key=lambda row: row.rank)


def choices(facet: str, rows: Iterable[PresetRow]) -> list[tuple[str, str]]:
    """Return the choices of a facet: everything, then each value that occurs."""
    captions: Mapping[str, str] = {
        "status": tr("Status"),
        "workload": tr("Workload"),
        "engine": tr("Engine"),
    }
    order: Callable[[str], int] = {
        "status": [status.value for status in PresetStatus].index,
        "workload": [workload.value for workload in Workload].index,
        "engine": list(ENGINE_NAMES).index,
    }[facet]
    found: set[str] = set()
    for row in rows:
        preset = row.item.preset
        if facet == "workload":
            found |= {workload.value for workload in preset.card.good_for}
        else:
            found.add(preset.card.status.value if facet == "status" else preset.engine.value)
    shown = [(_label(facet, value), value) for value in sorted(found, key=order)]
    return [(captions[facet], ALL), *shown]


def _label(facet: str, value: str) -> str:
    if facet == "engine":
        return ENGINE_NAMES[value]
    return word_of(value.replace("-", " ")) if facet in {"workload", "status"} else value


def workload_words(workload: Workload) -> str:
    """Return a workload as people write it."""
    return word_of(workload.value.replace("-", " "))


def _sure(row: PresetRow) -> float | None:
    """Return the ceiling of one stream in tokens a second, without drafts."""
    if row.verdict is None:
        return None
    return row.verdict.decode_undrafted or row.verdict.decode


def _speed_words(row: PresetRow) -> str:
    """Return what the ceiling is of, what drafts may add, and what somebody measured on this hardware."""
    found, sure = row.verdict, _sure(row)
    if found is None or sure is None:
        lines = [tr("The speed limit is not known: a figure for it is missing.")]
    else:
        lines = [
            tr("Speed limit of one stream by memory bandwidth, tokens per second.")
            if found.decode_undrafted is None or found.decode is None
            else tr(
                "Speed limit of one stream by memory bandwidth, tokens per second without draft tokens; "
                "{rate} if all were accepted.",
                rate=formats.rate(found.decode),
            )
        ]
    if found is not None and found.measured is not None and found.measured.value is not None:
        rate = formats.rate(found.measured.value)
        lines.append(
            tr("Measured by this project on this hardware: {rate}.", rate=rate)
            if found.measured.by == "us"
            else tr("Measured by others on this hardware: {rate}.", rate=rate)
        )
        if found.measured_why:
            lines.append(found.measured_why)
    return "\n".join(lines)


def preset_columns() -> list[Column[PresetRow]]:
    """Return the columns of the list; the last one is for the search alone."""

    def name(row: PresetRow) -> str:
        return f"{row.item.preset.title}\n{row.about}"

    def speed(row: PresetRow) -> str:
        decode = _sure(row)
        return (
            formats.UNMEASURED
            if decode is None
            else formats.number(decode, ".1f")
            if decode < 100
            else formats.number(decode, ",.0f")
        )

    def words(row: PresetRow) -> str:
        preset, item = row.item.preset, row.item
        tasks = " ".join(task.value for task in item.tasks)
        return f"{preset.id} {preset.summary} {item.model_title} {item.family} {preset.variant} {tasks}"

    return [
        Column(
            tr("Preset"),
            name,
            lambda row: row.item.preset.title.casefold(),
            lambda row: "muted" if row.verdict is not None and not row.works else "",
            tip=lambda row: row.item.preset.summary,
        ),
        Column(
            tr("Here"),
            lambda row: row.here[0],
            lambda row: row.rank,
            lambda row: row.here[1],
            tip=lambda row: row.why,
        ),
        Column(
            f"≤ {unit('tok/s')}",
            speed,
            lambda row: -(_sure(row) or 0.0),
            lambda row: "muted",
            right=True,
            tip=_speed_words,
        ),
        Column(tr("Words"), words),
    ]
