"""One setting: its control, the layer that set it, and Reset."""

from __future__ import annotations

from contextlib import suppress

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QFileDialog, QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit.formats import strip_backticks
from sndr_gui.kit.numbers import decimal, whole
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.start import SERVER_NAMES
from sndr_gui.models.settings.entries import Entry
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.views.widgets.buttons import button, icon_button, keep_to_paths
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import badge, set_text, set_tone, text
from sndr_gui.views.widgets.layout import column, room_of, row
from sndr_gui.views.widgets.problems import ProblemBox

# A control in a small window, and elsewhere; from which width on a row has room for the latter.
_CONTROL_WIDTHS, _ROOMY = (200, 288), 680
# Values that other pages name in words.
_CHOICES = {choice.value: name for choice, name in SERVER_NAMES.items()}
_LEFT_OPEN = {"words": tr("none"), "folders": tr("none"), "path": tr("none"), "endpoint.path": tr("none")}
"""By the kind of a setting, or by its name."""


class SettingRow(QWidget):
    """One setting: label and help at the left, control, provenance and reset at the right."""

    def __init__(self, model: SettingsModel, entry: Entry) -> None:
        super().__init__()
        self._model, self._entry = model, entry
        self._filling = False
        self._label = text(entry.label, wrap=True)
        self._layer = badge("")
        self._reset = icon_button(
            "undo-2", tr("Back to the default: {label}", label=entry.label), self._on_reset
        )
        # Hidden where there is nothing to take back; its room stays, so that the rows stay aligned.
        policy = self._reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(policy)
        self._problem: ProblemBox | None = None
        self._probe = text("", "muted", wrap=True)
        self._probe.hide()
        help_text = text(strip_backticks(entry.help), "muted", wrap=True)
        self.control, field = self._make(entry)
        self._field = field
        self._set_width()
        line = row(column(self._label, help_text, spacing=2), field, self._reset, self._layer, spacing=10)
        line.setStretch(0, 1)
        line.setAlignment(field, Qt.AlignmentFlag.AlignVCenter)
        self._layer.setFixedWidth(108)
        self._layer.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(0, 2, 0, 2)
        self._lines.setSpacing(6)
        self._lines.addLayout(line)
        self._lines.addWidget(self._probe)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._set_width()

    def _set_width(self) -> None:
        if self._entry.kind != "switch":
            self._field.setFixedWidth(_CONTROL_WIDTHS[room_of(self) >= _ROOMY])

    def _make(self, entry: Entry) -> tuple[QWidget, QWidget]:
        control: QWidget
        if entry.kind == "switch":
            switch = QCheckBox()
            switch.clicked.connect(self._on_switch)
            control = switch
        elif entry.kind == "choice":
            combo = ChoiceBox(entry.label)
            for choice in entry.choices:
                combo.addItem(_CHOICES.get(choice, choice), choice)
            combo.activated.connect(self._on_choice)
            control = combo
        else:
            edit = QLineEdit()
            edit.editingFinished.connect(self._on_edited)
            control = edit
        control.setAccessibleName(entry.label)
        if entry.kind not in ("folders", "path"):
            return control, control
        browse = button(tr("Add…") if entry.kind == "folders" else tr("Browse…"), self._on_browse)
        browse.setAccessibleName(f"{browse.text()} {entry.label}")
        keep_to_paths(browse, self._model.session.host)
        field = QWidget()
        field.setLayout(row(control, browse))
        return control, field

    # What the person did.

    def _on_switch(self, checked: bool) -> None:
        self._model.put(self._entry.name, checked)

    def _on_choice(self, _place: int) -> None:
        if isinstance(self.control, QComboBox):
            self._model.put(self._entry.name, self.control.currentData())

    def _on_edited(self) -> None:
        if not isinstance(self.control, QLineEdit) or self._filling:
            return
        content = self.control.text().strip()
        if content == self._shown() or not self.control.isModified():
            return
        self.control.setModified(False)
        value: object = content or None
        if content and self._entry.kind == "number":
            setting = self._model.setting(self._entry.name)
            value = _number(content, setting.value if setting else None)
        elif self._entry.kind in ("words", "folders"):
            value = [part.strip() for part in content.split(",") if part.strip()]
        self._model.put(self._entry.name, value)

    def _on_reset(self) -> None:
        self._model.reset(self._entry.name)

    def _on_browse(self) -> None:
        dialog = QFileDialog(self, self._entry.label)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if self._entry.kind == "folders":
            dialog.setFileMode(QFileDialog.FileMode.Directory)
            dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._on_picked)
        dialog.open()

    def _on_picked(self, path: str) -> None:
        if self._entry.kind == "folders":
            setting = self._model.setting(self._entry.name)
            known = [str(value) for value in (setting.value if setting and setting.value else ())]
            self._model.put(self._entry.name, [*dict.fromkeys([*known, path])])
        else:
            self._model.put(self._entry.name, path)

    # What is shown.

    def _shown(self) -> str:
        setting = self._model.setting(self._entry.name)
        value = setting.value if setting else None
        if isinstance(value, list | tuple):
            return ", ".join(map(str, value))
        return "" if value is None else str(value)

    def refresh(self) -> None:
        """Show the value of now."""
        name = self._entry.name
        setting = self._model.setting(name)
        self._filling = True
        control = self.control
        if isinstance(control, QCheckBox):
            control.setChecked(bool(setting.value) if setting else False)
        elif isinstance(control, QComboBox):
            control.setCurrentIndex(max(0, control.findData(self._shown())))
        elif isinstance(control, QLineEdit) and not (control.hasFocus() and control.isModified()):
            control.setText(self._shown())
            control.setPlaceholderText(
                _LEFT_OPEN.get(name) or _LEFT_OPEN.get(self._entry.kind, tr("Automatic"))
            )
        self._filling = False
        saving = name in self._model.saving
        set_text(self._layer, tr("saving…") if saving else self._model.provenance(name))
        self._layer.setToolTip(plain_tooltip(setting.why) if setting else "")
        command = self._model.command(name)
        self._label.setToolTip(plain_tooltip(f"{name}\n{command}"))
        self.control.setToolTip(plain_tooltip(f"{strip_backticks(self._entry.help)}\n{command}".strip()))
        default = self._model.is_default(name)
        set_tone(self._layer, "" if default else "accent")
        self._reset.setVisible(not default)
        self._reset.setEnabled(not saving)
        self.setEnabled(self._model.session.connection.connected)
        problem = self._model.problems.get(name)
        if problem is not None and self._problem is None:
            self._problem = ProblemBox()
            self._lines.addWidget(self._problem)
        if self._problem is not None:
            self._problem.setVisible(problem is not None)
        if self._problem is not None and problem is not None:
            self._problem.show_problem(problem)
        if name == "engine.own_server":
            sentence, tone = self._model.own_server()
            set_text(self._probe, sentence)
            set_tone(self._probe, tone)
            self._probe.setVisible(bool(sentence))


def _number(content: str, now: object) -> object:
    """Return the number that was typed, whole where it is so far; what is none goes to the host as it is.

    The host says what it takes instead.
    """
    if isinstance(now, int) and not isinstance(now, bool):
        with suppress(ValueError):
            return whole(content)
        return content
    value = decimal(content)
    if value is None:
        return content
    return int(value) if content.isdecimal() else value
