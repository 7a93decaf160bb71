"""Presets: the list of one's own and of the program's, and the editor of one."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QLineEdit, QStackedWidget, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.shortcuts import keys
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.launch.subject import ENGINE_NAMES
from sndr_gui.models.presets.library import ALL, OWN, SHIPPED
from sndr_gui.models.presets.page import PresetsModel
from sndr_gui.views.presets.dialogs import ImportConsentDialog, ImportDialog
from sndr_gui.views.presets.editor import PresetEditorPane, export_dialog, import_dialog
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import EmptyState
from sndr_gui.views.widgets.copying import CopyField, SegmentedControl
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, set_tone, text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.tables import Table

_ORIGINS = ((tr("All"), ALL), (tr("Own"), OWN), (tr("Shipped"), SHIPPED))


class PresetsView(Page):
    """The page of presets."""

    def __init__(self, model: PresetsModel, open_fit: Callable[[str], None]) -> None:
        super().__init__(tr("Presets"))
        self.model = model
        self._open_fit = open_fit
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(tr("Search presets  ({keys})", keys=keys("filter")))
        self.filter.setAccessibleName(tr("Search presets"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setFixedWidth(230)
        self.filter.textChanged.connect(self._on_filter)
        self.take_in = button(
            tr("Import…"), self._on_import, icon="download", hint=tr("Import an exported preset"),
            command="sndr presets import FILE",
        )  # fmt: skip
        self.tools.addWidget(self.filter)
        self.tools.addWidget(self.take_in)
        self.list = QWidget()
        self.list.setObjectName("canvas")
        self._make_list()
        self.pane = PresetEditorPane(model)
        self.pane.fit_wanted.connect(open_fit)
        self.pane.remove_wanted.connect(model.remove)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.list)
        self.stack.addWidget(self.pane)
        self.body.addWidget(self.stack, 1)
        model.changed.connect(self.refresh)
        model.rows_changed.connect(self._on_rows)
        model.pending_import_changed.connect(self._on_pending_import)
        model.editor.opened.connect(self._on_opened)
        model.editor.changed.connect(self._title)
        model.editor.checked.connect(self._title)
        self._on_rows()

    def _make_list(self) -> None:
        self.origins = SegmentedControl(tuple(name for name, _ in _ORIGINS), tr("Origin"))
        for choice in self.origins.buttons:
            choice.clicked.connect(self._on_origin)
        self._count = text("", "muted")
        widths = {1: 200, 2: 110, 3: 180, 4: 86, 5: 132}
        self.table = Table(self.model.rows, tr("Presets"), 0, widths)  # type: ignore[arg-type]
        self.table.row_chosen.connect(self._on_chosen)
        self.table.doubleClicked.connect(self._on_double)
        self.table.installEventFilter(self)
        self.clear_filters = button(
            tr("Show every preset"), self._on_clear_filters, hint=tr("Take back the search and the filters")
        )
        self.empty = EmptyState("bookmark", "", "", self.clear_filters)
        self.found = QStackedWidget()
        self.found.addWidget(self.table)
        self.found.addWidget(self.empty)
        self.edit = button(tr("Edit"), self._on_open, kind="primary")
        self.vary = button(tr("Make a variation"), self._on_vary, icon="plus")
        self.fit = button(tr("Open in Fit"), self._on_fit, icon="gauge", hint=tr("On any hardware"))
        self.export = button(tr("Export…"), self._on_export, icon="upload", hint=tr("Export it as one file"))
        self.remove = button(tr("Remove"), self._on_remove, kind="danger", icon="trash-2")
        self.hint = text("", "muted", wrap=True)
        self.equivalent_command = CopyField("", tr("equivalent command"))
        lines = QVBoxLayout(self.list)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(10)
        lines.addLayout(row(self.origins, None, self._count))
        lines.addWidget(self.found, 1)
        lines.addWidget(self.hint)
        lines.addWidget(Flow(self.edit, self.vary, self.fit, self.export, self.remove))
        lines.addWidget(self.equivalent_command)

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)
        if shown:
            self.refresh()

    def step_back(self) -> bool:
        if not self.model.editor.is_open:
            return False
        self.pane.leave()
        return True

    def focus_filter(self) -> None:
        if self.stack.currentWidget() is self.list:
            self.filter.setFocus()
            self.filter.selectAll()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < 900
        for place in (1, 3):
            self.table.setColumnHidden(place, narrow)
        self.filter.setFixedWidth(180 if narrow else 230)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.table and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._on_open()
                return True
            if event.key() == Qt.Key.Key_Delete and self.remove.isEnabled():
                self._on_remove()
                return True
        return False

    # What is shown.

    def _on_opened(self) -> None:
        self.stack.setCurrentWidget(self.pane if self.model.editor.is_open else self.list)
        in_list = self.stack.currentWidget() is self.list
        self.filter.setVisible(in_list)
        self.take_in.setVisible(in_list)
        if in_list:
            self._on_rows()
            self.table.setFocus()

    def _on_rows(self) -> None:
        rows = self.model.rows
        set_text(
            self._count,
            tr("{shown} of {presets}", shown=len(rows.shown), presets=formats.plural(rows.total, "preset")),
        )
        place = rows.place_of(self.model.chosen)
        if place is not None and self.table.chosen != place:
            self.table.selectRow(place)
        self.refresh()

    def refresh(self) -> None:
        """Show what is not in the table."""
        model, chosen = self.model, self.model.row
        self._title()
        own = chosen is not None and chosen.own
        usable = chosen is not None and model.item(chosen.id) is not None
        self.edit.setEnabled(chosen is not None)
        self.edit.setText(tr("Edit") if own else tr("View"))
        self.edit.setToolTip(tr("Open it in the editor  (Enter)"))
        self.vary.setEnabled(usable)
        self.fit.setEnabled(usable)
        self.export.setEnabled(usable)
        self.remove.setEnabled(own)
        name = chosen.id if chosen else "PRESET"
        self.vary.setToolTip(
            tip(tr("Make a preset that holds only what differs"), "", f"sndr presets vary {name} my-{name}")
        )
        self.export.setToolTip(
            plain_tooltip(
                tr(
                    "Export it with everything it needs as one file\nsndr presets export {name} -o FILE",
                    name=name,
                )
            )
        )
        self.remove.setToolTip(tip(tr("Can be undone  (Del)"), "", f"sndr presets remove {name}"))
        self.equivalent_command.set_content(f"sndr presets show {name}" if chosen else "sndr presets list")
        set_text(self.hint, self._hint())
        self.hint.setVisible(bool(self.hint.text()))
        none = model.page is not None and not model.rows.shown
        self.found.setCurrentWidget(self.empty if none else self.table)
        if none:
            heading, sentence = self._nothing()
            self.empty.heading.setText(heading)
            self.empty.sentence.setText(sentence)

    def _title(self) -> None:
        editor = self.model.editor
        if not editor.is_open:
            set_text(self.title, tr("Presets"))
            set_text(self.subtitle, self.model.subtitle)
            set_tone(self.subtitle, "muted")
            return
        set_text(self.title, editor.target)
        if editor.read_only:
            state, tone = tr("shipped, read only"), "muted"
        elif editor.is_new:
            state, tone = tr("new, not saved yet"), "warn"
        else:
            state, tone = (
                (tr("unsaved changes"), "warn") if editor.dirty else (tr("own preset, saved"), "good")
            )
        resolved = editor.resolved
        about = (
            "  ·  "
            + tr(
                "{title} on {engine}",
                title=resolved.model.title,
                engine=ENGINE_NAMES[resolved.engine.value],
            )
            if resolved
            else ""
        )
        set_text(self.subtitle, state + about)
        set_tone(self.subtitle, tone)

    def _hint(self) -> str:
        model, chosen = self.model, self.model.row
        if model.page is None or not model.rows.shown:
            return ""
        if chosen is not None and chosen.why:
            return tr("{id} cannot be used: {why}. Edit it to fix it.", id=chosen.id, why=chosen.why)
        return ""

    def _nothing(self) -> tuple[str, str]:
        """Return why no preset is listed, as a heading and a sentence."""
        if self.model.origin == OWN and not self.model.rows.total:
            return tr("No own presets"), (
                tr(
                    "Make a variation of a shipped preset: it holds only what differs, and follows "
                    "the original in everything else."
                )
            )
        return tr("No match"), tr("No preset matches the search and the filters.")

    # What the person does.

    def _on_filter(self, content: str) -> None:
        self.model.rows.set_filter(content)
        self._on_rows()

    def _on_origin(self) -> None:
        self.model.set_origin(_ORIGINS[self.origins.place][1])

    def _on_clear_filters(self) -> None:
        self.filter.clear()
        self.origins.buttons[0].click()
        self.filter.setFocus()

    def _on_chosen(self, place: int) -> None:
        chosen = self.model.rows.row_at(place)
        if chosen is not None:
            self.model.choose(chosen.id)

    def _on_double(self, _index: QModelIndex) -> None:
        self._on_open()

    def _on_open(self) -> None:
        if self.model.chosen:
            self.model.open(self.model.chosen)

    def _on_vary(self) -> None:
        self.model.vary(self.model.chosen)

    def _on_fit(self) -> None:
        self._open_fit(self.model.chosen)

    def _on_remove(self) -> None:
        self.model.remove(self.model.chosen)

    def _on_export(self) -> None:
        export_dialog(self, self.model, self.model.chosen)

    def _on_import(self) -> None:
        import_dialog(self, self.model)

    def _on_pending_import(self) -> None:
        waits = self.model.pending_import
        if waits is not None:
            kind = ImportDialog if waits.needed is None else ImportConsentDialog
            kind(self, self.model, waits).open()
