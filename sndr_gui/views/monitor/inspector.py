"""The inspector: all that is known of one request, its texts as sent and as translated, and its answer."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QGridLayout,
    QLabel,
    QPlainTextEdit,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.models.monitor.capture import MINUTES, CaptureModel
from sndr_gui.models.monitor.inspector import CHANGED, TEXTS, InspectorModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyButton, CopyField, SegmentedControl
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.diff_text import DiffView
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row, scrolling

_HEADERS = tr("Headers")
_TABS = (tr("Figures"), *TEXTS, _HEADERS)
_NOT_KEPT = tr(
    "The texts of this request were not kept. They are kept only while you have "
    "that switched on: in the host's memory, without keys and tokens, never on "
    "disk."
)
_FILTER = tr("JSON (*.json);;All files (*)")


class InspectorDialog(Dialog):
    """Shows one request; texts from outside are shown as text and nothing else."""

    def __init__(self, parent: QWidget, model: InspectorModel, capture: CaptureModel) -> None:
        super().__init__(parent, tr("Request {id}", id=model.request.id))
        self.resize(860, 620)
        self.model = model
        self._capture = capture
        self.tabs = SegmentedControl(_TABS, tr("Part of the request"))
        self.stack = QStackedWidget()
        self._facts: dict[str, QLabel] = {}
        self._grid = QGridLayout()
        self._grid.setColumnStretch(1, 1)
        self._grid.setHorizontalSpacing(16)
        figures = QWidget()
        box = QVBoxLayout(figures)
        box.addLayout(self._grid)
        box.addStretch(1)
        self.stack.addWidget(scrolling(figures))
        self.texts: dict[str, QPlainTextEdit] = {}
        for name in _TABS[1:]:
            shown = DiffView(name, tr("Nothing.")) if name == CHANGED else _PlainText(name)
            self.texts[name] = shown
            self.stack.addWidget(shown)
        for place, chosen in enumerate(self.tabs.buttons):
            chosen.clicked.connect(self._shower(place))
        self._note = text("", "muted", wrap=True)
        self.keep = button(
            tr("Keep texts for {minutes} min", minutes=MINUTES),
            capture.start,
            command=f"sndr requests capture --minutes {MINUTES}",
            hint=tr("Keep the texts of the requests that come from now on"),
        )
        self.curl = CopyButton(tr("as curl"), tr("Copy as curl"))
        self.export = button(
            tr("Export…"),
            self._on_export,
            hint=tr("Write this request to a JSON file that you alone can read"),
            command=f"sndr requests export {model.request.id} -o FILE",
        )
        close = button(tr("Close"), self.reject)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(self.tabs)
        lines.addWidget(self._note)
        lines.addWidget(self.stack, 1)
        lines.addWidget(CopyField(f"sndr requests show {model.request.id}", tr("equivalent command")))
        lines.addLayout(row(self.keep, None, self.curl, self.export, close))
        model.changed.connect(self.refresh)
        capture.changed.connect(self.refresh)
        self.refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.model.load()

    def refresh(self) -> None:
        """Show what the model knows now."""
        model = self.model
        for name, value in model.facts():
            self._show_fact(name, value)
        for name, shown in self.texts.items():
            told_text = model.headers() if name == _HEADERS else model.texts.get(name, "")
            if told_text != shown.toPlainText():
                shown.setPlainText(told_text)
        kept = model.captured is not None
        for place, chosen in enumerate(self.tabs.buttons):
            chosen.setEnabled(kept or place == 0)
        loaded = model.detail is not None
        set_text(self._note, model.problem or (_NOT_KEPT if loaded and not kept else ""))
        self._note.setVisible(bool(self._note.text()))
        self.keep.setVisible(loaded and not kept and not self._capture.on)
        self.curl.set_content(model.curl)
        self.export.setEnabled(kept)

    def _show_fact(self, name: str, value: str) -> None:
        told = self._facts.get(name)
        if told is None:
            line = len(self._facts)
            told = self._facts[name] = text("", wrap=True)
            told.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
            self._grid.addWidget(text(name, "muted"), line, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(told, line, 1)
        set_text(told, value)
        told.setAccessibleName(f"{name}: {value}")

    def _shower(self, place: int) -> Callable[[], None]:
        def show() -> None:
            self.stack.setCurrentIndex(place)

        return show

    def _on_export(self) -> None:
        dialog = QFileDialog(self, tr("Export this request"), f"{self.model.request.id}.json", _FILTER)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.model.export)
        dialog.open()


class _PlainText(QPlainTextEdit):
    """A text to be read and copied."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setAccessibleName(name)
        self.setFont(theme.mono_font(11))
        self.setTabChangesFocus(True)
        self.setPlaceholderText(tr("Nothing."))
