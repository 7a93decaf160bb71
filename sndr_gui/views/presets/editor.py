"""One preset: form and YAML beside each other; below, what is wrong, what it resolves to, what changes."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QApplication, QFileDialog, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from engine_host.protocol.base import Severity
from engine_host.protocol.language import tr
from engine_host.protocol.presets import CatalogFault, ResolvedSetting, SetBy
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.kit.setting_words import word_of
from sndr_gui.kit.shortcuts import keys
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.presets.form import shown
from sndr_gui.models.presets.page import PresetsModel
from sndr_gui.views.presets.dialogs import CloseDialog, SaveDialog
from sndr_gui.views.presets.fields import PresetFields
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField, SegmentedControl
from sndr_gui.views.widgets.diff_text import DiffView
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import column, row, scrolling
from sndr_gui.views.widgets.problems import ProblemBox
from sndr_gui.views.widgets.tables import Table
from sndr_gui.views.widgets.yaml_text import YamlText

_NARROW = 820
_FILTER = tr("Presets (*.yaml *.yml);;All files (*)")


def place_of(by: SetBy) -> str:
    """Return the file and line that set a value."""
    name = by.file.rpartition("/")[2]
    return f"{name}:{by.line}" if name and by.line else name or tr("given here")


def _fault_columns() -> tuple[Column[CatalogFault], ...]:
    return (
        Column(tr("Line"), lambda fault: str(fault.line or ""), right=True, tone=_tone),
        Column(tr("Key"), lambda fault: fault.key, tone=lambda _fault: "muted"),
        Column(tr("Problem"), lambda fault: fault.message, tip=lambda fault: fault.message, tone=_tone),
        Column(tr("Fix"), lambda fault: fault.fix, tip=lambda fault: fault.fix),
    )


def _tone(fault: CatalogFault) -> str:
    return "bad" if fault.severity is Severity.ERROR else "warn"


def _setting_columns() -> tuple[Column[ResolvedSetting], ...]:
    return (
        Column(tr("Setting"), lambda one: one.name.replace("_", " ")),
        Column(tr("Value"), lambda one: shown(one.value) or "—", tip=lambda one: shown(one.value)),
        Column(tr("Layer"), _layer, tone=lambda _one: "muted", tip=_layer),
        Column(
            tr("Set in"), lambda one: place_of(one.by), tone=lambda _one: "muted", tip=lambda one: one.by.file
        ),
        Column(tr("Overrides"), _over, tone=lambda _one: "muted", tip=_over),
    )


def _layer(one: ResolvedSetting) -> str:
    return word_of(one.by.layer.value)


def _over(one: ResolvedSetting) -> str:
    return "; ".join(
        f"{shown(by.value) or tr('nothing')} ({word_of(by.layer.value)}, {place_of(by)})" for by in one.over
    )


class PresetEditorPane(QWidget):
    """The editor of the preset that is open.

    Signals:
        fit_wanted: the person wants to see this preset on hardware
        remove_wanted: the person wants to remove this preset
    """

    fit_wanted = Signal(str)
    remove_wanted = Signal(str)

    def __init__(self, model: PresetsModel) -> None:
        super().__init__()
        self.setObjectName("canvas")
        self.model, self.editor = model, model.editor
        self.back = button(tr("Presets"), self._on_back, kind="flat", icon="chevron-left")
        self.back.setToolTip(tip(tr("Back to the list"), keys("back")))
        self.back.setAccessibleName(tr("Back to the list of presets"))
        self.vary = button(tr("Make a variation"), self._on_vary, kind="primary")
        self.save = button(
            tr("Save…"),
            self._on_save,
            kind="primary",
            shortcut=keys("save"),
            hint=tr("Review the changes and save"),
        )
        self.undo_save = button(
            tr("Undo save"),
            self.editor.undo_save,
            icon="undo-2",
            hint=tr("Restore the file from before the save"),
        )
        self.discard = button(
            tr("Discard"), self.editor.discard, hint=tr("Back to the saved version; Ctrl+Z undoes it")
        )
        self.fit = button(tr("Open in Fit"), self._on_fit, icon="gauge", hint=tr("On any hardware"))
        self.export = button(tr("Export…"), self._on_export, icon="upload", hint=tr("Export it as one file"))
        self.remove = button(tr("Remove"), self._on_remove, kind="danger", hint=tr("Can be undone"))
        self.restored = text("", "accent", wrap=True)
        self.problem = ProblemBox()
        self.problem.hide()
        self.compare = button(tr("Compare with the file"), self.editor.compare_with_file)
        self.use_file = button(tr("Use the file"), self.editor.use_file)
        self._conflict = QWidget()
        self._conflict.setLayout(row(self.compare, self.use_file, None))
        self.fields = PresetFields(model)
        self.yaml = YamlText(tr("YAML of the preset"))
        self.yaml.typed.connect(self._on_typed)
        self.undo = button(
            tr("Undo"),
            self.yaml.undo,
            kind="flat",
            icon="undo-2",
            hint=tr("Take the last change back"),
            command="Ctrl+Z in the text",
        )
        self.redo = button(tr("Redo"), self.yaml.redo, kind="flat", icon="redo-2")
        for can, way in ((self.yaml.undoAvailable, self.undo), (self.yaml.redoAvailable, self.redo)):
            can.connect(way.setEnabled)
            way.setEnabled(False)
        self.sides = SegmentedControl((tr("Form"), "YAML"), tr("Show"))
        for side in self.sides.buttons:
            side.clicked.connect(self._arrange)
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.split.setChildrenCollapsible(False)
        self.split.setHandleWidth(14)
        self._form_area = scrolling(self.fields)
        self._form_area.verticalScrollBar().rangeChanged.connect(self._on_form_room)
        form = Card()
        form.body.setContentsMargins(14, 12, 6, 12)
        form.body.addWidget(self._form_area)
        form.setMinimumWidth(230)
        self._form_side = form
        yaml_side = QWidget()
        yaml_side.setLayout(
            column(row(text("YAML", name="h2"), None, self.undo, self.redo), self.yaml, spacing=6)
        )
        yaml_side.setMinimumWidth(230)
        self._yaml_side = yaml_side
        self.split.addWidget(form)
        self.split.addWidget(yaml_side)
        self.split.setSizes([540, 460])
        self._make_below()
        self.equivalent_command = CopyField("", tr("equivalent command"))
        tools = row(
            self.back,
            self.fit,
            self.export,
            self.remove,
            None,
            self.sides,
            self.discard,
            self.undo_save,
            self.vary,
            self.save,
        )
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(10)
        outer.addLayout(tools)
        for part in (self.restored, self.problem, self._conflict):
            outer.addWidget(part)
        outer.addWidget(self.split, 3)
        outer.addLayout(row(self.views, None, self._count))
        outer.addWidget(self._below, 1)
        outer.addWidget(self.equivalent_command)
        # Set by itself: given to the constructor beside a function, PySide drops it.
        leave = QShortcut(QKeySequence(keys("leave editor")), self, self._on_back)
        leave.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.editor.opened.connect(self._on_opened)
        self.editor.text_replaced.connect(self._on_replaced)
        self.editor.checked.connect(self._on_checked)
        self.editor.changed.connect(self.refresh)
        model.changed.connect(self.fields.rebuild)
        self._arrange()

    def _make_below(self) -> None:
        self.views = SegmentedControl((tr("Problems"), tr("Resolved"), tr("Changes")), tr("Below"))
        for view in self.views.buttons:
            view.clicked.connect(self._on_view)
        self._count = text("", "muted")
        self.fault_rows: RowsModel[CatalogFault] = RowsModel(
            _fault_columns(), lambda fault: f"{fault.line} {fault.key} {fault.message}", self
        )
        self.faults = Table(self.fault_rows, tr("Problems"), 2, {0: 56, 1: 150, 3: 280})  # type: ignore[arg-type]
        self.faults.row_chosen.connect(self._on_fault)
        self.setting_rows: RowsModel[ResolvedSetting] = RowsModel(
            _setting_columns(), lambda one: one.name, self
        )
        self.settings = Table(self.setting_rows, tr("Resolved settings"), 4, {0: 140, 1: 170, 2: 130, 3: 210})  # type: ignore[arg-type]
        for table in (self.faults, self.settings):
            table.verticalHeader().setDefaultSectionSize(30)
        self.faults.setWordWrap(True)
        self.faults.horizontalHeader().sectionResized.connect(self._on_fault_room)
        self.diff = DiffView(tr("Changes to save"), tr("No unsaved changes."))
        self._below = QStackedWidget()
        for part in (self.faults, self.settings, self.diff):
            self._below.addWidget(part)
        self._below.setMinimumHeight(110)

    # Where things stand.

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        narrow = self.width() < _NARROW
        self.sides.setVisible(narrow)
        # The list has both, and saving needs the room.
        self.fit.setVisible(not narrow)
        self.export.setVisible(not narrow)
        self._form_side.setVisible(not narrow or self.sides.place == 0)
        self._yaml_side.setVisible(not narrow or self.sides.place == 1)
        self.settings.setColumnHidden(4, narrow)
        self.settings.stretch(3 if narrow else 4)

    # What is shown.

    def _on_opened(self) -> None:
        self.refresh()
        self.views.buttons[1 if self.editor.read_only else 0].setChecked(True)
        self._on_view()

    def _on_replaced(self) -> None:
        # Another preset must not be reached by undo.
        same = self.yaml.property("preset") == self.editor.id
        self.yaml.replace_text(self.editor.text, undoable=same)
        self.yaml.setProperty("preset", self.editor.id)

    def _on_typed(self, content: str) -> None:
        self.editor.set_text(content)

    def _on_checked(self) -> None:
        editor = self.editor
        self.fields.rebuild()
        marks: dict[int, tuple[str, str]] = {}
        for fault in reversed(editor.faults):
            if fault.line is not None and (not fault.file or fault.file.endswith(f"{editor.target}.yaml")):
                marks[fault.line] = (
                    fault.severity.value,
                    f"{fault.key}: {fault.message}\n{fault.fix}".strip(),
                )
        self.yaml.show_marks(marks)
        self.fault_rows.set_rows(editor.faults)
        self.faults.resizeRowsToContents()
        self.setting_rows.set_rows(editor.resolved.settings if editor.resolved else ())
        self.diff.show_diff(editor.diff)
        self._on_view()
        self.refresh()

    def _on_view(self) -> None:
        place = self.views.place
        # With nothing wrong the room is the form's.
        self._below.setVisible(place != 0 or bool(self.editor.faults))
        self._below.setCurrentIndex(place)

    def _on_fault_room(self, *_sizes: int) -> None:
        self.faults.resizeRowsToContents()

    def _on_form_room(self, *_range: int) -> None:
        """Keep the field that somebody types in sight when the problems take room from the form."""
        cell = self.fields.cell_of(QApplication.focusWidget())
        if cell is not None:
            self._form_area.ensureWidgetVisible(cell, 0, 8)

    def refresh(self) -> None:
        """Show the state of now."""
        editor = self.editor
        own = not editor.read_only
        self.yaml.setReadOnly(not own)
        errors = sum(fault.severity is Severity.ERROR for fault in editor.faults)
        for part in (self.save, self.discard, self.undo, self.redo):
            part.setVisible(own)
        if self.save.hasFocus() and not editor.can_save:
            # Qt would give the focus of a button that goes off to the first one of the window.
            (self.yaml if self.yaml.isVisible() else self.back).setFocus()
        self.save.setEnabled(editor.can_save)
        self.save.setText(tr("Saving…") if editor.saving else tr("Save…"))
        why = tr("Fix the errors first.") if errors else tr("No unsaved changes.")
        self.save.setToolTip(
            tip(
                tr("Review the changes and save"),
                keys("save"),
                editor.command if editor.can_save else why,
            )
        )
        self.discard.setEnabled(editor.dirty)
        self.undo_save.setVisible(own and editor.can_undo_save)
        self.vary.setVisible(not own)
        self.vary.setToolTip(plain_tooltip(f"sndr presets vary {editor.id} my-{editor.id}"))
        self.remove.setVisible(own and not editor.is_new)
        self.remove.setToolTip(tip(tr("Can be undone"), "", f"sndr presets remove {editor.id}"))
        self.export.setEnabled(not editor.is_new)
        self.export.setToolTip(
            plain_tooltip(
                tr(
                    "Export it with everything it needs as one file\nsndr presets export {id} -o FILE",
                    id=editor.id,
                )
            )
        )
        self.fit.setEnabled(not editor.is_new)
        draft = editor.restored
        set_text(
            self.restored,
            tr("Unsaved draft restored. Discard goes back to the saved version.") if draft else "",
        )
        self.restored.setVisible(draft is not None and editor.dirty)
        self.problem.setVisible(editor.problem is not None)
        if editor.problem is not None:
            self.problem.show_problem(editor.problem)
        self._conflict.setVisible(editor.conflict)
        self.views.buttons[0].setText(
            tr("Problems  {faults}", faults=len(editor.faults)) if editor.faults else tr("Problems")
        )
        set_text(self._count, self._counted(errors))
        self.equivalent_command.set_content(editor.command if editor.is_open else "")

    def _counted(self, errors: int) -> str:
        if self.editor.checking:
            return tr("checking…")
        if errors:
            return tr("{errors}, cannot be saved", errors=formats.plural(errors, "error"))
        return tr("no problems")

    # What the person does.

    def _on_fault(self, place: int) -> None:
        fault = self.fault_rows.row_at(place)
        if fault is not None and fault.line is not None:
            if self.sides.isVisible():
                self.sides.buttons[1].setChecked(True)
                self._arrange()
            self.yaml.go_to(fault.line)

    def _on_back(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Go back to the list; asks where something is not saved."""
        if self.editor.dirty:
            CloseDialog(self, self.editor, self._on_save).open()
        else:
            self.editor.leave(keep=False)

    def _on_save(self) -> None:
        if self.editor.can_save:
            SaveDialog(self, self.editor).open()

    def _on_vary(self) -> None:
        self.model.vary(self.editor.id)

    def _on_fit(self) -> None:
        self.fit_wanted.emit(self.editor.id)

    def _on_remove(self) -> None:
        self.remove_wanted.emit(self.editor.id)

    def _on_export(self) -> None:
        export_dialog(self, self.model, self.editor.id)


def export_dialog(parent: QWidget, model: PresetsModel, preset: str) -> None:
    """Ask for a file and export to it; never blocks the window."""
    dialog = QFileDialog(parent, tr("Export {preset}", preset=preset), f"{preset}.yaml", _FILTER)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(_exporter(model, preset))
    dialog.open()


def import_dialog(parent: QWidget, model: PresetsModel) -> None:
    """Ask for a file and import it; never blocks the window."""
    dialog = QFileDialog(parent, tr("Import a preset"), "", _FILTER)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(model.import_file)
    dialog.open()


def _exporter(model: PresetsModel, preset: str) -> Callable[[str], None]:
    def export(path: str) -> None:
        model.export(preset, path)

    return export
