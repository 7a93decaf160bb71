"""The catalogue of presets, and the changes to a person's own presets."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from engine_host.catalog.drafts import Draft, edited, lint
from engine_host.catalog.entries import Loaded, digest
from engine_host.catalog.exchange import check_import, export, refuse
from engine_host.catalog.index import Catalog
from engine_host.catalog.needs import card_seen
from engine_host.catalog.reader import Place, Reader
from engine_host.catalog.recognise import recognise
from engine_host.catalog.resolve import TargetHardware, UserValues, resolve
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.settings import SettingsFile
from engine_host.operations.performs import performs
from engine_host.protocol.catalog import Id, PresetEngine, PresetEntry, PresetVariation
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.events import PresetsChangedEvent
from engine_host.protocol.host import Gpu
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import (
    CatalogPage,
    EditedPreset,
    EditPreset,
    EntryOrigin,
    ExportedPreset,
    ImportedPreset,
    ImportPreset,
    LintPreset,
    PresetDetail,
    PresetFile,
    PresetForm,
    PresetItem,
    PresetLint,
    PresetPage,
    ResolvedPreset,
    ResolvePreset,
    SavedPreset,
    SavePreset,
)

# Asks for the GPUs of this machine.
HERE = "here"
_STARTED = {PresetEngine.LLAMA_CPP, PresetEngine.VLLM}
# Settings of every start that a person can set for good, by their names in a preset.
_OF_THE_USER = {name: f"engine.{name}" for name in ("context", "streams", "threads")}
_ID: TypeAdapter[str] = TypeAdapter(Id)


class PresetOperations:
    """The catalogue as the window and the command line see it; changed files are read anew."""

    def __init__(
        self,
        shipped: Callable[[], Path],
        own: Path,
        settings: SettingsFile,
        events: EventLog,
        gpus: Callable[[], Sequence[Gpu]],
    ) -> None:
        self._shipped = shipped
        self._gpus = gpus
        self._own = Place(own, EntryOrigin.USER, str(own))
        self._settings = settings
        self._events = events
        self._reader: Reader | None = None
        self._changing = asyncio.Lock()

    async def catalog(self) -> Catalog:
        """The catalogue as it is now. Raises HostError(not_found) when the installation is incomplete."""
        if self._reader is None:
            shipped = Place(self._shipped(), EntryOrigin.PROGRAM, "presets")
            self._reader = Reader((shipped, self._own))
        return await asyncio.to_thread(self._reader.read)

    @performs(ops.PRESETS)
    async def page(self) -> PresetPage:
        """Every preset, and what is wrong in files."""
        catalog = await self.catalog()
        items = tuple(_item(catalog, name) for name in catalog.ids())
        return PresetPage(seq=self._events.seq, presets=items, faults=catalog.faults)

    @performs(ops.CATALOG)
    async def entries(self) -> CatalogPage:
        """Models, hardware, profiles and engines."""
        catalog = await self.catalog()
        return CatalogPage(
            seq=self._events.seq,
            here=recognise(catalog, await asyncio.to_thread(self._gpus)),
            models=tuple(one.entry for _, one in sorted(catalog.models.items())),
            hardware=tuple(one.entry for _, one in sorted(catalog.hardware.items())),
            profiles=tuple(one.entry for _, one in sorted(catalog.profiles.items())),
            engines=tuple(one.entry for _, one in sorted(catalog.engines.items())),
            faults=catalog.faults,
        )

    @performs(ops.PRESET_FORM)
    async def form(self) -> PresetForm:
        """JSON Schemas for editing a preset."""
        return PresetForm(
            preset=PresetEntry.model_json_schema(),
            variation=PresetVariation.model_json_schema(),
            settings=Overrides.model_json_schema(),
        )

    @performs(ops.PRESET)
    async def detail(self, preset_id: str) -> PresetDetail:
        """One preset with its file. Raises HostError(not_found)."""
        catalog = await self.catalog()
        item, file = _item(catalog, preset_id), catalog.file(preset_id)
        variation = catalog.variations.get(preset_id)
        return PresetDetail(
            seq=self._events.seq,
            item=item,
            text=file.document.text,
            model=catalog.models[item.preset.model].entry,
            profile=catalog.profiles[item.preset.profile].entry,
            base=catalog.presets[variation.entry.extends].entry if variation else None,
            variation=variation.entry if variation else None,
            resolved=resolve(catalog, preset_id, user=self._user()),
        )

    @performs(ops.PRESET_FILE)
    async def file(self, preset_id: str) -> PresetFile:
        """The file of a preset, also of one that cannot be used, to mend it. Raises HostError(not_found)."""
        _check_id(preset_id)
        catalog = await self.catalog()
        path = self._own.root / f"{preset_id}.yaml"
        if preset_id in catalog.ids():
            known = catalog.file(preset_id)
            return PresetFile(
                id=preset_id,
                file=known.file,
                text=known.document.text,
                digest=known.digest,
                origin=known.origin,
            )
        text = await asyncio.to_thread(_text, path)
        if text is None:
            catalog.preset(preset_id)
        return PresetFile(
            id=preset_id,
            file=self._own.name(path),
            text=text or "",
            digest=digest(text or ""),
            origin=EntryOrigin.USER,
        )

    @performs(ops.RESOLVE_PRESET)
    async def resolve(self, asked: ResolvePreset) -> ResolvedPreset:
        """Resolve a preset on some hardware.

        Raises HostError(not_found), HostError(bad_request) for more GPUs of this machine than it has.
        """
        catalog = await self.catalog()
        machine = None
        if asked.hardware == HERE:
            machine = await self.here(asked.count)
        elif asked.hardware is not None:
            count = asked.count or max(1, catalog.preset(asked.preset).needs.gpus)
            machine = TargetHardware(asked.hardware, count)
        found = resolve(catalog, asked.preset, machine, self._user(), asked.overrides)
        return found.model_copy(update={"seq": self._events.seq})

    async def resolve_for(
        self, preset_id: str, machine: TargetHardware | None, overrides: Overrides | None = None
    ) -> ResolvedPreset:
        """Resolve a preset on a machine; every start and every verdict is made from this.

        Raises HostError(not_found).
        """
        return self.resolve_in(await self.catalog(), preset_id, machine, overrides)

    def resolve_in(
        self,
        catalog: Catalog,
        preset_id: str,
        machine: TargetHardware | None,
        overrides: Overrides | None = None,
    ) -> ResolvedPreset:
        """The same in a catalogue that was read before. Raises HostError(not_found)."""
        return resolve(catalog, preset_id, machine, self._user(), overrides)

    async def known(self, preset_id: str) -> bool:
        """Tell whether there is such a preset."""
        return preset_id in (await self.catalog()).ids()

    async def files_of(self, preset_id: str, hardware: str | None) -> str:
        """Changes when a file that a preset is resolved from does. Raises HostError(not_found)."""
        catalog = await self.catalog()
        preset, variation = catalog.preset(preset_id), catalog.variations.get(preset_id)
        files: list[Loaded[Any] | None] = [
            catalog.engines.get(preset.engine),
            catalog.hardware.get(hardware or ""),
            catalog.models[preset.model],
            catalog.profiles[preset.profile],
            catalog.presets[variation.entry.extends if variation else preset_id],
            variation,
        ]
        return " ".join("" if file is None else file.digest for file in files)

    async def machine_of(self, hardware: str | None, count: int | None) -> TargetHardware:
        """The GPUs that are meant: of the catalogue, or without a name those of this machine.

        Also of a kind that the catalogue does not know. Raises HostError(not_found) for unknown hardware.
        """
        catalog = await self.catalog()
        if hardware is not None and hardware != HERE:
            catalog.gpu(hardware)
            return TargetHardware(hardware, count or 1)
        gpus = await asyncio.to_thread(self._gpus)
        found = recognise(catalog, gpus)
        if found is None:
            return TargetHardware(None, 0)
        there = found.count if count is None else min(count, found.count)
        if found.hardware is not None:
            return TargetHardware(found.hardware, there)
        return TargetHardware(None, there, card_seen(next(gpu for gpu in gpus if gpu.name == found.name)))

    async def here(self, count: int | None) -> TargetHardware:
        """This machine, with GPUs or without; of its GPUs `count`, where that is asked.

        Raises HostError(bad_request) when it has fewer.
        """
        found = await self.machine_of(None, count)
        if count is None or count == found.count:
            return found
        there = {0: "no GPU", 1: "one GPU"}.get(found.count, f"{found.count} GPUs")
        raise HostError(
            Reason.BAD_REQUEST,
            f"This machine has {there}; a count of {count} was asked for.",
            fix=Fix(text="Name the hardware that is meant.", command="sndr presets hardware"),
            evidence={"field": "count", "here": found.count},
        )

    async def resolved_on(self, asked: ResolvePreset) -> tuple[ResolvedPreset, str | None]:
        """The same with the compute capability of its GPUs; without hardware, of those it is known to run on.

        Raises HostError(not_found).
        """
        catalog = await self.catalog()
        known = catalog.preset(asked.preset).needs.known_good
        if asked.hardware is None and known:
            asked = asked.model_copy(update={"hardware": known[0]})
        found = await self.resolve(asked)
        if found.hardware is None and asked.hardware == HERE:
            card = (await self.machine_of(None, None)).card
            return found, None if card is None else card.sm
        return found, None if found.hardware is None else catalog.gpu(found.hardware).entry.sm

    @performs(ops.LINT_PRESET)
    async def lint(self, asked: LintPreset) -> PresetLint:
        """Return what is wrong in a text, and what saving it would change."""
        catalog = await self.catalog()
        file = _own_file(catalog, asked.id)
        name = asked.id or "preset"
        path = file.path if file else self._own.root / f"{name}.yaml"
        return lint(catalog, asked.text, path, self._own.name(path), file.document.text if file else "")

    @performs(ops.EDIT_PRESET)
    async def edit(self, asked: EditPreset) -> EditedPreset:
        """A text with values changed, comments kept. Raises HostError(preset_invalid)."""
        return EditedPreset(text=await asyncio.to_thread(edited, asked.text, asked.changes))

    @performs(ops.SAVE_PRESET)
    async def save(self, preset_id: str, asked: SavePreset) -> SavedPreset:
        """Save a person's preset.

        Raises HostError(preset_invalid) with everything that is wrong, HostError(conflict) when the file is
        not the one that was read before, HostError(disk_full), HostError(not_writable); nothing changed then.
        """
        _check_id(preset_id)
        async with self._changing:
            catalog = await self.catalog()
            file = _own_file(catalog, preset_id)
            path = file.path if file else self._own.root / f"{preset_id}.yaml"
            previous = _text(path)
            _check_unchanged(preset_id, path, previous, asked.digest)
            found = lint(catalog, asked.text, path, self._own.name(path), previous or "")
            refuse(found.faults)
            if found.preset is not None and found.preset.id != preset_id:
                raise HostError(
                    Reason.BAD_REQUEST,
                    f"The text is for {found.preset.id}, not for {preset_id}.",
                    fix="Save it under its own id.",
                    evidence={"id": preset_id, "in_text": found.preset.id},
                )
            await asyncio.to_thread(atomic_file.write, path, asked.text, 0o644, follow=True)
        self._events.publish(PresetsChangedEvent())
        return SavedPreset(
            id=preset_id,
            file=self._own.name(path),
            digest=digest(asked.text),
            previous=previous,
            faults=found.faults,
        )

    @performs(ops.REMOVE_PRESET)
    async def remove(self, preset_id: str) -> SavedPreset:
        """Remove a person's preset, also one that cannot be used; the answer holds its text.

        Raises HostError(not_found), HostError(conflict) when it comes with the program or others extend it.
        """
        async with self._changing:
            catalog = await self.catalog()
            path, text = await asyncio.to_thread(self._removable, catalog, preset_id)
            needing = [one.entry.id for one in catalog.variations.values() if one.entry.extends == preset_id]
            if needing:
                raise HostError(
                    Reason.CONFLICT,
                    f"{preset_id} cannot be removed: {', '.join(needing)} extend it.",
                    fix="Remove those first.",
                    evidence={"id": preset_id, "extended_by": needing},
                )
            try:
                await asyncio.to_thread(path.unlink, missing_ok=True)
            except OSError as error:
                raise atomic_file.saving_failed(path, error) from error
        self._events.publish(PresetsChangedEvent())
        return SavedPreset(id=preset_id, file=self._own.name(path), previous=text)

    def _removable(self, catalog: Catalog, preset_id: str) -> tuple[Path, str]:
        """The file and the text of a person's preset. Raises HostError(not_found), HostError(conflict)."""
        _check_id(preset_id)
        if preset_id in catalog.ids():
            file = _own_file(catalog, preset_id)
            if file is None:
                raise _shipped_one(preset_id)
            return file.path, file.document.text
        path = self._own.root / f"{preset_id}.yaml"
        text = _text(path)
        if text is None:
            catalog.preset(preset_id)
        return path, text or ""

    @performs(ops.EXPORT_PRESET)
    async def export(self, preset_id: str) -> ExportedPreset:
        """A preset as one file. Raises HostError(not_found)."""
        return ExportedPreset(id=preset_id, text=export(await self.catalog(), preset_id))

    @performs(ops.IMPORT_PRESET)
    async def take_in(self, asked: ImportPreset) -> ImportedPreset:
        """Import an exported preset: everything is checked first, and then all or nothing is written.

        Raises HostError(preset_invalid), HostError(conflict), HostError(disk_full), HostError(not_writable).
        """
        async with self._changing:
            catalog = await self.catalog()
            imported = check_import(catalog, asked.text, self._own, asked.id, replacing=asked.replace)
            await asyncio.to_thread(_write_all, imported.writes)
        if imported.writes:
            self._events.publish(PresetsChangedEvent())
        return ImportedPreset(
            id=imported.id,
            written=tuple(self._own.name(path) for path, _ in imported.writes),
            unchanged=imported.unchanged,
            faults=imported.faults,
        )

    def _user(self) -> UserValues:
        set_ones = {name: key for name, key in _OF_THE_USER.items() if self._settings.is_set(key)}
        engine = self._settings.current.engine
        values = {name: getattr(engine, name) for name in set_ones}
        return UserValues(str(self._settings.path), values, set_ones)


