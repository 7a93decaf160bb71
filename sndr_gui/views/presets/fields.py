"""The form of a preset: a field a value, its help, what holds without it, and what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.presets import CatalogFault
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.presets.editor import PresetEditor
from sndr_gui.models.presets.form import (
    FormField,
    fields_of,
    fits_engine,
    shown,
    text_only,
    typed,
    with_choices,
)
from sndr_gui.models.presets.page import PresetsModel
from sndr_gui.models.window.throttle import Throttle
from sndr_gui.views.widgets.fields import ChoiceBox, NumberField
from sndr_gui.views.widgets.labels import ElidedLabel, restyle, set_text, set_tone, text
from sndr_gui.views.widgets.layout import clear, column, room_of, row

_TYPING_MS = 300
_TWO_COLUMNS = 430
_NOT_SET = ""


class FieldCell(QWidget):
    """One value: caption and help, its control, and below it what holds without it or what is wrong.

    Signals:
        edited: the person set another value, or took it out (None)
    """

    edited = Signal(object)

    def __init__(self, field: FormField) -> None:
        super().__init__()
        self.field = field
        self._caption = text(field.caption + (" *" if field.required else ""))
        # Beside the caption where there is room, else below it: a hint that is cut helps nobody.
        self._help = ElidedLabel(field.help, "muted")
        self._lines = text(field.help, "muted", wrap=True)
        self._lines.hide()
        self._note = text("", "muted", wrap=True)
        self._note.hide()
        self._filling = False
        self._throttle = Throttle(self, _TYPING_MS, self._commit)
        self.control = self._make()
        self.control.setAccessibleDescription(field.help)
        self._caption.setBuddy(self.control)
        said = f"{field.key}\n{field.help}".strip()
        self._caption.setToolTip(plain_tooltip(said))
        self._help.setToolTip(plain_tooltip(said))
        head = row(self._caption, self._help, spacing=8)
        head.setStretch(1, 1)
        self.setLayout(column(head, self._lines, self.control, self._note, None, spacing=4))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        words = self._caption.sizeHint().width() + 10 + self.fontMetrics().horizontalAdvance(self.field.help)
        cut = words > self.width()
        self._help.setText("" if cut else self.field.help)
        self._lines.setVisible(cut)

    def _make(self) -> QWidget:
        field = self.field
        if field.kind in ("choice", "flag"):
            box = ChoiceBox(field.caption)
            box.activated.connect(self._commit)
            return box
        if field.kind in ("whole", "decimal"):
            low, high = (
                (int(field.low), int(field.high)) if field.kind == "whole" else (field.low, field.high)
            )
            number = NumberField(field.caption, low, high, self._throttle.trigger, tokens=field.tokens)
            number.edit.editingFinished.connect(self._commit)
            return number
        if field.kind == "lines":
            area = QPlainTextEdit()
            area.setAccessibleName(field.caption)
            area.setTabChangesFocus(True)
            area.setFixedHeight(74)
            area.textChanged.connect(self._on_area)
            return area
        edit = QLineEdit()
        edit.setAccessibleName(field.caption)
        edit.textEdited.connect(self._throttle.trigger)
        edit.editingFinished.connect(self._commit)
        return edit

    @property
    def content(self) -> str:
        """The typed or chosen value as text; empty for nothing."""
        control = self.control
        if isinstance(control, ChoiceBox):
            return str(control.currentData() or "")
        if isinstance(control, NumberField):
            return control.edit.text()
        if isinstance(control, QPlainTextEdit):
            return control.toPlainText()
        assert isinstance(control, QLineEdit)
        return control.text()

    def _on_area(self) -> None:
        if not self._filling:
            self._throttle.trigger()

    def _commit(self) -> None:
        if self._filling or (isinstance(self.control, NumberField) and self.control.error):
            return
        self.edited.emit(typed(self.field, self.content))

    def show_value(self, value: object, inherited: object, layer: str, fault: CatalogFault | None) -> None:
        """Show what the text says, or what holds without it; what somebody is typing stays."""
        self._filling = True
        content = "\n".join(map(str, value)) if self.field.kind == "lines" and isinstance(value, list) else ""
        content = content or shown(value)
        below = shown(inherited)
        silent = (
            tr("{below}  ·  from {layer}", below=below, layer=layer) if layer and below else tr("not set")
        )
        control = self.control
        if isinstance(control, ChoiceBox):
            choices = [(f"{silent}", _NOT_SET), *((choice, choice) for choice in self.field.choices)]
            if content and content not in self.field.choices:
                choices.append((content, content))
            control.fill(choices, content)
        elif isinstance(control, NumberField):
            _fill(control.edit, content, silent)
        elif isinstance(control, QPlainTextEdit):
            control.setPlaceholderText(silent)
            if not control.hasFocus() and control.toPlainText() != content:
                control.setPlainText(content)
        elif isinstance(control, QLineEdit):
            _fill(control, content, silent)
        self._filling = False
        if fault is not None:
            note, tone = fault.message, "bad" if fault.severity.value == "error" else "warn"
        else:
            note, tone = (
                (
                    tr("inherited: {below}, from {layer}", below=below, layer=layer)
                    if content and layer and below
                    else ""
                ),
                "muted",
            )
        set_text(self._note, note)
        set_tone(self._note, tone)
        self._note.setVisible(bool(note))
        edit = control.edit if isinstance(control, NumberField) else control
        if isinstance(edit, QLineEdit) and not (isinstance(control, NumberField) and control.error):
            marked = "true" if fault is not None and tone == "bad" else ""
            if (edit.property("invalid") or "") != marked:
                edit.setProperty("invalid", marked)
                restyle(edit)


def _fill(edit: QLineEdit, content: str, silent: str) -> None:
    if edit.placeholderText() != silent:
        edit.setPlaceholderText(silent)
    if edit.text() != content and not (edit.hasFocus() and edit.isModified()):
        edit.setText(content)
        edit.setCursorPosition(0)
    if edit.text() == content:
        edit.setModified(False)


class PresetFields(QWidget):
    """All fields of the preset that is edited, in groups."""

    def __init__(self, model: PresetsModel) -> None:
        super().__init__()
        self.setObjectName("canvas")
        self._model = model
        self.cells: dict[str, FieldCell] = {}
        self._grids: list[tuple[QGridLayout, list[str]]] = []
        self._shown: object = None
        self._another = True
        self._columns = 0
        self._hint = text("", "muted", wrap=True)
        self._body = QVBoxLayout()
        self._body.setSpacing(18)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 8, 8)
        outer.setSpacing(12)
        outer.addWidget(self._hint)
        outer.addLayout(self._body)
        outer.addStretch(1)
        model.editor.opened.connect(self._on_opened)

    def _on_opened(self) -> None:
        self._another = True

    @property
    def _editor(self) -> PresetEditor:
        return self._model.editor

    def rebuild(self) -> None:
        """Build the fields of the kind of preset that the text is of."""
        model, editor = self._model, self._editor
        data = editor.data
        if model.form is None or model.catalog is None or not editor.is_open:
            return
        self._say(data is None)
        if data is None:
            return
        resolved = editor.resolved
        fields = with_choices(
            fields_of(model.form, data),
            model.catalog,
            model.items,
            resolved.model.id if resolved else str(data.get("model", "")),
            editor.engine or str(data.get("engine", "")),
        )
        wanted = tuple(field for field in fields if self._wanted(field))
        if self._another or wanted != self._shown:
            self._shown = wanted
            self._build(wanted)
            self._another = False
        self.refresh()

    def _wanted(self, field: FormField) -> bool:
        if field.path == ("id",):
            return self._editor.is_new
        return fits_engine(field, self._editor.engine) or self._editor.value(field.path) is not None

    def _say(self, broken: bool) -> None:
        editor = self._editor
        words = ""
        if editor.read_only:
            words = tr("A shipped preset, read only. Make a variation to change it.")
        elif broken:
            words = tr("The text is not valid YAML. Fix the marked line to use the form.")
        elif self._model.form is not None and (left := text_only(self._model.form, editor.data)):
            words = tr("{left}: edit the YAML.", left=", ".join(left))
        set_text(self._hint, words)
        set_tone(self._hint, "bad" if broken and not editor.read_only else "muted")
        self._hint.setVisible(bool(words))
        for cell in self.cells.values():
            cell.setEnabled(not broken and not editor.read_only)

    def _build(self, fields: tuple[FormField, ...]) -> None:
        kept = {} if self._another else self._kept(fields)
        clear(self._body)
        self.cells.clear()
        self._grids.clear()
        groups: dict[str, list[FormField]] = {}
        for field in fields:
            groups.setdefault(field.group, []).append(field)
        for title, members in groups.items():
            grid = QGridLayout()
            grid.setHorizontalSpacing(14)
            grid.setVerticalSpacing(12)
            for field in members:
                cell = kept.get(field.key)
                if cell is None:
                    cell = FieldCell(field)
                    cell.setEnabled(not self._editor.read_only)
                    cell.edited.connect(self._on_edited)
                cell.field = field
                self.cells[field.key] = cell
            self._grids.append((grid, [field.key for field in members]))
            self._body.addLayout(column(text(title, name="h2"), grid, spacing=10))
        self._columns = 0
        self._arrange()
        if kept:
            # New ones would come last.
            for one, following in pairwise(cell.control for cell in self.cells.values()):
                QWidget.setTabOrder(one, following)

    def _kept(self, fields: tuple[FormField, ...]) -> dict[str, FieldCell]:
        """Take the cells that stay out of their grids: who types in one goes on there."""
        kept = {}
        for field in fields:
            cell = self.cells.get(field.key)
            if cell is not None and replace(cell.field, choices=field.choices) == field:
                kept[field.key] = cell
        for grid, keys in self._grids:
            for key in keys:
                if key in kept:
                    grid.removeWidget(kept[key])
        return kept

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        columns = 2 if room_of(self) >= _TWO_COLUMNS else 1
        if columns == self._columns:
            return
        self._columns = columns
        for grid, keys in self._grids:
            line = place = 0
            for key in keys:
                cell = self.cells[key]
                wide = columns if cell.field.kind == "lines" or key in ("title", "summary") else 1
                if place + wide > columns:
                    line, place = line + 1, 0
                grid.addWidget(cell, line, place, 1, wide)
                place += wide
            for number in range(2):
                grid.setColumnStretch(number, 1 if number < columns else 0)

    def cell_of(self, widget: QWidget | None) -> FieldCell | None:
        """Return the field that a control is of."""
        while widget is not None and not isinstance(widget, FieldCell):
            widget = widget.parentWidget()
        return widget if widget in self.cells.values() else None

    def refresh(self) -> None:
        """Show the values of now."""
        editor = self._editor
        faults = {fault.key: fault for fault in reversed(editor.faults)}
        for key, cell in self.cells.items():
            path = cell.field.path
            inherited, layer = editor.inherited(path)
            cell.show_value(editor.value(path), inherited, layer, faults.get(key))

    def _on_edited(self, value: object) -> None:
        cell = self.sender()
        if isinstance(cell, FieldCell):
            self._editor.set_value(cell.field.path, value)
