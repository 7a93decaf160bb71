"""A person's own presets: checked, saved, removed, given away and taken in."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from pydantic import TypeAdapter

from engine_host.catalog.drafts import Draft, edited, lint
from engine_host.catalog.entries import digest
from engine_host.catalog.exchange import check_import, export, refuse
from engine_host.catalog.index import Catalog
from engine_host.catalog.yaml.file import MAX_BYTES
from engine_host.core import atomic_file
from engine_host.core.errors import HostError, consent_needed
from engine_host.core.outside.files import open_regular
from engine_host.operations.performs import performs
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents, Trust
from engine_host.protocol.catalog import Id
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.events import PresetsChangedEvent
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import (
    EditedPreset,
    EditPreset,
    EntryOrigin,
    ExportedPreset,
    ImportedPreset,
    ImportPreset,
    LintPreset,
    PresetFile,
    PresetLint,
    SavedPreset,
    SavePreset,
)

_ID: TypeAdapter[str] = TypeAdapter(Id)
# Characters of the text times changes: each of them reads it, at about 50 KB a second.
_MOST_EDITED = 2 << 20
P = ParamSpec("P")
T = TypeVar("T")


class OwnPresetOperations:
    """Changes to a person's own presets; texts are read beside the event loop, one at a time."""

    def __init__(self, presets: PresetOperations, consents: PresetConsents) -> None:
        self._presets = presets
        self._consents = consents
        self._changing = asyncio.Lock()
        self._reading = asyncio.Lock()

    async def _aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Read YAML in a thread: a large text takes seconds, in which everybody else is answered."""
        async with self._reading:
            return await asyncio.to_thread(work, *args, **kwargs)

    @performs(ops.PRESET_FILE)
    async def file(self, preset_id: str) -> PresetFile:
        """The file of a preset, also of one that cannot be used, to mend it. Raises HostError(not_found)."""
        _check_id(preset_id)
        catalog = await self._presets.catalog()
        path = self._presets.own.root / f"{preset_id}.yaml"
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
            file=self._presets.own.name(path),
            text=text or "",
            digest=digest(text or ""),
            origin=EntryOrigin.USER,
        )

    @performs(ops.LINT_PRESET)
    async def lint(self, asked: LintPreset) -> PresetLint:
        """Return what is wrong in a text, and what saving it would change."""
        catalog = await self._presets.catalog()
        file = _own_file(catalog, asked.id)
        name = asked.id or "preset"
        path = file.path if file else self._presets.own.root / f"{name}.yaml"
        saved = file.document.text if file else ""
        return await self._aside(lint, catalog, asked.text, path, self._presets.own.name(path), saved)

    @performs(ops.EDIT_PRESET)
    async def edit(self, asked: EditPreset) -> EditedPreset:
        """A text with values changed, comments kept.

        Raises HostError(preset_invalid), HostError(bad_request) for many changes of a large text.
        """
        if len(asked.text) * len(asked.changes) > _MOST_EDITED:
            raise HostError(
                Reason.BAD_REQUEST,
                tr("{count} changes are too many at once for a text of this size.", count=len(asked.changes)),
                cause="The text is read anew for each of them.",
                fix="Change fewer values at once.",
                evidence={"field": "changes", "limit": _MOST_EDITED},
            )
        return EditedPreset(text=await self._aside(edited, asked.text, asked.changes))

    @performs(ops.SAVE_PRESET)
    async def save(self, preset_id: str, asked: SavePreset) -> SavedPreset:
        """Save a person's preset.

        Raises HostError(preset_invalid) with everything that is wrong, HostError(conflict) when the file is
        not the one that was read before, HostError(disk_full), HostError(not_writable); nothing changed then.
        """
        _check_id(preset_id)
        async with self._changing:
            catalog = await self._presets.catalog()
            file = _own_file(catalog, preset_id)
            path = file.path if file else self._presets.own.root / f"{preset_id}.yaml"
            previous = await asyncio.to_thread(_text, path)
            _check_unchanged(preset_id, path, previous, asked.digest)
            name = self._presets.own.name(path)
            found = await self._aside(lint, catalog, asked.text, path, name, previous or "")
            refuse(found.faults)
            if found.preset is not None and found.preset.id != preset_id:
                raise HostError(
                    Reason.BAD_REQUEST,
                    tr(
                        "The text is for {preset}, not for {preset_id}.",
                        preset=found.preset.id,
                        preset_id=preset_id,
                    ),
                    fix="Save it under its own id.",
                    evidence={"id": preset_id, "in_text": found.preset.id},
                )
            self._consents.saved(catalog, asked.text, found.demands, previous)
            await asyncio.to_thread(atomic_file.write, path, asked.text, 0o644, follow=True)
        self._presets.events.publish(PresetsChangedEvent())
        return SavedPreset(
            id=preset_id,
            file=self._presets.own.name(path),
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
            catalog = await self._presets.catalog()
            path, text = await asyncio.to_thread(self._removable, catalog, preset_id)
            needing = [one.entry.id for one in catalog.variations.values() if one.entry.extends == preset_id]
            if needing:
                raise HostError(
                    Reason.CONFLICT,
                    tr(
                        "{preset_id} cannot be removed: {needing} extend it.",
                        preset_id=preset_id,
                        needing=", ".join(needing),
                    ),
                    cause="What they do not set themselves comes from it.",
                    fix="Remove those first.",
                    evidence={"id": preset_id, "extended_by": needing},
                )
            self._consents.removed(text)
            try:
                await asyncio.to_thread(path.unlink, missing_ok=True)
            except OSError as error:
                raise atomic_file.saving_failed(path, error) from error
        self._presets.events.publish(PresetsChangedEvent())
        return SavedPreset(id=preset_id, file=self._presets.own.name(path), previous=text)

    def _removable(self, catalog: Catalog, preset_id: str) -> tuple[Path, str]:
        """The file and the text of a person's preset. Raises HostError(not_found), HostError(conflict)."""
        _check_id(preset_id)
        if preset_id in catalog.ids():
            file = _own_file(catalog, preset_id)
            if file is None:
                raise _shipped_one(preset_id)
            return file.path, file.document.text
        path = self._presets.own.root / f"{preset_id}.yaml"
        text = _text(path)
        if text is None:
            catalog.preset(preset_id)
        return path, text or ""

    @performs(ops.EXPORT_PRESET)
    async def export(self, preset_id: str) -> ExportedPreset:
        """A preset as one file. Raises HostError(not_found)."""
        text = await self._aside(export, await self._presets.catalog(), preset_id)
        return ExportedPreset(id=preset_id, text=text)

    @performs(ops.IMPORT_PRESET)
    async def take_in(self, asked: ImportPreset) -> ImportedPreset:
        """Import an exported preset: everything is checked first, and then all or nothing is written.

        Raises HostError(preset_invalid), HostError(conflict), HostError(disk_full), HostError(not_writable),
        and HostError(consent_needed) for what asks for more than harmless settings.
        """
        async with self._changing:
            catalog = await self._presets.catalog()
            imported = await self._aside(
                check_import, catalog, asked.text, self._presets.own, asked.id, replacing=asked.replace
            )
            needed = self._consents.to_import(asked.text, imported.demands)
            if needed is not None and asked.consent != needed.digest:
                command = f"sndr presets import FILE --accept {needed.digest}"
                raise consent_needed(needed, tr("taking it in"), command)
            if imported.demands:
                # Each file by itself, and the whole, should it be taken in again.
                for text in (asked.text, *(text for _, text in imported.writes)):
                    self._consents.note(text, Trust.IMPORTED)
            await asyncio.to_thread(_write_all, imported.writes)
        if imported.writes:
            self._presets.events.publish(PresetsChangedEvent())
        return ImportedPreset(
            id=imported.id,
            written=tuple(self._presets.own.name(path) for path, _ in imported.writes),
            unchanged=imported.unchanged,
            faults=imported.faults,
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
            tr("{preset_id} cannot be the id of a preset.", preset_id=repr(preset_id[:80])),
            fix="Use small letters, digits, dots, hyphens and underscores.",
            evidence={"id": preset_id[:80]},
        ) from error