def _item(catalog: Catalog, preset_id: str) -> PresetItem:
    preset, file = catalog.preset(preset_id), catalog.file(preset_id)
    model = catalog.models[preset.model].entry
    variant = model.variant(preset.variant)
    return PresetItem(
        preset=preset,
        origin=file.origin,
        file=file.file,
        digest=file.digest,
        extends=file.entry.extends if isinstance(file.entry, PresetVariation) else None,
        model_title=model.title,
        family=model.family,
        tasks=model.tasks,
        size=variant.size if variant else None,
        startable=preset.engine in _STARTED,
    )


def _own_file(catalog: Catalog, preset_id: str | None) -> Draft | None:
    """The person's file of a preset; None when there is none, or the program has it."""
    found = catalog.presets.get(preset_id or "") or catalog.variations.get(preset_id or "")
    return found if found is not None and found.origin is EntryOrigin.USER else None


def _check_id(preset_id: str) -> None:
    """Raise HostError(bad_request) for what cannot be a file's name."""
    try:
        _ID.validate_python(preset_id)
    except ValueError as error:
        raise HostError(
            Reason.BAD_REQUEST,
            f"{preset_id[:80]!r} cannot be the id of a preset.",
            fix="Use small letters, digits, dots, hyphens and underscores.",
            evidence={"id": preset_id[:80]},
        ) from error


