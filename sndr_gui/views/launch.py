"""Launch: the models at the left; what to set, the plan and the start at the right."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from sndr_gui import formats
from sndr_gui.launch import LaunchModel
from sndr_gui.views.installations import InstallCard
from sndr_gui.views.launch_form import FormCard
from sndr_gui.views.launch_plan import PlanCard
from sndr_gui.views.launch_start import StartCard
from sndr_gui.views.parts import GAP, EmptyState, Page, button, scrolling, set_text
from sndr_gui.views.tables import Table


class LaunchView(Page):
    """The page that starts engines."""

    def __init__(
        self, model: LaunchModel, open_chat: Callable[[], None], open_log: Callable[[str], None]
    ) -> None:
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
            hint="Look for GGUF files and checkpoints in one more folder",
            command="sndr settings set models.folders PATH",
        )
        self.tools.addWidget(self.filter)
        self.tools.addWidget(self.add)
        self.table = Table(model.rows, "Models", 0, {1: 74, 2: 84, 3: 76, 4: 150})  # type: ignore[arg-type]
        self.table.row_chosen.connect(self._on_row)
        add = button("Add model folder…", self._on_add, kind="primary", icon="folder-plus")
        self._empty = EmptyState(
            "folder-plus",
            "No models yet",
            "Add the folder that your GGUF files or checkpoints are in. Nothing is moved or copied.",
            add,
        )
        self._left = QStackedWidget()
        self._left.addWidget(self.table)
        self._left.addWidget(self._empty)
        self._empty.sentence.set_width(260)
        self._left.setMinimumWidth(280)
        self.form = FormCard(model)
        self.install = InstallCard(model.installations)
        self.start = StartCard(model, open_chat, open_log)
        self.plan = PlanCard(model)
        canvas = QWidget()
        canvas.setObjectName("canvas")
        right = QVBoxLayout(canvas)
        right.setContentsMargins(0, 0, 4, 0)
        right.setSpacing(GAP)
        for part in (self.form, self.install, self.start, self.plan):
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
        # The form says both of the chosen model; its name needs the room.
        narrow = self.width() < 1200
        for place in (2, 3):
            self.table.setColumnHidden(place, narrow)
        self.table.setColumnWidth(4, 118 if self.width() < 900 else 150)
        self.filter.setFixedWidth(180 if self.width() < 900 else 230)

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
        self._on_plan()

    def _on_plan(self) -> None:
        self.form.refresh_planned()
        self.install.show_missing(self.model.missing)
        self.plan.refresh()
        self.start.refresh()

    def _on_changed(self) -> None:
        if self.isVisible():
            self.install.show_missing(self.model.missing)
            self.start.refresh()
