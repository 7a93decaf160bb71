"""The memory of a start: the bars, and the sliders of context and streams that move them."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from engine_host.protocol.engine_settings.row import EngineSetting
from engine_host.protocol.engine_settings.table import SETTINGS
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.setting_words import caption_of, spoken_of
from sndr_gui.models.fit.device_memory import VERDICTS
from sndr_gui.models.launch.page import LaunchModel
from sndr_gui.models.launch.settings import NOT_SET
from sndr_gui.models.launch.sizes import context_steps, stream_steps
from sndr_gui.views.graphs.memory_bar import MemoryView
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import badge, set_text, set_tone, text
from sndr_gui.views.widgets.layout import column, row, show_part
from sndr_gui.views.widgets.problems import ProblemBox
from sndr_gui.views.widgets.value_slider import ValueSlider

SIZES = ("context", "streams", "kv_cache_dtype", "kv_type_k", "kv_type_v")


class MemoryCard(Card):
    """The memory of a start with what moves it; every number was computed by the host."""

    def __init__(self, model: LaunchModel) -> None:
        self.verdict = badge("")
        self.reset = button(
            tr("Reset"),
            model.reset_values,
            kind="flat",
            icon="undo-2",
            hint=tr("Reset everything that was set here"),
        )
        super().__init__(tr("Memory"), self.verdict, self.reset)
        self._model = model
        self._filling = False
        self.why = text("", "muted", wrap=True)
        self.behind = text("", "warn", wrap=True)
        self.memory = MemoryView()
        self.problem = ProblemBox("warning", apply_fix=model.actions.apply_fix)
        self.again = button(tr("Try again"), model.fit.refresh, icon="rotate-cw", hint=tr("Compute again"))
        self._again_row = QWidget()
        self._again_row.setLayout(row(self.again, None))
        self.context_slider = self._slider("context")
        self.streams_slider = self._slider("streams")
        self.boxes: dict[str, ChoiceBox] = {}
        self._cells: dict[str, QWidget] = {}
        kinds = QHBoxLayout()
        kinds.setSpacing(12)
        for name in SIZES[2:]:
            entry = SETTINGS[name]
            box = ChoiceBox(spoken_of(entry))
            box.currentIndexChanged.connect(partial(self._on_kind, name))
            caption = text(caption_of(entry), "muted")
            caption.setBuddy(box)
            cell = QWidget()
            cell.setLayout(column(caption, box, spacing=4))
            self.boxes[name], self._cells[name] = box, cell
            kinds.addWidget(cell, 1)
        for part in (self.behind, self.why, self.memory, self.problem, self._again_row):
            self.body.addWidget(part)
        self.body.addWidget(self.context_slider)
        self.body.addWidget(self.streams_slider)
        self.body.addLayout(kinds)
        model.fit.changed.connect(self.refresh)
        model.changed.connect(self._show_behind)

    def _slider(self, name: str) -> ValueSlider:
        entry = SETTINGS[name]
        made = ValueSlider(
            caption_of(entry),
            spoken_of(entry),
            int(entry.low),
            int(entry.high),
            partial(self._on_typed, name),
            tokens=entry.unit == "tokens",
        )
        made.chosen.connect(partial(self._on_slid, name))
        return made

    @property
    def sliders(self) -> dict[str, ValueSlider]:
        """The sliders by the setting that each moves."""
        return {"context": self.context_slider, "streams": self.streams_slider}

    @property
    def context(self) -> QLineEdit:
        """Tokens for one stream, typed."""
        return self.context_slider.field.edit

    @property
    def streams(self) -> QLineEdit:
        """Requests answered in parallel, typed."""
        return self.streams_slider.field.edit

    # What the person did.

    def _on_typed(self, name: str, *_text: object) -> None:
        field = self.sliders[name].field
        self._model.set_error(name, f"{caption_of(SETTINGS[name])}: {field.error}" if field.error else "")
        if not field.error:
            self._model.set_value(name, field.count)

    def _on_slid(self, name: str, value: int) -> None:
        self._model.set_error(name, "")
        self._model.set_value(name, value)
        self._show_number(name, value)

    def _on_kind(self, name: str, _place: int) -> None:
        if not self._filling:
            self._model.set_value(name, self.boxes[name].currentData())

    def _show_number(self, name: str, value: int | None) -> None:
        field = self.sliders[name].field
        # A wrong number stays in sight until it is mended or another thing is chosen.
        if field.count != value or (field.error and not self._model.form_error):
            field.edit.setText("" if value is None else str(value))

    # What is shown.

    def refresh(self) -> None:
        """Show the answer of now, dimmed while a newer one is waited for."""
        model, fit = self._model, self._model.fit
        report = fit.report
        # What is below must not jump up, and down again with the answer.
        if not fit.waiting:
            self.setMinimumHeight(0)
        elif self.isVisible() and not self.minimumHeight() and report is not None:
            # Only with an answer: before the first one its parts are not laid out, and would be squeezed.
            self.setMinimumHeight(self.height())
        show_part(self, model.subject is not None and (model.subject.problem is None or report is not None))
        word, tone = VERDICTS[report.verdict] if report is not None else ("", "")
        set_text(self.verdict, word)
        self.verdict.setVisible(bool(word))
        set_tone(self.verdict, "muted" if fit.waiting else tone)
        set_text(self.why, report.why if report is not None else "")
        self.why.setVisible(bool(self.why.text()))
        self.memory.setVisible(not fit.sentence)
        self.memory.show_report(
            report, fit.waiting, tr("not computed") if not fit.waiting else tr("computing…")
        )
        self.problem.setVisible(bool(fit.sentence))
        self._again_row.setVisible(bool(fit.sentence))
        if fit.problem is not None:
            self.problem.show_problem(fit.problem)
        elif fit.sentence:
            self.problem.show_sentence(tr("The memory could not be computed."), fit.sentence)
        self.reset.setVisible(bool(model.form.values))
        self._show_behind()
        self._show_sliders()
        self._show_kinds()

    def _show_behind(self) -> None:
        set_text(self.behind, self._model.behind)
        self.behind.setVisible(bool(self._model.behind))

    def _show_sliders(self) -> None:
        model, fit = self._model, self._model.fit
        report, known = fit.report, fit.report is not None and bool(fit.report.devices)
        context, streams = model.size("context"), model.size("streams")
        most_context = report.largest_context if report is not None and known else None
        most_streams = report.most_streams if report is not None and known else None
        notes = {"context": "", "streams": ""}
        if report is not None and known and not fit.waiting:
            many = formats.plural(report.streams, "stream")
            notes["context"] = tr(
                "Largest for {many}: {largest_context} tokens",
                many=many,
                largest_context=formats.number(report.largest_context),
            )
            notes["streams"] = tr(
                "Most at {context} tokens: {most_streams}",
                context=formats.number(report.context),
                most_streams=formats.number(report.most_streams),
            )
        elif fit.waiting:
            notes = dict.fromkeys(notes, tr("Computing…"))
        values = {
            "context": (context_steps(model.longest, context, most_context), context, most_context),
            "streams": (stream_steps(streams, most_streams), streams, most_streams),
        }
        for name, slider in self.sliders.items():
            steps, value, most = values[name]
            slider.show_values(steps, value, most, notes[name], fit.waiting)
            if not (slider.field.error and model.form_error):
                self._show_number(name, model.form.values.get(name))
            slider.field.edit.setPlaceholderText(tr("Automatic") if value is None else formats.number(value))

    def _show_kinds(self) -> None:
        model = self._model
        shown = {entry.name: entry for entry in model.fields() if entry.name in self.boxes}
        self._filling = True
        for name, box in self.boxes.items():
            self._cells[name].setVisible(name in shown)
            if name in shown:
                self._fill(box, shown[name])
        self._filling = False

    def _fill(self, box: ChoiceBox, entry: EngineSetting) -> None:
        model = self._model
        planned, report = model.planned(entry.name), model.fit.report
        if not planned and report is not None and entry.name not in model.form.values:
            planned = report.kv
        label = (
            tr("Default ({planned})", planned=planned) if planned and planned != NOT_SET else tr("Default")
        )
        box.fill([(label, None), *model.offers.choices(entry)], model.form.values.get(entry.name))
