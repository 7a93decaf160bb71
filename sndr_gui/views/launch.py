"""Launch: the models at the left; what to set, the plan and the start at the right."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine_host.protocol import ModelOrigin, ServerChoice
from sndr_gui import formats
from sndr_gui.launch import LaunchModel
from sndr_gui.views.copying import CommandLine
from sndr_gui.views.fields import NumberField
from sndr_gui.views.parts import (
    GAP,
    Card,
    Elided,
    EmptyState,
    Page,
    badge,
    button,
    clear,
    column,
    row,
    scrolling,
    set_text,
    set_tone,
    text,
)
from sndr_gui.views.problems import Findings, ProblemBox
from sndr_gui.views.stages import StageList
from sndr_gui.views.tables import Table


class LaunchView(Page):
    """The page that starts engines."""

    def __init__(self, model: LaunchModel) -> None:
        super().__init__("Launch")
        self.model = model
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter models  (Ctrl+F)")
        self.filter.setAccessibleName("Filter models")
        self.filter.setClearButtonEnabled(True)
        self.filter.setFixedWidth(230)
        self.filter.textChanged.connect(model.set_filter)
        self.add = button(
            "Add model folder…",
            self._on_add,
            icon="folder-plus",
            hint="Look for GGUF files in one more folder",
            command="sndr settings set models.folders PATH",
        )
        self.tools.addWidget(self.filter)
        self.tools.addWidget(self.add)
        self.table = Table(model.rows, "Models", 0, {1: 74, 2: 84, 3: 76, 4: 118})  # type: ignore[arg-type]
        self.table.row_chosen.connect(self._on_row)
        add = button("Add model folder…", self._on_add, kind="primary", icon="folder-plus")
        self._empty = EmptyState(
            "folder-plus",
            "No models yet",
            "Add the folder that your GGUF files are in. Nothing is moved or copied.",
            add,
        )
        self._left = QStackedWidget()
        self._left.addWidget(self.table)
        self._left.addWidget(self._empty)
        self._empty.sentence.set_width(260)
        self._left.setMinimumWidth(280)
        self.form = _FormCard(model)
        self.start = _StartCard(model)
        self.plan = _PlanCard(model)
        canvas = QWidget()
        canvas.setObjectName("canvas")
        right = QVBoxLayout(canvas)
        right.setContentsMargins(0, 0, 4, 0)
        right.setSpacing(GAP)
        for part in (self.form, self.start, self.plan):
            right.addWidget(part)
        right.addStretch(1)
        split = QHBoxLayout()
        split.setSpacing(GAP)
        split.addWidget(self._left, 10)
        panel = scrolling(canvas)
        panel.setMinimumWidth(320)
        # The hint of a page that is not shown must not take the panel's room.
        self._left.setMinimumWidth(240)
        self._left.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        split.addWidget(panel, 11)
        self.body.addLayout(split, 1)
        model.models_changed.connect(self._on_models)
        model.selected_changed.connect(self._on_selected)
        model.plan_changed.connect(self._on_plan)
        model.changed.connect(self._on_changed)
        self._on_models()
        self._on_selected()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < 900
        # The form says both of the chosen model.
        for place in (2, 3):
            self.table.setColumnHidden(place, narrow)
        self.filter.setFixedWidth(180 if narrow else 230)

    def focus_filter(self) -> None:
        self.filter.setFocus()
        self.filter.selectAll()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)
        if shown:
            self._on_models()
            self.start.refresh()

    def _on_add(self) -> None:
        dialog = QFileDialog(self, "Add model folder")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.model.add_folder)
        # open() and not exec(): a nested loop would lose tasks.
        dialog.open()

    def _on_row(self, place: int) -> None:
        chosen = self.model.rows.row_at(place)
        if chosen is not None:
            self.model.select(chosen.id)

    def _on_models(self) -> None:
        rows = self.model.rows
        total = formats.plural(rows.total, "model")
        shown = f"{len(rows.shown)} of {total}" if len(rows.shown) != rows.total else total
        folders = f"  ·  {formats.plural(len(self.model.folders), 'folder')}" if self.model.folders else ""
        set_text(self.subtitle, shown + folders)
        self._left.setCurrentIndex(0 if rows.total else 1)
        self._show_selection()

    def _show_selection(self) -> None:
        selected = self.model.selected
        place = self.model.rows.place_of(selected.id) if selected else None
        if place is not None and self.table.chosen != place:
            self.table.selectRow(place)

    def _on_selected(self) -> None:
        self._show_selection()
        self.form.refresh()
        self.plan.refresh()
        self.start.refresh()

    def _on_plan(self) -> None:
        self.form.refresh_planned()
        self.plan.refresh()
        self.start.refresh()

    def _on_changed(self) -> None:
        if self.isVisible():
            self.start.refresh()


class _FormCard(Card):
    """What can be set before a start; what is left open comes from the layers below."""

    def __init__(self, model: LaunchModel) -> None:
        super().__init__()
        self._model = model
        self._filling = False
        self.name = Elided("", name="big")
        self.about = Elided("", "muted")
        self._context = NumberField("Context, tokens for one stream", 128, 10_000_000, self._on_edited)
        self._streams = NumberField("Streams answered in parallel", 1, 256, self._on_edited)
        self.context, self.streams = self._context.edit, self._streams.edit
        self.kv_k = self._combo("KV cache type of keys")
        self.kv_v = self._combo("KV cache type of values")
        self.speculation = self._combo("Speculation")
        self.server = self._combo("llama.cpp server")
        self.keep = QCheckBox("Keep running when the program ends")
        self.keep.toggled.connect(self._on_edited)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(10)
        named: tuple[tuple[str, QWidget], ...] = (
            ("Context", self._context),
            ("Streams", self._streams),
            ("KV type, keys", self.kv_k),
            ("KV type, values", self.kv_v),
            ("Speculation", self.speculation),
            ("Server", self.server),
        )
        self._cells = []
        for caption, widget in named:
            label = text(caption, "muted")
            label.setBuddy(widget)
            cell = QWidget()
            cell.setLayout(column(label, widget, None, spacing=4))
            self._cells.append(cell)
        self._columns = 0
        self._arrange(2)
        self.body.addLayout(column(self.name, self.about, spacing=2))
        self.body.addLayout(self._grid)
        self.body.addWidget(self.keep)

    def _arrange(self, columns: int) -> None:
        """Two fields beside each other, or one below the other where there is little room."""
        if columns == self._columns:
            return
        self._columns = columns
        for number, cell in enumerate(self._cells):
            self._grid.addWidget(cell, number // columns, number % columns)
        for place in (0, 1):
            self._grid.setColumnStretch(place, 1 if place < columns else 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(2 if self.width() >= 400 else 1)

    def _combo(self, name: str) -> QComboBox:
        made = QComboBox()
        made.setAccessibleName(name)
        made.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        made.setMinimumContentsLength(8)
        made.currentIndexChanged.connect(self._on_edited)
        return made

    def _on_edited(self) -> None:
        if self._filling:
            return
        form = replace(
            self._model.form,
            context=self._context.count,
            streams=self._streams.count,
            kv_type_k=self.kv_k.currentData() or "",
            kv_type_v=self.kv_v.currentData() or "",
            speculation=self.speculation.currentData() or "",
            # Qt hands an enum back as plain text.
            server=ServerChoice(self.server.currentData() or self._model.form.server),
            keep=self.keep.isChecked(),
        )
        wrong = self._context.error or self._streams.error
        field = "Context" if self._context.error else "Streams"
        self._model.set_form_error(f"{field}: {wrong}" if wrong else "")
        self._model.set_form(form)

    def refresh(self) -> None:
        """Show the chosen model and what its server offers."""
        model, form = self._model, self._model.form
        chosen = model.selected
        self.setEnabled(chosen is not None and chosen.problem is None)
        set_text(self.name, chosen.name if chosen else "Choose a model")
        self.name.setToolTip(chosen.path if chosen else "")
        if chosen is not None:
            parts = [
                formats.size(chosen.size),
                chosen.quantization or "",
                f"{formats.count(chosen.parameters)} parameters" if chosen.parameters else "",
                f"{formats.count(chosen.context)} context" if chosen.context else "",
                "MTP" if chosen.mtp_layers else "",
                "came with the program" if chosen.origin is ModelOrigin.BUNDLED else "",
            ]
            set_text(self.about, "  ·  ".join(part for part in parts if part))
        self._filling = True
        kv_types = [("Default", ""), *((model.kv_label(kind), kind) for kind in model.kv_types())]
        self._fill(self.kv_k, kv_types, form.kv_type_k)
        self._fill(self.kv_v, kv_types, form.kv_type_v)
        kinds = [("Default", ""), ("Off", "off")] + [(kind, kind) for kind in model.speculation_kinds()]
        self._fill(self.speculation, kinds, form.speculation)
        self._fill(self.server, list(model.server_choices()), form.server)
        for field, value in ((self._context, form.context), (self._streams, form.streams)):
            # A wrong number stays in sight while its model does.
            if field.count != value or (field.error and not model.form_error):
                field.edit.setText("" if value is None else str(value))
        self.keep.setChecked(form.keep)
        self._filling = False
        self.refresh_planned()

    @staticmethod
    def _fill(combo: QComboBox, entries: Sequence[tuple[str, object]], value: object) -> None:
        if [(combo.itemText(i), combo.itemData(i)) for i in range(combo.count())] != list(entries):
            combo.clear()
            for label, data in entries:
                combo.addItem(label, data)
        place = next((number for number, entry in enumerate(entries) if entry[1] == value), 0)
        combo.setCurrentIndex(place)

    def refresh_planned(self) -> None:
        """Show in the open fields what the plan takes."""
        for edit, name in ((self.context, "context"), (self.streams, "streams")):
            planned = self._model.planned(name)
            edit.setPlaceholderText(f"{planned}  (automatic)" if planned else "automatic")
        for combo, name in (
            (self.kv_k, "kv_type_k"),
            (self.kv_v, "kv_type_v"),
            (self.speculation, "speculation"),
        ):
            planned = self._model.planned(name)
            if combo.count() and not combo.currentData():
                self._filling = True
                combo.setItemText(0, f"Default ({planned})" if planned else "Default")
                self._filling = False
        for combo in (self.kv_k, self.kv_v):
            for place in range(1, combo.count()):
                combo.setItemText(place, self._model.kv_label(combo.itemData(place)))


class _StartCard(Card):
    """Start, what it would replace, and the stages of a start under way."""

    def __init__(self, model: LaunchModel) -> None:
        super().__init__()
        self._model = model
        self.start = button("Start", model.start, kind="primary", icon="play", shortcut="Ctrl+Return")
        self.cancel = button("Cancel", model.cancel, hint="Give up this start", command="sndr stop --now")
        self.cancel.setAccessibleName("Cancel the start")
        self._note = text("", "muted", wrap=True)
        self._stages = StageList()
        self.problem = ProblemBox()
        self.problem.mended.connect(model.actions.mend)
        self.twin = CommandLine(what="the command line that does the same")
        self.body.addLayout(row(self.start, self.cancel, self._note))
        self.body.addWidget(self.twin)
        self.body.addWidget(self._stages)
        self.body.addWidget(self.problem)

    def refresh(self) -> None:
        """Show whether the plan can start, or how far its start is."""
        model = self._model
        engine = model.starting
        sending = model.actions.pending("start")
        age = f" {formats.duration(time.time() - engine.created_at)}" if engine else ""
        self.start.setText(f"Starting…{age}" if engine or sending else "Start")
        self.start.setEnabled(model.can_start)
        self.start.setToolTip(
            f"Start this plan  (Ctrl+Return)\n{model.plan.command if model.plan else ''}".strip()
        )
        self.twin.setVisible(model.plan is not None)
        self.twin.set_content(model.plan.command if model.plan else "")
        self.cancel.setVisible(engine is not None)
        cancelling = engine is not None and model.actions.pending(f"cancel {engine.job}")
        self.cancel.setEnabled(not cancelling)
        set_text(self._note, self._sentence())
        stages = model.stages(time.time())
        self._stages.setVisible(bool(stages))
        self._stages.show_stages(stages)
        problem = model.actions.problem
        self.problem.setVisible(problem is not None)
        if problem is not None:
            self.problem.show_problem(problem)

    def _sentence(self) -> str:
        model = self._model
        if not model.session.link.connected:
            return "The engine host is not connected."
        if model.starting is not None:
            return f"{model.starting.name} is being started."
        if model.selected is None:
            return "Choose a model first."
        if model.form_error:
            return model.form_error
        if model.planning:
            return "Making the plan…"
        if model.plan is None:
            return "This model cannot be started; the reason stands below."
        if not model.plan.startable:
            return "Something below stops the start."
        return f"Replaces {model.replaces}, which runs now." if model.replaces else "Ready to start."


class _PlanCard(Card):
    """The plan: findings, the exact command line, and every setting with the layer that set it."""

    def __init__(self, model: LaunchModel) -> None:
        self._making = text("", "muted")
        super().__init__("Plan", self._making)
        self._model = model
        self.problem = ProblemBox()
        self.problem.mended.connect(model.actions.mend)
        self.findings = Findings(model.actions.mend)
        self._changes = text("", "muted", wrap=True)
        self._argv = CommandLine(what="the engine's command line", wraps=True)
        self._caption = text("The engine's own command line", "muted")
        self._settings = QFrame()
        self._grid = QGridLayout(self._settings)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(3, 1)
        self._shown: object = None
        for part in (self.problem, self.findings, self._changes, self._settings):
            self.body.addWidget(part)
        self.body.addWidget(self._caption)
        self.body.addWidget(self._argv)

    def refresh(self) -> None:
        """Show the plan of now; an older one stays in sight while the next is made."""
        model, plan = self._model, self._model.plan
        set_text(self._making, "Making the plan…" if model.planning else "")
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        for part in (self._argv, self._caption, self._settings):
            part.setVisible(plan is not None)
        self.findings.show_findings(plan.findings if plan else ())
        changes = plan.changes if plan else ()
        set_text(self._changes, "Against what runs now: " + "; ".join(changes) if changes else "")
        self._changes.setVisible(bool(changes))
        if plan is None:
            return
        self._argv.set_content(shlex.join(plan.argv))
        rows = model.setting_rows()
        if rows == self._shown:
            return
        self._shown = rows
        clear(self._grid)
        for place, entry in enumerate(rows):
            value = Elided(entry.value) if len(entry.value) > 24 else text(entry.value)
            value.setToolTip(entry.value)
            why = Elided(entry.why, "muted")
            layer = badge(entry.layer)
            set_tone(layer, "accent" if entry.layer in ("override", "user") else "")
            for number, label in enumerate((text(entry.name, "muted"), value, layer, why)):
                self._grid.addWidget(label, place, number)
