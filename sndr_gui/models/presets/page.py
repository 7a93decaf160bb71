"""The view-model of Presets: one's own and the program's, and making, keeping and sharing one's own."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError, read_text
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.consents import ConsentNeeded
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import (
    CatalogFault,
    CatalogPage,
    EditPreset,
    EntryOrigin,
    ImportPreset,
    PresetChange,
    PresetForm,
    PresetItem,
    PresetPage,
    SavePreset,
)
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.rows import RowsModel
from sndr_gui.models.launch.subject import ENGINE_NAMES
from sndr_gui.models.presets.drafts import Drafts
from sndr_gui.models.presets.editor import PresetEditor
from sndr_gui.models.presets.library import ALL, OWN, SHIPPED, LibraryRow, library_columns

_LARGEST_FILE = 1 << 18


@dataclass(frozen=True)
class PendingImport:
    """A file that is being imported, and what stands in its way."""

    path: str
    text: str
    problem: Problem
    new_id: str | None = None
    replace: bool = False

    @property
    def needed(self) -> ConsentNeeded | None:
        """The consent that it waits for."""
        if self.problem.reason is not Reason.CONSENT_NEEDED:
            return None
        return ConsentNeeded.model_validate(self.problem.evidence)

    @property
    def command(self) -> str:
        """The command line that takes it in as it was asked for."""
        words = ["sndr", "presets", "import", self.path, *(["--as", self.new_id] if self.new_id else [])]
        words += ["--replace"] if self.replace else []
        words += ["--accept", self.needed.digest] if self.needed is not None else []
        return shlex.join(words)

    @property
    def name(self) -> str:
        """The name of the file."""
        return Path(self.path).name

    @property
    def conflict(self) -> bool:
        """True when another preset has the same id."""
        return self.problem.reason is Reason.CONFLICT

    @property
    def taken(self) -> str:
        """The id that is there already."""
        return str(self.problem.evidence.get("id", ""))

    @property
    def can_replace(self) -> bool:
        """True when the preset that is there is the person's own."""
        return self.conflict and not str(self.problem.evidence.get("file", "")).startswith("presets/")


