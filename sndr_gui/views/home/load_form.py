"""The dialog that loads a model on demand with other settings, for this load alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QFormLayout, QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol.endpoint.on_demand import LoadSetting
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.language import tr
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.home.load_form import LoadForm, hint_of, shown_value
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row, scrolling

_ABOUT = tr(
    "They hold for this load alone; the next one has the model's own again. What is empty stays as it is."
)


class LoadDialog(Dialog):
    """Asks for the settings of one load; the form follows from the settings that the host names."""

    def __init__(self, parent: QWidget, form: LoadForm, load: Callable[[Overrides], object]) -> None:
        super().__init__(parent, tr("Load {name} with other settings", name=form.name))
        self.resize(560, 520)
        self._form, self._load = form, load
        self.fields: dict[str, QWidget] = {}
        lines = QFormLayout()
        lines.setSpacing(8)
        for setting in form.settings:
            field = self._field(setting)
            field.setToolTip(plain_tooltip(hint_of(setting)))
            field.setAccessibleDescription(hint_of(setting))
            self.fields[setting.name] = field
            lines.addRow(text(setting.caption, "muted"), field)
        canvas = QWidget()
        canvas.setObjectName("canvas")
        canvas.setLayout(lines)
        self.wrong = text("", "bad", wrap=True)
        self.command = CopyField(what=tr("equivalent command"), wraps=True)
        self.send = button(tr("Load"), self._on_load, kind="primary")
        self.send.setDefault(True)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(20, 18, 20, 18)
        whole.setSpacing(12)
        whole.addWidget(text(_ABOUT, "muted", wrap=True))
        whole.addWidget(scrolling(canvas), 1)
        whole.addWidget(self.wrong)
        whole.addWidget(self.command)
        whole.addLayout(row(None, button(tr("Cancel"), self.reject), self.send))
        self._refresh()

    def _field(self, setting: LoadSetting) -> QWidget:
        if setting.choices:
            box = ChoiceBox(setting.caption)
            named = [
                ((tr("yes") if one else tr("no")) if isinstance(one, bool) else str(one), one)
                for one in setting.choices
            ]
            box.fill([(tr("Default ({shown_value})", shown_value=shown_value(setting)), None), *named], None)
            box.currentIndexChanged.connect(partial(self._on_chosen, setting.name, box))
            return box
        line = QLineEdit()
        line.setAccessibleName(setting.caption)
        line.setPlaceholderText(shown_value(setting))
        line.textChanged.connect(partial(self._on_typed, setting.name))
        return line

    def _on_chosen(self, name: str, box: ChoiceBox, _place: int) -> None:
        self._on_typed(name, box.currentData())

    def _on_typed(self, name: str, value: object) -> None:
        self._form.put(name, value)
        self._refresh()

    def _refresh(self) -> None:
        overrides, wrong = self._form.read()
        set_text(self.wrong, "\n".join(wrong.values()))
        self.wrong.setVisible(bool(wrong))
        self.command.set_content(self._form.command)
        self.send.setEnabled(overrides is not None)

    def _on_load(self) -> None:
        overrides, _wrong = self._form.read()
        if overrides is not None:
            self._load(overrides)
            self.accept()
