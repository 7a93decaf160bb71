"""The place of a start among the engines that run, with the plan's words on room and the clicks that help."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLineEdit, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit.formats import shortened
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.launch.page import LaunchModel
from sndr_gui.models.launch.placement import GpuOffer, Remedy
from sndr_gui.views.widgets.buttons import Button, button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, set_tone, text
from sndr_gui.views.widgets.layout import column, room_of, row, show_part

_ROOMY = 400


class PlacementCard(Card):
    """The choice of the place, of the public name and of the GPUs; hidden while there is none to make."""

    def __init__(self, model: LaunchModel) -> None:
        super().__init__()
        self._model = model
        self._filling = False
        self.box = ChoiceBox(tr("Place among the engines that run"))
        self.box.setToolTip(
            tr("Beside the engines that run, or instead of some\nsndr run MODEL --instead-of NAME")
        )
        self.box.currentIndexChanged.connect(self._on_chosen)
        self.name = QLineEdit()
        self.name.setAccessibleName(tr("Public name"))
        self.name.setToolTip(tr("The name by which clients ask for it\nsndr run MODEL --name NAME"))
        self.name.textEdited.connect(self._on_named)
        self.sentence = text("", wrap=True)
        self.remedies: list[Button] = []
        self._known: tuple[Remedy, ...] = ()
        self._flow = Flow()
        place, name = text(tr("Placement"), "muted"), text(tr("Public name"), "muted")
        place.setBuddy(self.box)
        name.setBuddy(self.name)
        self._fields = QGridLayout()
        self._fields.setHorizontalSpacing(12)
        self._fields.setVerticalSpacing(10)
        self._cells = (QWidget(), QWidget())
        self._cells[0].setLayout(column(place, self.box, spacing=4))
        self._cells[1].setLayout(column(name, self.name, spacing=4))
        self._columns = 0
        self._arrange()
        self.body.addLayout(self._fields)
        self.gpus: dict[str, QCheckBox] = {}
        self._gpu_flow = Flow(spacing=14)
        self._gpu_note = text("", "muted")
        self._gpu_part = QWidget()
        self._gpu_part.setLayout(
            column(row(text(tr("GPUs"), "muted"), self._gpu_note, None), self._gpu_flow, spacing=4)
        )
        self.body.addWidget(self._gpu_part)
        self.body.addWidget(self.sentence)
        self.body.addWidget(self._flow)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Put the fields beside each other, or one below the other where there is little room."""
        columns = 2 if room_of(self) >= _ROOMY else 1
        if columns == self._columns:
            return
        self._columns = columns
        for number, cell in enumerate(self._cells):
            self._fields.addWidget(cell, number // columns, number % columns)
            self._fields.setColumnStretch(number, 1 if number < columns else 0)

    def refresh(self) -> None:
        """Show the places of now, and what the plan says of the chosen one."""
        model, form = self._model, self._model.form
        places, gpus = model.places(), model.gpus()
        show_part(self, bool(places or gpus) and model.subject is not None)
        for cell in self._cells:
            cell.setVisible(bool(places))
        self._show_gpus(gpus)
        self._filling = True
        self.box.fill([(place.label, place.key) for place in places], model.place)
        if not self.name.hasFocus() or not self.name.text():
            self.name.setText(form.name)
        self.name.setPlaceholderText(model.plan.name if model.plan is not None else tr("Automatic"))
        self._filling = False
        room = model.room()
        set_text(self.sentence, room.sentence)
        set_tone(self.sentence, room.tone)
        self.sentence.setVisible(bool(room.sentence))
        self._show_remedies(room.remedies)

    def _show_gpus(self, gpus: tuple[GpuOffer, ...]) -> None:
        self._gpu_part.setVisible(bool(gpus))
        if [gpu.uuid for gpu in gpus] != list(self.gpus):
            self._gpu_flow.clear()
            self.gpus = {}
            for gpu in gpus:
                made = QCheckBox()
                made.setProperty("uuid", gpu.uuid)
                made.clicked.connect(self._on_gpu)
                self.gpus[gpu.uuid] = made
                self._gpu_flow.add(made)
        chosen = any(gpu.chosen for gpu in gpus)
        for gpu, made in zip(gpus, self.gpus.values(), strict=True):
            made.setText(shortened(gpu.title, 40).replace("&", "&&"))
            made.setAccessibleName(tr("Compute on GPU {title}", title=gpu.title))
            made.setToolTip(plain_tooltip(f"{gpu.uuid}\nsndr run MODEL --gpu {gpu.title.partition(':')[0]}"))
            made.setChecked(gpu.chosen)
        taken = ", ".join(gpu.title.partition(":")[0] for gpu in gpus if gpu.planned)
        automatic = (
            tr("automatic: GPU {taken}", taken=taken) if taken else tr("automatic: the freest that suffice")
        )
        set_text(self._gpu_note, tr("as chosen") if chosen else automatic)

    def _on_gpu(self, wanted: bool) -> None:
        made = self.sender()
        if isinstance(made, QCheckBox):
            self._model.use_gpu(str(made.property("uuid")), wanted)

    def _show_remedies(self, remedies: tuple[Remedy, ...]) -> None:
        self._flow.setVisible(bool(remedies))
        if remedies == self._known:
            return
        self._known = remedies
        self._flow.clear()
        self.remedies = []
        for remedy in remedies:
            made = button(remedy.label, self._on_remedy, hint=tr("{label}: plan it so", label=remedy.label))
            self.remedies.append(made)
            self._flow.add(made)

    def _on_remedy(self) -> None:
        made = self.sender()
        if isinstance(made, Button) and made in self.remedies:
            self._model.apply_remedy(self._known[self.remedies.index(made)])

    def _on_chosen(self, number: int) -> None:
        places = self._model.places()
        if not self._filling and 0 <= number < len(places):
            form = self._model.form
            self._model.set_form(replace(form, instead_of=places[number].instead_of))

    def _on_named(self, content: str) -> None:
        if not self._filling:
            self._model.set_form(replace(self._model.form, name=content.strip()))
