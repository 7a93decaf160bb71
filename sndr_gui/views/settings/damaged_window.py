"""The window's own settings file that is wrong: what is told at the start, and the ways out."""

from __future__ import annotations

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.host.notices import Notices
from sndr_gui.kit import theme
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row


def tell(window: QWidget, file: SettingsFile, notices: Notices) -> None:
    """Say that the file is wrong; a click leads to the ways out."""
    notices.warning(
        "damaged settings",
        tr("The window's settings are damaged; it started with the usual ones and leaves the file as it is."),
        action_text=tr("Mend…"),
        action=lambda: DamagedSettings(window, file, notices).open(),
    )


class DamagedSettings(Dialog):
    """Opens, repairs or sets aside the file, as a person chooses."""

    def __init__(self, parent: QWidget, file: SettingsFile, notices: Notices) -> None:
        super().__init__(parent, tr("The window's settings"))
        self.resize(560, 0)
        self._file, self._notices = file, notices
        damage = file.damage
        assert damage is not None
        self.what = text("", "bad", wrap=True)
        if damage.line is None:
            set_text(self.what, damage.what)
        else:
            set_text(self.what, tr("Line {line}: {what}", line=damage.line, what=damage.what))
        about = tr(
            "Until then nothing is written there, and what you change holds until the window ends. "
            "A repair keeps what is right in the file. Set aside, it lies beside its place, and a new "
            "one holds the settings of now."
        )
        self.failure = text("", "bad", wrap=True)
        self.failure.hide()
        self.edit = button(
            tr("Open the file"),
            self._on_open,
            hint=tr("Edit it in the program for such files; it is read at the next start"),
        )
        self.aside = button(tr("Set it aside"), lambda: self._mend(False))
        self.repair = button(tr("Repair"), lambda: self._mend(True), kind="primary")
        self.repair.setEnabled(damage.kept is not None)
        self.later = button(tr("Later"), self.reject, hint=tr("Leave the file as it is"))
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(text(tr("The settings file is wrong"), name="h2"))
        lines.addWidget(self.what)
        lines.addWidget(CopyField(str(file.path), tr("the path of the file")))
        lines.addWidget(text(about, "muted", wrap=True))
        lines.addWidget(self.failure)
        lines.addLayout(row(self.edit, None, self.later, self.aside, self.repair))
        self.later.setFocus()

    def _on_open(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._file.path)))

    def _mend(self, repair: bool) -> None:
        try:
            aside = self._file.set_aside(repair)
        except OSError as error:
            set_text(self.failure, tr("The window's settings could not be saved: {error}.", error=error))
            self.failure.show()
            return
        theme.wear(self._file.current.look)
        self._notices.info(
            "damaged settings", tr("The file as it was lies beside it as {name}.", name=aside.name)
        )
        self.accept()
