"""The form of Launch: the settings of the engine that will run what is chosen, but for its sizes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLineEdit, QWidget

from engine_host.protocol.engine_settings.row import EngineSetting
from engine_host.protocol.engine_settings.table import SETTINGS
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import ServerChoice
from engine_host.protocol.models import ModelOrigin
from sndr_gui.kit import formats
from sndr_gui.kit.look.level import is_simple
from sndr_gui.kit.setting_words import caption_of, spoken_of
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.launch.form import refusal, words_of
from sndr_gui.models.launch.page import LaunchModel
from sndr_gui.models.launch.settings import NO_VALUES, NOT_SET
from sndr_gui.models.launch.subject import ENGINE_NAMES, VLLM
from sndr_gui.views.launch.memory import SIZES
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.fields import ChoiceBox, NumberField
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, text, unbroken
from sndr_gui.views.widgets.layout import column, room_of, row, show_part

_SERVER, _ENVIRONMENT = "server", "installation"


class ModelHead(Card):
    """The chosen model: its name, and what is known of it."""

    def __init__(self, model: LaunchModel) -> None:
        super().__init__()
        self._model = model
        self.name = ElidedLabel("", name="big")
        self.about = text("", "muted", wrap=True)
        self.body.addLayout(column(self.name, self.about, spacing=2))

    def refresh(self) -> None:
        """Show the model of now."""
        subject = self._model.subject
        chosen = subject.model if subject is not None else None
        set_text(self.name, chosen.name if chosen else tr("Choose a model"))
        self.name.setToolTip(plain_tooltip(chosen.path if chosen else ""))
        if chosen is None or subject is None:
            return
        parts = [
            tr("runs on {engine_names}", engine_names=ENGINE_NAMES[subject.engine.value]),
            formats.size(chosen.size) if chosen.format != "shape" else tr("config without weights"),
            chosen.quantization or "",
            tr("{count} parameters", count=formats.count(chosen.parameters)) if chosen.parameters else "",
            tr("{count} context", count=formats.count(chosen.context)) if chosen.context else "",
            "MTP" if chosen.mtp_layers else "",
            tr("bundled") if chosen.origin is ModelOrigin.BUNDLED else "",
        ]
        set_text(self.about, unbroken("  ·  ".join(part for part in parts if part)))


class FormCard(Card):
    """The settings of a start; what is left open comes from the layers below."""

    def __init__(self, model: LaunchModel) -> None:
        super().__init__(tr("Settings"))
        self._model = model
        self._filling = False
        # The order of the Tab key: those that are always in sight first.
        own = sorted((one for one in SETTINGS.values() if one.name not in SIZES), key=lambda one: one.more)
        self.inputs: dict[str, QWidget] = {entry.name: self._input(entry) for entry in own}
        self.server = self._choice(tr("llama.cpp server"), self._on_form)
        self.environment = self._choice(tr("vLLM environment"), self._on_form)
        self.more = button(
            tr("More settings"), self._on_more, kind="flat", hint=tr("Show all settings of the engine")
        )
        self.more.setCheckable(True)
        self.keep = QCheckBox(tr("Keep running when the program ends"))
        self.keep.toggled.connect(self._on_form)
        captions = {entry.name: caption_of(entry) for entry in own}
        captions |= {_SERVER: tr("Server"), _ENVIRONMENT: tr("Environment")}
        self._all = {**self.inputs, _SERVER: self.server, _ENVIRONMENT: self.environment}
        self._cells: dict[str, QWidget] = {}
        for name, caption in captions.items():
            label = text(caption, "muted")
            label.setBuddy(self._all[name])
            # A child from the start: whoever joins later stands behind Start for the Tab key.
            cell = QWidget(self)
            cell.setLayout(column(label, self._all[name], None, spacing=4))
            cell.hide()
            self._cells[name] = cell
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(10)
        self._arranged: tuple[int, list[str]] = (0, [])
        self.body.addLayout(self._grid)
        self.body.addLayout(row(self.more, None))
        self.body.addWidget(self.keep)

    def box(self, name: str) -> ChoiceBox:
        """Return the choice of a setting."""
        made = self.inputs[name]
        assert isinstance(made, ChoiceBox)
        return made

    def shown(self) -> list[str]:
        """Return the names of the visible fields, in order."""
        return self._arranged[1]

    def _number(self, name: str) -> NumberField:
        made = self.inputs[name]
        assert isinstance(made, NumberField)
        return made

    def _input(self, entry: EngineSetting) -> QWidget:
        edited = partial(self._on_edited, entry)
        if entry.kind in ("whole", "decimal"):
            return NumberField(
                spoken_of(entry), max(entry.low, 0), entry.high, edited, tokens=entry.unit == "tokens"
            )
        if entry.kind == "choice":
            return self._choice(spoken_of(entry), edited)
        edit = QLineEdit()
        edit.setAccessibleName(spoken_of(entry))
        edit.textEdited.connect(edited)
        return edit

    def _choice(self, name: str, chosen: Callable[[], object]) -> ChoiceBox:
        made = ChoiceBox(name)
        made.currentIndexChanged.connect(chosen)
        return made

    # Where the fields stand.

    def _names(self) -> list[str]:
        fields = [entry for entry in self._model.fields() if entry.name not in SIZES]
        usual = [entry.name for entry in fields if not entry.more]
        more = [entry.name for entry in fields if entry.more and self.more.isChecked()]
        if self._model.engine_kind is VLLM:
            return [_ENVIRONMENT, *usual, *more]
        return [*usual, _SERVER, *more]

    def _arrange(self) -> None:
        """Put two fields beside each other, or one below the other where there is little room."""
        wanted = (2 if room_of(self) >= 400 else 1, self._names())
        if wanted == self._arranged:
            return
        self._arranged = wanted
        columns, names = wanted
        for cell in self._cells.values():
            self._grid.removeWidget(cell)
        for number, name in enumerate(names):
            self._grid.addWidget(self._cells[name], number // columns, number % columns)
        for name, cell in self._cells.items():
            cell.setVisible(name in names)
        for place in (0, 1):
            self._grid.setColumnStretch(place, 1 if place < columns else 0)
        for before, after in pairwise(names):
            QWidget.setTabOrder(self._all[before], self._all[after])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _on_more(self) -> None:
        self._arrange()
        self.more.setText(tr("Fewer settings") if self.more.isChecked() else tr("More settings"))

    # What the person did.

    def _on_edited(self, entry: EngineSetting, *_changed: object) -> None:
        if self._filling:
            return
        value, error = self._read(entry)
        self._model.set_error(entry.name, f"{caption_of(entry)}: {error}" if error else "")
        if not error:
            self._model.set_value(entry.name, value)

    def _on_form(self, *_changed: object) -> None:
        if self._filling:
            return
        model = self._model
        form = replace(
            model.form,
            # Qt hands an enum back as plain text.
            server=ServerChoice(self.server.currentData() or model.form.server),
            installation=self._installation(),
            keep=self.keep.isChecked(),
        )
        model.set_form(form)

    def _installation(self) -> str:
        chosen = self.environment.currentData()
        return self._model.form.installation if chosen is None else str(chosen)

    def _read(self, entry: EngineSetting) -> tuple[Any, str]:
        """Return the value of a setting, None for nothing, and what is wrong with it."""
        made = self.inputs[entry.name]
        if isinstance(made, NumberField):
            return (made.count if entry.kind == "whole" else made.value), made.error
        if isinstance(made, ChoiceBox):
            return made.currentData(), ""
        assert isinstance(made, QLineEdit)
        content = made.text().strip()
        if entry.kind == "words":
            words, error = words_of(content)
            return words or None, error or (refusal(entry.name, words) if words else "")
        return content or None, refusal(entry.name, content) if content else ""

    # What is shown.

    def refresh(self) -> None:
        """Show what the engine of what is chosen offers."""
        model, form = self._model, self._model.form
        subject, offers = model.subject, model.offers
        usable = subject is not None and subject.problem is None
        self.setEnabled(usable)
        show_part(self, usable and not is_simple())
        self._filling = True
        for entry in model.fields():
            if entry.name in self.inputs:
                self._fill(entry, form.values)
        self.server.fill(list(offers.server_choices()), form.server)
        self.environment.fill(list(offers.environment_choices()), form.installation)
        self.keep.setChecked(form.keep)
        self._filling = False
        self._arrange()
        self.refresh_planned()

    def _fill(self, entry: EngineSetting, values: Mapping[str, Any]) -> None:
        made, value = self.inputs[entry.name], values.get(entry.name)
        if isinstance(made, ChoiceBox):
            made.fill([(tr("Default"), None), *self._model.offers.choices(entry)], value)
        elif isinstance(made, NumberField):
            # A wrong number stays in sight while its model does.
            if made.value != value or (made.error and not self._model.form_error):
                made.edit.setText("" if value is None else f"{value:.12g}")
        elif isinstance(made, QLineEdit) and not made.hasFocus():
            made.setText(shlex.join(value) if isinstance(value, tuple) else str(value or ""))

    def refresh_planned(self) -> None:
        """Show in the open fields what the plan takes."""
        self._filling = True
        for entry in self._model.fields():
            if entry.name not in self.inputs:
                continue
            made, planned = self.inputs[entry.name], self._model.planned(entry.name)
            planned = "" if planned in (NOT_SET, NO_VALUES) else planned
            edit = made.edit if isinstance(made, NumberField) else made
            if isinstance(edit, QLineEdit):
                edit.setPlaceholderText(
                    tr("{planned}  (automatic)", planned=planned) if planned else tr("Automatic")
                )
            elif isinstance(made, ChoiceBox):
                if made.count() and made.currentData() is None:
                    made.setItemText(
                        0, tr("Default ({planned})", planned=planned) if planned else tr("Default")
                    )
                for place, (label, _value) in enumerate(self._model.offers.choices(entry), start=1):
                    made.setItemText(place, label)
        self._filling = False
