"""Logs: one text of the newest 10,000 lines, with filters above."""

from PySide6.QtCore import QTimer
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPlainTextEdit, QStackedWidget

from engine_host.protocol.base import Severity
from engine_host.protocol.language import tr
from engine_host.protocol.logs import LogLine
from sndr_gui.kit import formats, theme
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.logs.page import KEPT, LogsModel, line_text
from sndr_gui.models.window.throttle import Throttle
from sndr_gui.views.graphs.time_bar import TimeBar
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import EmptyState
from sndr_gui.views.widgets.copying import CopyField, copy
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import set_text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.page import Page

_LEVELS = (
    (tr("All levels"), Severity.INFO),
    (tr("Warnings"), Severity.WARNING),
    (tr("Errors"), Severity.ERROR),
)


class LogsView(Page):
    """The page of log lines."""

    def __init__(self, model: LogsModel) -> None:
        super().__init__(tr("Logs"))
        self.model = model
        self.sources = ChoiceBox(tr("Source"))
        self.sources.setMinimumWidth(150)
        self.sources.setMaximumWidth(260)
        self.levels = ChoiceBox(tr("Level"))
        for name, _level in _LEVELS:
            self.levels.addItem(name)
        self.search = QLineEdit()
        self.search.setPlaceholderText(tr("Search  ({keys})", keys=keys("filter")))
        self.search.setAccessibleName(tr("Search the log"))
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(150)
        self.follow = QCheckBox(tr("Follow"))
        self.follow.setChecked(True)
        self.follow.setToolTip(tr("Stay at the newest line"))
        self.copy = button(
            tr("Copy"), self._on_copy, icon="copy", hint=tr("Copy the lines shown, or the selection")
        )
        self.lines = QPlainTextEdit()
        self.lines.setReadOnly(True)
        self.lines.setAccessibleName(tr("Log lines"))
        self.lines.setMaximumBlockCount(KEPT)
        self.lines.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.lines.setFont(theme.mono_font(12))
        self.lines.setUndoRedoEnabled(False)
        self._empty = EmptyState("terminal", tr("No lines"), tr("No line matches the filters."))
        self._stack = QStackedWidget()
        self._stack.addWidget(self.lines)
        self._stack.addWidget(self._empty)
        self._equivalent_command = CopyField(model.command(), tr("equivalent command"))
        self._equivalent_command.setFixedWidth(260)
        self.diagnostics = button(
            tr("Save diagnostics…"), self._on_diagnostics, icon="download", command="sndr diagnostics"
        )
        self.tools.addWidget(self.diagnostics)
        self.tools.addWidget(self._equivalent_command)
        tools = row(self.sources, self.levels, self.search, self.follow, self.copy, spacing=10)
        tools.setStretch(2, 1)
        self.body.addLayout(tools)
        self.time = TimeBar(model.past, self)
        self.time.place_beside_words()
        self.body.addWidget(self.time)
        self.body.addWidget(self._stack, 1)
        self._waiting: list[LogLine] = []
        self._count = 0
        # Lines may come by the hundred a second; they are drawn ten times a second.
        self._throttle = Throttle(self, 100, self._draw_waiting)
        self._typed = QTimer(self)
        self._typed.setSingleShot(True)
        self._typed.setInterval(150)
        self._typed.timeout.connect(self._on_search)
        self.search.textChanged.connect(self._typed.start)
        self.sources.currentIndexChanged.connect(self._on_source)
        self.levels.currentIndexChanged.connect(self._on_level)
        self.follow.toggled.connect(self._on_follow)
        model.reset.connect(self._redraw)
        model.appended.connect(self._on_appended)
        model.sources_changed.connect(self._fill_sources)
        model.revealed.connect(self._on_revealed)
        theme.notifier.changed.connect(self._on_theme)
        self._fill_sources()
        self._redraw()

    def focus_filter(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)

    def _fill_sources(self) -> None:
        wanted = [(tr("All sources"), "")] + [
            (self.model.source_title(name), name) for name in self.model.sources
        ]
        if self.model.source and self.model.source not in self.model.sources:
            wanted.append((self.model.source_title(self.model.source), self.model.source))
        self.sources.blockSignals(True)
        self.sources.clear()
        for title, name in wanted:
            self.sources.addItem(title, name)
        self.sources.setCurrentIndex(max(0, self.sources.findData(self.model.source)))
        self.levels.setCurrentIndex([level for _, level in _LEVELS].index(self.model.severity))
        self.sources.blockSignals(False)
        if not self._typed.isActive() and self.search.text().casefold() != self.model.search:
            self.search.setText(self.model.search)
            # It is what the model searches for already.
            self._typed.stop()
        self._equivalent_command.set_content(self.model.command())

    def _on_source(self) -> None:
        self.model.set_filters(source=self.sources.currentData() or "")
        self._equivalent_command.set_content(self.model.command())

    def _on_level(self, place: int) -> None:
        self.model.set_filters(severity=_LEVELS[place][1])
        self._equivalent_command.set_content(self.model.command())

    def _on_search(self) -> None:
        self.model.set_filters(search=self.search.text())

    def _on_follow(self, follow: bool) -> None:
        if follow:
            self._to_end()

    def _on_theme(self) -> None:
        self.lines.setFont(theme.mono_font(12))
        self._redraw()

    def _redraw(self) -> None:
        self._waiting.clear()
        self.lines.clear()
        self._count = 0
        self._write(self.model.shown())

    def _on_appended(self, lines: list[LogLine]) -> None:
        self._waiting.extend(lines)
        self._throttle.trigger()

    def _draw_waiting(self) -> None:
        lines, self._waiting = self._waiting[-KEPT:], []
        self._write(lines)

    def _write(self, lines: list[LogLine]) -> None:
        with_source = not self.model.source
        colours = {
            Severity.INFO: theme.color("text"),
            Severity.WARNING: theme.color("warn"),
            Severity.ERROR: theme.color("bad"),
        }
        bar = self.lines.verticalScrollBar()
        before = bar.value()
        cursor = QTextCursor(self.lines.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.beginEditBlock()
        run: list[str] = []
        colour: QColor = colours[Severity.INFO]
        for line in lines:
            if colours[line.severity] != colour:
                self._insert(cursor, run, colour)
                run, colour = [], colours[line.severity]
            run.append(line_text(line, self.model.source_label(line.source) if with_source else ""))
        self._insert(cursor, run, colour)
        cursor.endEditBlock()
        if self.follow.isChecked():
            self._to_end()
        else:
            bar.setValue(before)
        total = len(self.model.lines)
        shown = formats.plural(self._count, "line")
        if self._count < total:
            shown = tr("{lines} of {total}", lines=shown, total=total)
        set_text(
            self.subtitle,
            tr("{shown}  ·  the newest {kept} are kept here", shown=shown, kept=formats.number(KEPT)),
        )
        self._stack.setCurrentIndex(0 if self._count else 1)
        set_text(self._empty.sentence, self.model.why_empty)

    def _insert(self, cursor: QTextCursor, run: list[str], colour: QColor) -> None:
        if not run:
            return
        look = QTextCharFormat()
        look.setForeground(colour)
        if self._count:
            cursor.insertBlock()
        cursor.insertText("\n".join(run), look)
        self._count += len(run)

    def _to_end(self) -> None:
        bar = self.lines.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _on_copy(self) -> None:
        chosen = self.lines.textCursor().selectedText().replace("\u2029", "\n")
        copy(chosen or self.lines.toPlainText())
        said = (
            tr("The selection is on the clipboard.")
            if chosen
            else tr("The lines shown are on the clipboard.")
        )
        self.model.session.notices.info("log copy", said)

    def _on_diagnostics(self) -> None:
        # What collects a report is read in when somebody wants one.
        from sndr_gui.models.logs.diagnostics import DiagnosticsModel
        from sndr_gui.views.logs.diagnostics import DiagnosticsDialog

        DiagnosticsDialog(self, DiagnosticsModel(self.model.session)).open()

    def _on_revealed(self, place: int) -> None:
        self.follow.setChecked(False)
        block = self.lines.document().findBlockByNumber(place)
        cursor = QTextCursor(block)
        cursor.select(QTextCursor.SelectionType.LineUnderCursor)
        self.lines.setTextCursor(cursor)
        self.lines.centerCursor()
        self.lines.setFocus()
