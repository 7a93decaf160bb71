"""Presets on the wire: lists with faults, what one resolves to and why, changes to a person's own."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from engine_host.protocol.base import Command, Page, Severity, Wire
from engine_host.protocol.catalog import (
    EngineEntry,
    Evidence,
    HardwareEntry,
    Id,
    ModelEntry,
    PresetEngine,
    PresetEntry,
    PresetVariation,
    ProfileEntry,
    Task,
)
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Reason
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.consents import Demand
from engine_host.protocol.launch.fit import Verdict
from engine_host.protocol.launch.plans import Finding, Layer
from engine_host.protocol.patches import PatchChoice


class EntryOrigin(StrEnum):
    """The author of a file of the catalogue."""

    PROGRAM = "program"
    USER = "user"


class CatalogFault(Spoken):
    """Something wrong in a file; an `error` keeps the file out of the catalogue."""

    severity: Severity
    file: str
    line: int | None = None
    key: str = ""
    message: Sentence
    fix: str = ""


class PresetItem(Wire):
    """A preset as it holds, a variation with what it changes already in it."""

    preset: PresetEntry
    origin: EntryOrigin
    file: str
    digest: str = Field(description="changes when the file does")
    extends: str | None = None
    model_title: str
    family: str
    tasks: tuple[Task, ...]
    size: int | None = Field(None, description="bytes of the weights; None where they are not known")
    startable: bool = Field(description="whether this program starts its engine")


class PresetPage(Page):
    """Every usable preset by id, and what is wrong in the files of the others."""

    seq: int
    presets: tuple[PresetItem, ...]
    faults: tuple[CatalogFault, ...] = ()


class HardwareHere(Wire):
    """The GPUs of this machine as the catalogue knows them; `hardware` is None for one that it does not know.

    Of several kinds, the one with the most memory in all.
    """

    hardware: str | None
    name: str
    count: int


class CatalogPage(Page):
    """The rest of the catalogue; `here` is None on a machine without a GPU."""

    seq: int
    here: HardwareHere | None = None
    models: tuple[ModelEntry, ...]
    hardware: tuple[HardwareEntry, ...]
    profiles: tuple[ProfileEntry, ...]
    engines: tuple[EngineEntry, ...]
    faults: tuple[CatalogFault, ...] = ()


class SetBy(Wire):
    """The source of a value: the layer, its file, the key in it and the line it stands on."""

    layer: Layer
    value: Any
    file: str
    key: str
    line: int | None = None


class ResolvedSetting(Wire):
    """One setting, who set it, and whom that overruled (the last one first)."""

    name: str
    value: Any
    by: SetBy
    over: tuple[SetBy, ...] = ()


class SettingConflict(Spoken):
    """Two layers that cannot both be right; `limit` is what `by` goes beyond, or the value it excludes."""

    settings: tuple[str, ...]
    message: Sentence
    because: Sentence
    by: SetBy
    limit: SetBy


class ResolvedPreset(Wire):
    """A preset resolved on some hardware; it can be started when nothing is in conflict."""

    seq: int = 0
    preset: PresetEntry
    model: ModelEntry
    engine: PresetEngine
    hardware: str | None = None
    count: int | None = None
    settings: tuple[ResolvedSetting, ...]
    overrides: Overrides = Field(description="what the engine's own defaults do not say")
    patches: PatchChoice
    conflicts: tuple[SettingConflict, ...] = ()
    findings: tuple[Finding, ...] = Field((), description="what the hardware lacks, and what to know")


class PresetDetail(Wire):
    """One preset with its file, its model and what it resolves to without any hardware."""

    seq: int
    item: PresetItem
    text: str = Field(description="the YAML file")
    model: ModelEntry
    profile: ProfileEntry
    base: PresetEntry | None = Field(None, description="what a variation extends")
    variation: PresetVariation | None = None
    resolved: ResolvedPreset


class PresetFile(Wire):
    """The YAML file of a preset, whether or not it can be used."""

    id: str
    file: str
    text: str
    digest: str
    origin: EntryOrigin


class ResolvePreset(Command):
    """Resolve a preset; `hardware` is an id of the catalogue, or `here` for the GPUs of this machine.

    Without a `count` there are as many as are needed, or as there are here.
    """

    preset: str
    hardware: str | None = None
    count: int | None = Field(None, ge=1, le=8)
    overrides: Overrides = Overrides.model_construct()


class LintPreset(Command):
    """Check a text before it is saved; `id` is the preset that it would replace."""

    text: str
    id: Id | None = None


class PresetLint(Wire):
    """The faults of a text, and what saving it would change; `preset` when it could be saved."""

    faults: tuple[CatalogFault, ...]
    preset: PresetEntry | None = None
    resolved: ResolvedPreset | None = None
    diff: str = Field("", description="unified diff from the saved file")
    data: dict[str, Any] | None = Field(None, description="what the text says; None where it is no YAML")
    demands: tuple[Demand, ...] = Field((), description="what it asks for beyond harmless settings")

    @property
    def usable(self) -> bool:
        """Tell whether it could be saved."""
        return all(fault.severity is not Severity.ERROR for fault in self.faults)


class PresetChange(Command):
    """One value of a preset's text, by its path of keys; `remove` takes the key out."""

    path: tuple[str, ...] = Field(min_length=1, max_length=8)
    value: Any = None
    remove: bool = False