def _text(path: Path) -> str | None:
    try:
        # As the catalogue reads it: with its own line breaks, without a mark of its encoding.
        return path.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError):
        return ""  # It is there and cannot be read: whoever means to replace it did not see it.


def _check_unchanged(preset_id: str, path: Path, now: str | None, seen: str | None) -> None:
    """Raise HostError(conflict) when the file is not the one that was seen."""
    if (None if now is None else digest(now)) == seen:
        return
    if seen is None:
        raise HostError(
            Reason.CONFLICT,
            f"{preset_id} is there already ({path}). Nothing was saved.",
            cause="A new preset was to get its id.",
            fix=Fix(
                text="Change single values of it, or choose another id.",
                command=f"sndr presets set {preset_id} NAME=VALUE",
            ),
            evidence={"id": preset_id, "file": str(path), "digest": None if now is None else digest(now)},
        )
    what = "was removed" if now is None else "was changed meanwhile"
    raise HostError(
        Reason.CONFLICT,
        f"{preset_id} {what} ({path}). Nothing was saved.",
        cause="Somebody edited the file, or another window saved it.",
        fix="Look at what is there now, and save again.",
        evidence={"id": preset_id, "file": str(path), "digest": None if now is None else digest(now)},
    )


def _shipped_one(preset_id: str) -> HostError:
    return HostError(
        Reason.CONFLICT,
        f"{preset_id} comes with the program and cannot be removed.",
        fix=Fix(text="Make a preset of your own that extends it."),
        evidence={"id": preset_id},
    )


def _write_all(writes: tuple[tuple[Path, str], ...]) -> None:
    """Write all files or none. Raises HostError(disk_full), HostError(not_writable)."""
    before = [(path, _text(path)) for path, _ in writes]
    done: list[tuple[Path, str | None]] = []
    try:
        for (path, text), was in zip(writes, before, strict=True):
            atomic_file.write(path, text, 0o644, follow=True)
            done.append(was)
    except HostError:
        for path, was_there in done:
            if was_there is None:
                path.unlink(missing_ok=True)
            else:
                with suppress(HostError):
                    atomic_file.write(path, was_there, 0o644, follow=True)
        raise
