"""The question before the window takes running engines along, whose answer is remembered when asked to."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.host.notices import Notices
from sndr_gui.kit.settings import OnClose
from sndr_gui.models.window.close_confirmation import CloseConfirmation
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row


def leave(
    window: QWidget, confirmation: CloseConfirmation, notices: Notices, close: Callable[[], object]
) -> None:
    """Close the window, or ask first what becomes of the engines that run."""
    app = QGuiApplication.instance()
    if isinstance(app, QGuiApplication) and app.isSavingSession():
        # A log-out waits for nobody.
        close()
    elif not confirmation.ending or confirmation.choice is OnClose.END:
        if question := confirmation.question():
            notices.warning("close", question, action_text=tr("Close anyway"), action=close)
        else:
            close()
    elif confirmation.choice is OnClose.KEEP:
        confirmation.keep(close)
    elif not any(one.isVisible() for one in window.findChildren(LeaveDialog)):
        LeaveDialog(window, confirmation, close).open()


class LeaveDialog(Dialog):
    """Asks whether engines stay when the window closes, and whether that holds from now on."""

    def __init__(self, parent: QWidget, confirmation: CloseConfirmation, close: Callable[[], object]) -> None:
        super().__init__(parent, tr("Close the window"))
        self._confirmation, self._close = confirmation, close
        self.remember = QCheckBox(tr("Do so from now on; Settings changes it"))
        self.remember.setAccessibleName(tr("Do so from now on"))
        self.stay = button(tr("Stay"), self.reject, hint=tr("Close nothing"))
        self.end = button(
            tr("Stop and close"), self._on_end, kind="danger", hint=tr("End them with the window")
        )
        self.keep = button(
            tr("Keep running"),
            self._on_keep,
            kind="primary",
            hint=tr("Close the window; host, engines and endpoint go on until they are stopped"),
            command="sndr quit",
        )
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        lines.addWidget(
            text(tr("{ending} would end with this window", ending=confirmation.ending), name="h2", wrap=True)
        )
        if confirmation.others:
            lines.addWidget(text(confirmation.others, "warn", wrap=True))
        about = tr("Kept running, editors go on using it; a later window finds it, and `sndr quit` ends all.")
        lines.addWidget(text(about.replace("`", ""), "muted", wrap=True))
        lines.addWidget(self.remember)
        lines.addLayout(row(None, self.stay, self.end, self.keep))
        self.keep.setFocus()

    def _answer(self, choice: OnClose) -> None:
        if self.remember.isChecked():
            self._confirmation.remember(choice)
        self.accept()

    def _on_keep(self) -> None:
        self._answer(OnClose.KEEP)
        self._confirmation.keep(self._close)

    def _on_end(self) -> None:
        self._answer(OnClose.END)
        self._close()
