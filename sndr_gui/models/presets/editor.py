"""One preset while it is edited: its text, the form's values in it, what is wrong, and saving with undo."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import (
    CatalogFault,
    EditPreset,
    EntryOrigin,
    LintPreset,
    PresetChange,
    PresetFile,
    PresetLint,
    ResolvedPreset,
    ResolvedSetting,
    SavedPreset,
    SavePreset,
    SetBy,
)
from sndr_gui.host.session import Session
from sndr_gui.models.presets.command import change_command, new_command, show_command
from sndr_gui.models.presets.drafts import Draft, Drafts
from sndr_gui.models.presets.form import Path, value_at
from sndr_gui.models.window.throttle import Throttle

_CHECK_MS = 200
_DRAFT_MS = 800
_ID = re.compile(r"^id:\s*([a-z0-9][a-z0-9._-]{0,79})\s*(?:#.*)?$", re.MULTILINE)


class PresetEditor(QObject):
    """Holds the text that is edited; the YAML editor and the form both change it here.

    Signals:
        opened: another preset is edited, or none
        text_replaced: the text changed otherwise than by typing into the YAML editor
        checked: what is wrong, and what it resolves to, is new
        changed: anything else that is shown
        stored: a file was written or removed
    """

    opened = Signal()
    text_replaced = Signal()
    checked = Signal()
    changed = Signal()
    stored = Signal()

    def __init__(self, session: Session, drafts: Drafts) -> None:
        super().__init__()
        self.session, self.drafts = session, drafts
        self._check_throttle = Throttle(self, _CHECK_MS, self._check)
        self._draft_throttle = Throttle(self, _DRAFT_MS, self.keep_draft)
        self._check_task: asyncio.Future[None] | None = None
        self._edit_task: asyncio.Future[None] | None = None
        self._waiting: dict[Path, PresetChange] = {}
        self._set("", EntryOrigin.USER, "", "", None)
        session.connection.changed.connect(self._on_link)

    def _set(self, preset: str, origin: EntryOrigin, text: str, saved: str, digest: str | None) -> None:
        self.id, self.origin, self.text = preset, origin, text
        self.saved_text, self.digest = saved, digest
        self.lint: PresetLint | None = None
        self.resolved: ResolvedPreset | None = None
        self.problem: Problem | None = None
        self.conflict = False
        self.saving = False
        self.restored: Draft | None = None
        self._undo: SavedPreset | None = None
        self._saved_data: Mapping[str, Any] | None = None
        self._checked_text: str | None = None
        self._waiting.clear()

    # Opening and leaving.

    @property
    def is_open(self) -> bool:
        """True while a preset is edited or looked at."""
        return bool(self.id)

    @property
    def is_new(self) -> bool:
        """True for a preset that was never saved."""
        return self.digest is None

    @property
    def read_only(self) -> bool:
        """True for a preset that comes with the program."""
        return self.origin is EntryOrigin.PROGRAM

    @property
    def dirty(self) -> bool:
        """True when there is something that is not saved."""
        return self.is_open and not self.read_only and self.text != self.saved_text

    def open_file(self, file: PresetFile) -> None:
        """Edit a preset; the draft of it that was kept goes on."""
        draft = self.drafts.get(file.id) if file.origin is EntryOrigin.USER else None
        self._set(file.id, file.origin, file.text, file.text, file.digest)
        if draft is not None and draft.text != file.text:
            self.text, self.restored = draft.text, draft
            if draft.digest is not None:
                # Saving says so when the file changed since the draft was begun.
                self.digest = draft.digest
        self._begin()

    def open_new(self, preset: str, text: str) -> None:
        """Edit a preset that is in no file yet."""
        self._set(preset, EntryOrigin.USER, text, "", None)
        self._begin()

    def open_draft(self, draft: Draft) -> None:
        """Go on with a draft of a preset that was never saved."""
        self._set(draft.id, EntryOrigin.USER, draft.text, draft.saved, draft.digest)
        self.restored = draft
        self._begin()

    def _begin(self) -> None:
        self.opened.emit()
        self.text_replaced.emit()
        self._check()

    def leave(self, *, keep: bool) -> None:
        """Close the preset; what is not saved is kept as a draft or thrown away."""
        if keep:
            self.keep_draft()
        else:
            self._drop_draft()
        self._set("", EntryOrigin.USER, "", "", None)
        self.opened.emit()
        self.stored.emit()

    def discard(self) -> None:
        """Go back to what is saved; a preset that never was is thrown away, with undo."""
        if self.is_new:
            preset, text = self.target, self.text
            self.leave(keep=False)
            self.session.notices.info(
                "preset discarded",
                tr("{preset} is discarded.", preset=preset),
                action_text=tr("Undo"),
                action=lambda: self.open_new(preset, text),
            )
            return
        self._drop_draft()
        self.restored, self.problem, self.conflict = None, None, False
        self._replace(self.saved_text)

    def keep_draft(self) -> None:
        """Write the unsaved text into the window's file, where it survives everything."""
        if not self.dirty:
            self._drop_draft()
            return
        draft = Draft(self.id, self.text, self.saved_text, self.digest, time.time())
        try:
            self.drafts.keep(draft)
        except OSError as error:
            self.session.notices.warning(
                "draft", tr("The draft of {id} could not be kept: {error}.", id=self.id, error=error)
            )

    def _drop_draft(self) -> None:
        try:
            self.drafts.drop(self.id)
        except OSError as error:
            self.session.notices.warning(
                "draft", tr("The drafts could not be written: {error}.", error=error)
            )

    # The text, from both sides.

    def set_text(self, text: str) -> None:
        """Take over what was typed into the YAML editor, with the line breaks of the file."""
        if "\r\n" in self.saved_text:
            text = text.replace("\n", "\r\n")
        if text == self.text or self.read_only:
            return
        self.text = text
        self.problem = None
        self._check_throttle.trigger()
        self._draft_throttle.trigger()
        self.changed.emit()

    def set_value(self, path: Path, value: Any) -> None:
        """Take over a value of the form; None takes it out of the text, and the layers below hold again."""
        if self.read_only or (path not in self._waiting and value_at(self.data, path) == value):
            return
        self._waiting[path] = PresetChange(path=path, value=value, remove=value is None)
        if self._edit_task is None:
            self._edit_task = self.session.tasks.start(self._edit(), "edit preset")

    async def _edit(self) -> None:
        try:
            while self._waiting:
                changes, before = tuple(self._waiting.values()), self.text
                self._waiting.clear()
                text = (
                    await self.session.client.call(ops.EDIT_PRESET, EditPreset(text=before, changes=changes))
                ).text
                if self.text != before:
                    # Somebody typed meanwhile: the values are put into what is there now.
                    for change in changes:
                        self._waiting.setdefault(change.path, change)
                    continue
                self._replace(text)
        except HostError as error:
            self._waiting.clear()
            if error.lost:
                self.session.notices.error("edit preset", str(error))
            else:
                self.problem = error.problem
                self.changed.emit()
        finally:
            self._edit_task = None

    def _replace(self, text: str) -> None:
        if text != self.text:
            self.text = text
            self._draft_throttle.trigger()
            self.text_replaced.emit()
        self._check()
        self.changed.emit()

    # Checking.

    @property
    def data(self) -> Mapping[str, Any] | None:
        """The values in the text; None where it is not valid YAML."""
        return self.lint.data if self.lint is not None else None

    @property
    def checking(self) -> bool:
        """True while the newest check is of an older text."""
        return self.is_open and self._checked_text != self.text

    @property
    def faults(self) -> tuple[CatalogFault, ...]:
        """The problems of the text, errors first."""
        found = self.lint.faults if self.lint is not None else ()
        return tuple(sorted(found, key=lambda fault: fault.severity is not Severity.ERROR))

    @property
    def can_save(self) -> bool:
        """True when the text is checked, usable and not saved yet."""
        good = self.lint is not None and self.lint.preset is not None and not self.checking
        return good and self.dirty and not self.saving and self.session.connection.connected

    def _on_link(self) -> None:
        if self.is_open and self.session.connection.connected and self.checking:
            self._check()
        self.changed.emit()

    def _check(self) -> None:
        if self.is_open and self._check_task is None:
            self._check_task = self.session.tasks.start(self._lint(), "check preset")

    async def _lint(self) -> None:
        try:
            while self.is_open and self._checked_text != self.text:
                text, preset = self.text, self.id
                found = await self.session.client.call(ops.LINT_PRESET, LintPreset(text=text, id=self.target))
                if self.read_only:
                    # It is as the program has it; that nobody may save it so is no fault of it.
                    detail = await self.session.client.call(ops.PRESET, id=preset)
                    found = found.model_copy(update={"faults": (), "resolved": detail.resolved, "diff": ""})
                if preset != self.id:
                    continue
                self.lint, self._checked_text = found, text
                self.resolved = found.resolved or self.resolved
                if text == self.saved_text:
                    self._saved_data = found.data
                self.checked.emit()
        except HostError:
            # The status bar says that the host is away; it is checked when it is back.
            pass
        finally:
            self._check_task = None
        self.changed.emit()

    # What the form shows.

    def value(self, path: Path) -> Any:
        """Return the value of the text at a place."""
        return value_at(self.data, path)

    def inherited(self, path: Path) -> tuple[Any, str]:
        """Return the value that holds where the text has none, and its layer; an empty layer is not known."""
        resolved = self.resolved
        if resolved is None:
            return None, ""
        if path[0] == "settings":
            setting = next((one for one in resolved.settings if one.name == path[-1]), None)
            by = _inherited_from(setting, self.target, self.value(path) is not None) if setting else None
            return (by.value, by.layer.value) if by is not None else (None, "")
        base = value_at(self.data, ("extends",))
        if base and self.value(path) is None:
            return value_at(resolved.preset.model_dump(mode="json"), path), tr("the original")
        return None, ""

    @property
    def engine(self) -> str | None:
        """The engine that the preset is for."""
        return self.resolved.engine.value if self.resolved is not None else None

    # Saving.

    @property
    def target(self) -> str:
        """The id that it is saved under: a new one's is what its text says."""
        said = _ID.search(self.text) if self.is_new else None
        return said[1] if said else self.id

    @property
    def diff(self) -> str:
        """The changes that saving would make."""
        return self.lint.diff if self.lint is not None else ""

    @property
    def can_undo_save(self) -> bool:
        """True when the last save can be taken back."""
        return self._undo is not None and not self.saving

    @property
    def command(self) -> str:
        """The command line that does what Save would do."""
        if self.read_only:
            return show_command(self.id)
        if self.is_new:
            return new_command(self.target, self.data)
        return change_command(self.id, self._saved_data, self.data) if self.dirty else show_command(self.id)

    def save(self) -> None:
        """Save the text; a file that changed meanwhile is not overwritten."""
        if not self.can_save:
            return
        target, text, digest = self.target, self.text, self.digest

        async def work(client: AsyncControlClient) -> None:
            self._stored(
                await client.call(ops.SAVE_PRESET, SavePreset(text=text, digest=digest), id=target), text
            )

        self._send("save preset", work)

    def _stored(self, saved: SavedPreset, text: str) -> None:
        if saved.id != self.id:
            self._drop_draft()
        self.id, self.digest, self.saved_text = saved.id, saved.digest, text
        self._undo, self.restored, self.conflict, self.problem = saved, None, False, None
        self._saved_data = self.data
        if not self.dirty:
            self._drop_draft()
        self._checked_text = None
        self._check()
        self.stored.emit()

    def undo_save(self) -> None:
        """Bring back the file that was there before the last save; a new preset's file goes."""
        undone = self._undo
        if undone is None:
            return

        async def work(client: AsyncControlClient) -> None:
            digest = None
            if undone.previous is None:
                await client.call(ops.REMOVE_PRESET, id=undone.id)
            else:
                digest = (
                    await client.call(
                        ops.SAVE_PRESET, SavePreset(text=undone.previous, digest=undone.digest), id=undone.id
                    )
                ).digest
            self._undone(undone, digest)

        self._send("undo save", work)

    def _undone(self, undone: SavedPreset, digest: str | None) -> None:
        self._undo = None
        if self.id == undone.id:
            # What was typed after the save stays, and so does a preset that has no file any more.
            text = undone.previous if not self.dirty and undone.previous is not None else self.text
            self.saved_text, self.digest = undone.previous or "", digest
            self._saved_data = self._checked_text = None
            self._replace(text)
            self.keep_draft()
        self.stored.emit()

    def compare_with_file(self) -> None:
        """After a conflict: take the file that is there now as the one to replace, and show the diff."""

        async def work(client: AsyncControlClient) -> None:
            try:
                file = await client.call(ops.PRESET_FILE, id=self.target)
                self.id, self.saved_text, self.digest = file.id, file.text, file.digest
            except HostError as error:
                if error.problem.reason is not Reason.NOT_FOUND:
                    raise
                self.saved_text, self.digest = "", None
            self.conflict, self.problem, self._checked_text, self._saved_data = False, None, None, None
            self._check()

        self._send("compare preset", work)

    def use_file(self) -> None:
        """After a conflict: edit what is in the file now; one's own text is left behind as undo."""

        async def work(client: AsyncControlClient) -> None:
            file = await client.call(ops.PRESET_FILE, id=self.target)
            self._drop_draft()
            self.saved_text, self.digest = file.text, file.digest
            self.conflict, self.problem, self._checked_text = False, None, None
            self._replace(file.text)

        self._send("read preset", work)

    def _send(self, name: str, work: Callable[[AsyncControlClient], Awaitable[None]]) -> None:
        self.saving = True
        self.problem = None
        self.changed.emit()

        def done() -> None:
            self.saving = False
            self.changed.emit()

        def failed(error: HostError) -> None:
            if not error.lost:
                self.problem = error.problem
                self.conflict = error.problem.reason is Reason.CONFLICT
            else:
                self.session.notices.error(name, str(error))

        self.session.command(name, work, done=done, failed=failed)


def _inherited_from(setting: ResolvedSetting, preset: str, is_set: bool) -> SetBy | None:
    """Return who would set a value if this preset's own file did not."""
    if not is_set:
        return setting.by
    stem = f"{preset}.yaml"
    below = [by for by in (setting.by, *setting.over) if not by.file.endswith(stem)]
    return below[0] if below else None