class PresetsModel(QObject):
    """The model of Presets.

    Signals:
        changed: anything but the rows
        rows_changed: the rows or their number
        pending_import_changed: an import waits for a decision, or does not any more
    """

    changed = Signal()
    rows_changed = Signal()
    pending_import_changed = Signal()

    def __init__(self, session: Session, drafts: Drafts) -> None:
        super().__init__()
        self.session, self.drafts = session, drafts
        self.editor = PresetEditor(session, drafts)
        self.page: PresetPage | None = None
        self.catalog: CatalogPage | None = None
        self.form: PresetForm | None = None
        self.rows: RowsModel[LibraryRow] = RowsModel(library_columns(), lambda row: row.id, self)
        self.origin = ALL
        self.chosen = ""
        self.pending_import: PendingImport | None = None
        self._shown = False
        self._wanted = ""
        self._settings: Mapping[str, Any] = {}
        session.state.outdated.connect(self._on_outdated)
        session.connection.changed.connect(self._on_link)
        self.editor.stored.connect(self._fill)

    def set_shown(self, shown: bool) -> None:
        """Read what is shown when somebody looks."""
        self._shown = shown
        if shown:
            self._on_link()
        else:
            self.editor.keep_draft()

    def _on_link(self) -> None:
        if self._shown and self.session.connection.connected and self.page is None:
            self.load()
        self.changed.emit()

    def _on_outdated(self, part: str) -> None:
        if part in ("presets", "all") and self.page is not None and self.session.connection.connected:
            self.load()

    def load(self) -> None:
        """Read the catalogue."""

        async def work(client: AsyncControlClient) -> None:
            if self.form is None:
                self.form = await client.call(ops.PRESET_FORM)
            self.page, self.catalog = await client.call(ops.PRESETS), await client.call(ops.CATALOG)
            self._fill()
            self.changed.emit()
            if self._wanted:
                wanted, self._wanted = self._wanted, ""
                self.edit(wanted, self._settings)

        self.session.read("read the presets", work)

    # What is shown.

    @property
    def items(self) -> tuple[PresetItem, ...]:
        """The usable presets."""
        return self.page.presets if self.page else ()

    def item(self, preset: str) -> PresetItem | None:
        """Return one usable preset."""
        return next((item for item in self.items if item.preset.id == preset), None)

    @property
    def faults(self) -> tuple[CatalogFault, ...]:
        """The problems in files."""
        return self.page.faults if self.page else ()

    @property
    def row(self) -> LibraryRow | None:
        """The chosen row."""
        return next((row for row in self.rows.shown if row.id == self.chosen), None)

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        if self.page is None:
            return (
                self.session.connection.sentence
                if not self.session.connection.connected
                else tr("Reading the catalogue…")
            )
        own = sum(item.origin is EntryOrigin.USER for item in self.items)
        parts = [f"{formats.plural(len(self.items), 'preset')}", tr("{own} own", own=own)]
        if drafts := len(self.drafts.all):
            parts.append(formats.plural(drafts, "unsaved draft"))
        return "  ·  ".join(parts)

    def set_origin(self, origin: str) -> None:
        """Show all, one's own, or those of the program."""
        self.origin = origin
        self._fill()

    def choose(self, preset: str) -> None:
        """Choose a row."""
        if preset != self.chosen:
            self.chosen = preset
            self.changed.emit()

    def _fill(self) -> None:
        rows = [*self._own_rows(), *(self._row(item) for item in self.items if not _is_own(item))]
        self.rows.set_rows([row for row in rows if self.origin == ALL or row.own == (self.origin == OWN)])
        if self.row is None:
            self.chosen = self.rows.shown[0].id if self.rows.shown else ""
        self.rows_changed.emit()

    def _own_rows(self) -> list[LibraryRow]:
        found = {item.preset.id: self._row(item) for item in self.items if _is_own(item)}
        for fault in self.faults:
            path = Path(fault.file)
            if path.is_absolute() and path.parent.name == "presets" and path.stem not in found:
                why = (
                    tr("line {line}: {message}", line=fault.line, message=fault.message)
                    if fault.line
                    else fault.message
                )
                found[path.stem] = LibraryRow(path.stem, path.stem, OWN, status=tr("cannot be used"), why=why)
        for draft in self.drafts.all:
            if draft.id not in found and draft.digest is None:
                found[draft.id] = LibraryRow(draft.id, draft.id, "draft", status=tr("not saved"), draft=True)
        return [found[name] for name in sorted(found)]

    def _row(self, item: PresetItem) -> LibraryRow:
        preset = item.preset
        return LibraryRow(
            preset.id,
            preset.title,
            OWN if _is_own(item) else SHIPPED,
            item.model_title,
            ENGINE_NAMES[preset.engine.value],
            preset.card.status.value,
            self.drafts.get(preset.id) is not None,
            item.extends,
        )

    # What can be done.

    def open(self, preset: str, settings: Mapping[str, Any] | None = None) -> None:
        """Edit a preset, or look at one of the program's; of one's own, with these settings put in."""
        if self.editor.id == preset:
            self._put(settings)
            return
        # What is not saved of another one is kept as a draft.
        self.editor.keep_draft()
        draft = self.drafts.get(preset)
        row = next((row for row in self._own_rows() if row.id == preset), None)
        if draft is not None and row is not None and row.origin == "draft":
            self.editor.open_draft(draft)
            self._put(settings)
            return

        async def work(client: AsyncControlClient) -> None:
            self.editor.open_file(await client.call(ops.PRESET_FILE, id=preset))
            self._put(settings)

        self.session.command("open preset", work)

    def edit(self, preset: str, settings: Mapping[str, Any] | None = None) -> None:
        """Edit a preset of one's own, or begin a variation of one of the program's; with these settings."""
        if self.page is None:
            self._wanted, self._settings = preset, settings or {}
            self._on_link()
            return
        item = self.item(preset)
        if item is not None and not _is_own(item):
            self.vary(preset)
            self._put(settings)
        else:
            self.open(preset, settings)

    def _put(self, settings: Mapping[str, Any] | None) -> None:
        for name, value in (settings or {}).items():
            self.editor.set_value(("settings", name), value)

    def vary(self, preset: str) -> None:
        """Begin a variation of one's own of a preset; of a variation, a copy."""
        item = self.item(preset)
        if item is None:
            return
        self.editor.keep_draft()
        name = self.free_id(f"my-{preset.removeprefix('my-')}")
        if item.extends is not None:
            self._copy(preset, name)
            return
        title = _scalar(tr("{title}, my own", title=item.preset.title))
        self.editor.open_new(name, f"format: 1\nid: {name}\ntitle: {title}\nextends: {preset}\n")

    def _copy(self, preset: str, name: str) -> None:
        async def work(client: AsyncControlClient) -> None:
            file = await client.call(ops.PRESET_FILE, id=preset)
            change = PresetChange(path=("id",), value=name)
            self.editor.open_new(
                name, (await client.call(ops.EDIT_PRESET, EditPreset(text=file.text, changes=(change,)))).text
            )

        self.session.command("copy preset", work)

    def free_id(self, wanted: str) -> str:
        """Return an unused id like this one."""
        known = {item.preset.id for item in self.items} | {draft.id for draft in self.drafts.all}
        known |= {row.id for row in self._own_rows()}
        wanted = wanted[:76]
        number = 2
        name = wanted
        while name in known:
            name = f"{wanted}-{number}"
            number += 1
        return name

    def remove(self, preset: str) -> None:
        """Remove a preset of one's own, with undo; a draft that was never saved is kept for undo too."""
        draft = self.drafts.get(preset)
        row = next((row for row in self._own_rows() if row.id == preset), None)
        if row is not None and row.origin == "draft" and draft is not None:
            self.drafts.drop(preset)
            self._say_removed(preset, partial(self._keep_again, preset, draft.text))
            self._after_removal(preset)
            return

        async def work(client: AsyncControlClient) -> None:
            removed = await client.call(ops.REMOVE_PRESET, id=preset)
            self.drafts.drop(preset)
            self._after_removal(preset)
            # What cannot be used cannot be saved again as it is: it comes back as a draft.
            again = self._keep_again if row is not None and row.why else self._save_again
            self._say_removed(preset, partial(again, preset, removed.previous or ""))

        self.session.command("remove preset", work)

    def _after_removal(self, preset: str) -> None:
        if self.editor.id == preset:
            self.editor.leave(keep=False)
        self._fill()
        self.changed.emit()

    def _say_removed(self, preset: str, undo: Callable[[], object]) -> None:
        self.session.notices.info(
            "preset removed", tr("{preset} is removed.", preset=preset), action_text=tr("Undo"), action=undo
        )

    def _save_again(self, preset: str, text: str) -> None:
        async def work(client: AsyncControlClient) -> None:
            await client.call(ops.SAVE_PRESET, SavePreset(text=text, digest=None), id=preset)
            self.chosen = preset

        self.session.command("undo removal", work)

    def _keep_again(self, preset: str, text: str) -> None:
        self.editor.open_new(preset, text)
        self.editor.keep_draft()
        self._fill()

    # One file for somebody else.

    def export(self, preset: str, path: str) -> None:
        """Write a preset with everything that it needs into a file."""

        async def work(client: AsyncControlClient) -> None:
            found = await client.call(ops.EXPORT_PRESET, id=preset)
            try:
                await asyncio.to_thread(Path(path).write_text, found.text, encoding="utf-8")
            except OSError as error:
                self.session.notices.error(
                    "export", tr("{path} cannot be written: {strerror}.", path=path, strerror=error.strerror)
                )
                return
            self.session.notices.info("export", tr("{preset} is in {path}.", preset=preset, path=path))

        self.session.command("export preset", work)

    def import_file(self, path: str) -> None:
        """Take in a file that was exported."""
        name = Path(path).name

        async def work(_client: AsyncControlClient) -> None:
            try:
                text = await asyncio.to_thread(read_text, Path(path), _LARGEST_FILE)
            except (OSError, UnicodeDecodeError, ValueError) as error:
                self.session.notices.error(
                    "import", tr("{name} cannot be read: {error}.", name=name, error=error)
                )
                return
            self.import_text(path, text)

        self.session.read("read the file", work)

    def import_text(
        self,
        path: str,
        text: str,
        new_id: str | None = None,
        replace: bool = False,
        consent: str | None = None,
    ) -> None:
        """Take in an exported text; a conflict and a consent wait for a decision in `pending_import`."""
        asked = ImportPreset(text=text, id=new_id, replace=replace, consent=consent)

        async def work(client: AsyncControlClient) -> None:
            done = await client.call(ops.IMPORT_PRESET, asked)
            self._set_pending_import(None)
            self.chosen = done.id
            written = tr("is imported") if done.written else tr("was here already, unchanged")
            warned = f" {done.faults[0].message}." if done.faults else ""
            self.session.notices.info("import", f"{done.id} {written}.{warned}")
            self.load()

        def failed(error: HostError) -> None:
            if not error.lost:
                self._set_pending_import(PendingImport(path, text, error.problem, new_id, replace))
            else:
                self.session.notices.error("import", str(error))

        self.session.command("import preset", work, failed=failed)

    def _set_pending_import(self, pending_import: PendingImport | None) -> None:
        self.pending_import = pending_import
        self.pending_import_changed.emit()

    def cancel_import(self) -> None:
        """Import nothing."""
        self._set_pending_import(None)


def _is_own(item: PresetItem) -> bool:
    return item.origin is EntryOrigin.USER


def _scalar(text: str) -> str:
    """Return a title as YAML takes it."""
    return "'" + text.replace("'", "''") + "'" if any(sign in text for sign in ":#'\"[]{}&*!|>%@`") else text
