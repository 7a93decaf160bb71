"""The dialog of a settings file that is wrong: the line at fault, the diff of a repair, the ways out."""

from __future__ import annotations

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats, theme
from sndr_gui.models.settings.mending import MendingModel
from sndr_gui.views.widgets.buttons import button, keep_to_paths
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.diff_text import DiffView
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row, show_part

_ABOUT = tr(
    "The program goes on: what is right in the file is used, and defaults stand "
    "for the rest. A wrong value of the endpoint brings all of its defaults, so "
    "that nobody is served by mistake. Nothing is written unasked."
)


class MendingCard(Card):
    """Stands on Settings while the file is wrong, and leads to the ways out."""

    def __init__(self, model: MendingModel) -> None:
        self.mend = button(
            tr("Mend…"),
            self._on_mend,
            hint=tr("Open, repair or set aside the file"),
            command=model.command("read_again"),
        )
        self.mend.setAccessibleName(tr("Mend the settings file"))
        super().__init__(tr("The settings file is wrong"), self.mend)
        self.model = model
        self.what = text("", "bad", wrap=True)
        self.place = text("", wrap=True)
        self.place.setFont(theme.mono_font(11))
        self.body.addWidget(self.what)
        self.body.addWidget(self.place)
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the fault of now."""
        problem = self.model.problem
        show_part(self, problem is not None)
        set_text(self.what, formats.strip_backticks(problem.message) if problem is not None else "")
        set_text(self.place, self.model.place)
        self.place.setVisible(bool(self.model.place))

    def _on_mend(self) -> None:
        MendingDialog(self.window(), self.model).open()


class MendingDialog(Dialog):
    """Shows what is wrong, and mends it in the way that a person chooses."""

    def __init__(self, parent: QWidget, model: MendingModel) -> None:
        super().__init__(parent, tr("Settings file"))
        self.resize(720, 480)
        self.model = model
        self.what = text("", wrap=True)
        self.place = text("", "bad", wrap=True)
        self.place.setFont(theme.mono_font(11))
        self.diff = DiffView(
            tr("Changes of a repair"), tr("No repair is known: correct the file, or set it aside.")
        )
        self.refusal = text("", "bad", wrap=True)
        self.edit = button(
            tr("Open the file"), self._on_open, hint=tr("Edit it in the program for such files")
        )
        keep_to_paths(self.edit, model.session.host)
        again, aside, repair = "read_again", "set_aside", "repair"
        self.again = button(
            tr("Read it again"),
            lambda: model.mend(again),
            hint=tr("Read the file again after you edited it"),
            command=model.command(again),
        )
        self.aside = button(
            tr("Set it aside"),
            lambda: model.mend(aside),
            hint=tr("Move the file away, beside its place, and begin anew with the defaults"),
            command=model.command(aside),
        )
        self.repair = button(
            tr("Repair"),
            lambda: model.mend(repair),
            kind="primary",
            hint=tr("Write what is shown here; the file as it was stays beside it"),
            command=model.command(repair),
        )
        self.close_button = button(tr("Later"), self.reject, hint=tr("Leave the file as it is"))
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(text(tr("The settings file is wrong"), name="h2"))
        lines.addWidget(self.what)
        lines.addWidget(self.place)
        lines.addWidget(text(_ABOUT, "muted", wrap=True))
        lines.addWidget(self.diff, 1)
        lines.addWidget(self.refusal)
        lines.addWidget(CopyField(model.command(repair), tr("equivalent command")))
        lines.addLayout(row(self.edit, self.again, None, self.close_button, self.aside, self.repair))
        model.changed.connect(self.refresh)
        model.mended.connect(self.accept)
        self.finished.connect(self._on_closed)
        self.refresh()
        model.look()
        self.close_button.setFocus()

    def _on_closed(self) -> None:
        self.model.changed.disconnect(self.refresh)
        self.model.mended.disconnect(self.accept)

    def refresh(self) -> None:
        """Show what is known now."""
        model = self.model
        set_text(self.what, formats.strip_backticks(model.problem.message) if model.problem else "")
        set_text(self.place, model.place)
        self.place.setVisible(bool(model.place))
        diff = model.found.diff if model.found is not None else ""
        self.diff.show_diff(diff)
        refusal = model.refusal
        set_text(self.refusal, formats.strip_backticks(refusal.sentence()) if refusal else "")
        self.refusal.setVisible(refusal is not None)
        usable = model.session.connection.connected and not model.working
        self.again.setEnabled(usable)
        self.aside.setEnabled(usable)
        self.repair.setEnabled(usable and bool(diff))

    def _on_open(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(self.model.file))
