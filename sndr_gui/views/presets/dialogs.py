"""The questions before a preset is saved, closed or imported; no dialog blocks the window."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol.base import Severity
from engine_host.protocol.language import tr
from sndr_gui.models.presets.editor import PresetEditor
from sndr_gui.models.presets.page import PendingImport, PresetsModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.demands import DemandList
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.diff_text import DiffView
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import ProblemBox


class _PresetDialog(Dialog):
    """A dialog with one column."""

    def __init__(self, parent: QWidget, title: str) -> None:
        super().__init__(parent, title)
        self.lines = QVBoxLayout(self)
        self.lines.setContentsMargins(20, 18, 20, 18)
        self.lines.setSpacing(12)


class SaveDialog(_PresetDialog):
    """Shows what saving changes, as a diff, and saves."""

    def __init__(self, parent: QWidget, editor: PresetEditor) -> None:
        super().__init__(parent, tr("Save {target}", target=editor.target))
        self.resize(640, 460)
        self._editor = editor
        what = tr("New preset") if editor.is_new else tr("Changes to your preset")
        self.diff = DiffView(tr("Changes to save"), tr("No changes."))
        self.diff.show_diff(editor.diff)
        self.lines.addWidget(text(f"{what}: {editor.target}", name="h2"))
        self.lines.addWidget(self.diff, 1)
        for fault in editor.faults:
            if fault.severity is not Severity.ERROR:
                box = ProblemBox(fault.severity.value)
                box.show_sentence(fault.message, fault.fix)
                self.lines.addWidget(box)
        self.lines.addWidget(CopyField(editor.command, tr("equivalent command"), wraps=True))
        self.save = button(tr("Save"), self._on_save, kind="primary")
        self.save.setDefault(True)
        self.lines.addLayout(row(None, button(tr("Cancel"), self.reject), self.save))
        self.save.setFocus()

    def _on_save(self) -> None:
        self._editor.save()
        self.accept()


class CloseDialog(_PresetDialog):
    """Asks what becomes of changes that are not saved."""

    def __init__(self, parent: QWidget, editor: PresetEditor, save: Callable[[], object]) -> None:
        super().__init__(parent, tr("Unsaved changes"))
        self.setMinimumWidth(420)
        self._editor, self._save = editor, save
        self.lines.addWidget(
            text(tr("{target} has unsaved changes.", target=editor.target), name="h2", wrap=True)
        )
        hint = tr("A draft is kept, even when the window closes, until you save or discard it.")
        self.lines.addWidget(text(hint, "muted", wrap=True))
        self.keep = button(tr("Keep as draft"), self._on_keep, kind="primary")
        self.discard = button(tr("Discard changes"), self._on_discard, kind="danger")
        self.save = button(tr("Save…"), self._on_save)
        self.save.setEnabled(editor.can_save)
        self.keep.setDefault(True)
        self.lines.addLayout(row(button(tr("Keep editing"), self.reject), None, self.discard))
        self.lines.addLayout(row(None, self.save, self.keep))
        self.keep.setFocus()

    def _on_keep(self) -> None:
        self.accept()
        self._editor.leave(keep=True)

    def _on_discard(self) -> None:
        self.accept()
        self._editor.leave(keep=False)

    def _on_save(self) -> None:
        self.accept()
        self._save()


class ImportConsentDialog(_PresetDialog):
    """A file that asks for more than harmless settings: each demand, and taking it in with all of them."""

    def __init__(self, parent: QWidget, model: PresetsModel, pending_import: PendingImport) -> None:
        super().__init__(parent, tr("Import {name}", name=pending_import.name))
        self.resize(640, 460)
        self._model, self._pending_import = model, pending_import
        needed = pending_import.needed
        assert needed is not None
        self._digest = needed.digest
        self.lines.addWidget(
            text(tr("{name} asks for what can do harm", name=pending_import.name), name="h2", wrap=True)
        )
        about = tr(
            "Take it in only if you want all of this. Nothing starts by that; the first start asks again."
        )
        self.lines.addWidget(text(about, "muted", wrap=True))
        self.demands = DemandList(needed)
        self.lines.addWidget(self.demands, 1)
        self.equivalent_command = CopyField(pending_import.command, tr("equivalent command"), wraps=True)
        self.lines.addWidget(self.equivalent_command)
        self.cancel = button(tr("Cancel"), self.reject)
        self.cancel.setDefault(True)
        self.allow = button(tr("Import with all of this"), self._on_allow, kind="danger")
        self.allow.setEnabled(self.demands.complete)
        self.lines.addLayout(row(None, self.cancel, self.allow))
        self.cancel.setFocus()
        self.rejected.connect(model.cancel_import)

    def _on_allow(self) -> None:
        self.accept()
        asked = self._pending_import
        self._model.import_text(asked.path, asked.text, asked.new_id, asked.replace, self._digest)


class ImportDialog(_PresetDialog):
    """A file that could not be taken in as it is: why, and under another id, or in place of what is there."""

    def __init__(self, parent: QWidget, model: PresetsModel, pending_import: PendingImport) -> None:
        super().__init__(parent, tr("Import {name}", name=pending_import.name))
        self.setMinimumWidth(520)
        self._model, self._pending_import = model, pending_import
        box = ProblemBox()
        box.show_problem(pending_import.problem)
        self.lines.addWidget(box)
        self.name = QLineEdit(model.free_id(pending_import.taken or "imported"))
        self.name.setAccessibleName(tr("ID to import it under"))
        self.rename = button(tr("Import under this ID"), self._on_rename, kind="primary")
        self.replace = button(tr("Replace"), self._on_replace, kind="danger")
        self.equivalent_command = CopyField(what=tr("equivalent command"))
        cancel = button(tr("Cancel"), self.reject)
        if pending_import.conflict:
            self.lines.addWidget(text(tr("Import under another ID"), "muted"))
            self.lines.addWidget(self.name)
            self.lines.addWidget(self.equivalent_command)
            self.replace.setVisible(pending_import.can_replace)
            self.lines.addLayout(row(cancel, None, self.replace, self.rename))
            self.name.textChanged.connect(self._on_name)
            self._on_name()
            self.name.setFocus()
        else:
            faults = pending_import.problem.evidence.get("faults")
            for fault in faults[1:6] if isinstance(faults, list) else []:
                self.lines.addWidget(
                    text(
                        tr("Line {fault}: {fault_2}", fault=fault.get("line"), fault_2=fault.get("message")),
                        wrap=True,
                    )
                )
            self.lines.addLayout(row(None, cancel))
        self.rejected.connect(model.cancel_import)

    def _on_name(self) -> None:
        self.rename.setEnabled(bool(self.name.text().strip()))
        words = ["sndr", "presets", "import", self._pending_import.path, "--as", self.name.text().strip()]
        self.equivalent_command.set_content(shlex.join(words))

    def _on_rename(self) -> None:
        self.accept()
        self._model.import_text(
            self._pending_import.path, self._pending_import.text, self.name.text().strip()
        )

    def _on_replace(self) -> None:
        self.accept()
        self._model.import_text(self._pending_import.path, self._pending_import.text, replace=True)