def _text(path: Path) -> str | None:
    try:
        # As the catalogue reads it: with its own line breaks, without a mark of its encoding.
        with open_regular(path) as file:
            return file.read(MAX_BYTES + 1).decode("utf-8-sig")
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
            tr("{preset_id} is there already ({path}). Nothing was saved.", preset_id=preset_id, path=path),
            cause="A new preset was to get its id.",
            fix=Fix(
                text="Change single values of it, or choose another id.",
                command=f"sndr presets set {preset_id} NAME=VALUE",
            ),
            evidence={"id": preset_id, "file": str(path), "digest": None if now is None else digest(now)},
        )
    what = tr("was removed") if now is None else tr("was changed meanwhile")
    raise HostError(
        Reason.CONFLICT,
        tr("{preset_id} {what} ({path}). Nothing was saved.", preset_id=preset_id, what=what, path=path),
        cause="Somebody edited the file, or another window saved it.",
        fix="Look at what is there now, and save again.",
        evidence={"id": preset_id, "file": str(path), "digest": None if now is None else digest(now)},
    )


def _shipped_one(preset_id: str) -> HostError:
    return HostError(
        Reason.CONFLICT,
        tr("{preset_id} comes with the program and cannot be removed.", preset_id=preset_id),
        cause="It is a file of the program, and no preset of yours.",
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
