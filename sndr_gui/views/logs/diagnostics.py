"""The dialog of a bug report: every file with its text, before it is saved."""

from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QListWidget, QPlainTextEdit, QSplitter, QVBoxLayout, QWidget

from engine_host.client import Folders
from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.models.logs.diagnostics import DiagnosticsModel
from sndr_gui.views.widgets.buttons import button, keep_to_paths
from sndr_gui.views.widgets.copying import CopyButton, CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row

_ABOUT = tr(
    "For a bug report: versions, settings, machine, starts, patches, the ends of "
    "logs, events and the last ten minutes of measurements. Keys, names of people "
    "and machines, addresses and your home folder are taken out; prompts and "
    "answers are in none of it."
)


class DiagnosticsDialog(Dialog):
    """Shows the files of a report, and saves them as one."""

    def __init__(
        self,
        parent: QWidget,
        model: DiagnosticsModel,
        title: str = tr("Save diagnostics"),
        about: str = _ABOUT,
        first: str = "",
    ) -> None:
        """`first` begins the name of the file that is shown first."""
        super().__init__(parent, title)
        self._first = first
        self.resize(860, 560)
        self.model = model
        self.files = QListWidget()
        self.files.setAccessibleName(tr("Files of the report"))
        self.files.setMinimumWidth(230)
        self.shown = QPlainTextEdit()
        self.shown.setReadOnly(True)
        self.shown.setAccessibleName(tr("Text of the chosen file"))
        self.shown.setFont(theme.mono_font(11))
        self.shown.setTabChangesFocus(True)
        self.state = text("", "muted", wrap=True)
        self.save = button(
            tr("Save…"),
            self._on_save,
            kind="primary",
            hint=tr("Choose where the file goes"),
            command=model.command,
        )
        both = QSplitter()
        both.addWidget(self.files)
        both.addWidget(self.shown)
        both.setStretchFactor(1, 1)
        both.setChildrenCollapsible(False)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(text(title, name="h2", wrap=True))
        lines.addWidget(text(about, "muted", wrap=True))
        lines.addWidget(both, 1)
        lines.addWidget(self.state)
        lines.addWidget(CopyField(model.command, tr("equivalent command")))
        self.copied = CopyButton(tr("the text that is shown"), tr("Copy"))
        self.folder = button(tr("Open folder"), self._on_folder, hint=tr("Open the folder of the logs"))
        keep_to_paths(self.folder, model.session.host)
        lines.addLayout(row(self.copied, self.folder, None, button(tr("Close"), self.reject), self.save))
        self.files.currentRowChanged.connect(self._on_file)
        model.changed.connect(self.refresh)
        model.saved.connect(self.accept)
        self.refresh()
        model.load()

    def refresh(self) -> None:
        titles = self.model.titles()
        if len(titles) != self.files.count():
            self.files.clear()
            self.files.addItems(titles)
            found = (
                place for place, title in enumerate(titles) if self._first and title.startswith(self._first)
            )
            self.files.setCurrentRow(next(found, 0))
            self.files.setFocus()
        self.save.setEnabled(bool(titles) and not self.model.saving)
        set_text(self.state, self.model.sentence)

    def _on_file(self, place: int) -> None:
        self.shown.setPlainText(self.model.text(place))
        self.copied.set_content(self.model.text(place))

    def _on_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(Folders.resolve().logs)))

    def _on_save(self) -> None:
        if (bundle := self.model.bundle) is None:
            return
        dialog = QFileDialog(
            self, tr("Save diagnostics"), str(Path.home() / bundle.file_name), tr("Zip (*.zip)")
        )
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        # One that is there is left as it is, so nobody is asked to replace it.
        dialog.setOption(QFileDialog.Option.DontConfirmOverwrite)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.model.save)
        dialog.open()