class EditPreset(Command):
    """Change values in a text; comments and everything else stay as they are."""

    text: str
    changes: tuple[PresetChange, ...] = Field(max_length=200)


class EditedPreset(Wire):
    """The changed text; nothing is saved."""

    text: str


class SavePreset(Command):
    """Save a person's preset; `digest` is that of the file it replaces, None for a new one."""

    text: str
    digest: str | None = None


class SavedPreset(Wire):
    """A saved or removed preset; `previous` is the text that was there, for undoing."""

    id: str
    file: str
    digest: str | None = None
    previous: str | None = None
    faults: tuple[CatalogFault, ...] = ()


class ExportedPreset(Wire):
    """A preset as one file, with everything of the person's own that it needs."""

    id: str
    text: str


class ImportPreset(Command):
    """Take in an exported file; `id` renames the preset, `replace` allows replacing what is there.

    `consent` is the SHA-256 of the text, from whoever has seen what it asks for beyond harmless settings.
    """

    text: str
    id: Id | None = None
    replace: bool = False
    consent: str | None = None


class ImportedPreset(Wire):
    """The files that an import wrote; files that were the same already are `unchanged`."""

    id: str
    written: tuple[str, ...]
    unchanged: tuple[str, ...] = ()
    faults: tuple[CatalogFault, ...] = ()


class JudgePresets(Command):
    """Ask for the verdict on every preset; without `hardware` for this machine, with what is free there.

    Of named hardware there is one, unless `count` says more.
    """

    hardware: str | None = None
    count: int | None = Field(None, ge=1, le=8)


class PresetVerdict(Spoken):
    """One preset on one machine: whether it would work, how well at most, and what is missing to start it.

    `decode` is the ceiling of one stream in tokens a second, its context having just begun and every draft
    accepted; `decode_at_depth` with its whole context; `decode_all_streams` of all `streams` of its start
    together, at the beginning. None where a figure for it is not known. `decode_undrafted` is the one of
    `decode` with no draft accepted, None where nothing drafts; text decides what comes about between the two.
    `measured` is what one stream gave somebody on this very hardware, as the card tells; `measured_why` says
    how it can be above one of the two. `missing` names what has to be fetched or installed first.
    """

    preset: str
    verdict: Verdict
    reason: Reason | None = None
    why: Sentence = ""
    needed: int | None = Field(None, description="bytes on the fullest device")
    room: int | None = Field(None, description="bytes that the engine may use of it")
    largest_context: int | None = None
    decode: float | None = None
    decode_at_depth: float | None = None
    decode_all_streams: float | None = None
    decode_undrafted: float | None = None
    measured: Evidence | None = None
    measured_why: Sentence = ""
    streams: int | None = None
    model: str | None = Field(None, description="id of the model on this machine that it would run")
    missing: tuple[Finding, ...] = ()


class PresetVerdicts(Wire):
    """Every usable preset, what will work best first."""

    hardware: str = Field(description="what the verdicts are for, for people")
    verdicts: tuple[PresetVerdict, ...]


class CheckedFile(Wire):
    """One file and its hash; `sha256` is None where it could not be read, and `problem` says why."""

    name: str
    path: str
    expected: str
    sha256: str | None = None
    problem: str = ""

    @property
    def right(self) -> bool:
        """Tell whether it is byte for byte the file that the catalogue means."""
        return self.sha256 == self.expected


class CheckedFiles(Wire):
    """The files of a preset whose hashes the catalogue knows: the result of the job preset.verify."""

    preset: str
    model: str
    files: tuple[CheckedFile, ...]

    @property
    def right(self) -> bool:
        """Tell whether all of them are."""
        return all(file.right for file in self.files)


class PresetForm(Wire):
    """JSON Schemas for a form: of a whole preset, of a variation, of the settings."""

    preset: dict[str, Any]
    variation: dict[str, Any]
    settings: dict[str, Any]
