"""The questions that a start waits for, whichever page began it."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit.formats import shortened
from sndr_gui.models.window.actions import Actions, PendingConsent
from sndr_gui.models.window.replacing import Replacement
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.demands import DemandList
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row


def ask(parent: QWidget, actions: Actions) -> None:
    """Open the dialog of what a start waits for."""
    match actions.question:
        case PendingConsent() as pending:
            ConsentDialog(parent, actions, pending).open()
        case Replacement() as asked:
            ReplaceDialog(parent, actions, asked).open()


class ConsentDialog(Dialog):
    """Shows what the start would do beyond harmless settings, and starts when a person wants all of it."""

    def __init__(self, parent: QWidget, actions: Actions, pending: PendingConsent) -> None:
        super().__init__(parent, tr("Start {name}", name=pending.plan.name))
        self.resize(640, 460)
        self._actions, self._pending = actions, pending
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        title = tr(
            "{preset} was not written with this program", preset=pending.plan.preset or pending.plan.name
        )
        lines.addWidget(text(title, name="h2", wrap=True))
        about = tr("It asks for more than harmless settings. Start it only if you want all of this.")
        lines.addWidget(text(about, "muted", wrap=True))
        self.demands = DemandList(pending.needed)
        lines.addWidget(self.demands, 1)
        lines.addWidget(CopyField(pending.command, tr("equivalent command"), wraps=True))
        self.cancel = button(tr("Cancel"), self.reject)
        self.cancel.setDefault(True)
        self.allow = button(tr("Start with all of this"), self._on_allow, kind="danger")
        self.allow.setEnabled(self.demands.complete)
        lines.addLayout(row(None, self.cancel, self.allow))
        self.cancel.setFocus()

    def _on_allow(self) -> None:
        self.accept()
        self._actions.start_agreed(self._pending.plan, self._pending.needed.digest)


class ReplaceDialog(Dialog):
    """Says which engines a start ends and what they are doing; Return and Escape leave them running."""

    def __init__(self, parent: QWidget, actions: Actions, asked: Replacement) -> None:
        plan = asked.plan
        super().__init__(parent, tr("Start {name}", name=plan.name))
        self.setMinimumWidth(520)
        self._actions, self._asked, self._state = actions, asked, actions.state
        title = text(tr("This start ends {names}", names=asked.names), name="h2", wrap=True)
        self.doing = text("", "warn", wrap=True)
        self.both = text(asked.both(self._state), "muted", wrap=True)
        self.both.setVisible(bool(self.both.text()))
        self.cancel = button(tr("Cancel"), self.reject, hint=tr("Start nothing, end nothing"))
        self.cancel.setDefault(True)
        beside = asked.beside or plan
        self.keep = button(
            tr("Keep both, start {name}", name=shortened(beside.name, 24)),
            self._on_keep,
            kind="primary",
            hint=tr("End nothing"),
            command=beside.command,
        )
        self.keep.setVisible(asked.beside is not None)
        self.replace = button(
            tr("End {names} and start", names=shortened(asked.names, 24)),
            self._on_replace,
            kind="danger",
            command=plan.command,
        )
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        for part in (title, self.doing, self.both):
            lines.addWidget(part)
        lines.addWidget(CopyField(plan.command, tr("equivalent command"), wraps=True))
        lines.addLayout(row(None, self.cancel, self.keep, self.replace))
        self._state.request_changed.connect(self._show)
        self._state.engines_changed.connect(self._show)
        self._show()
        self.cancel.setFocus()

    def _show(self, *_changed: object) -> None:
        # Answers end and begin while the question stands.
        set_text(self.doing, "\n".join(self._asked.under_way(self._state)))
        self.setAccessibleDescription(f"{self.doing.text()} {self.both.text()}".strip())

    def _on_replace(self) -> None:
        self.accept()
        self._actions.start_agreed(self._asked.plan)

    def _on_keep(self) -> None:
        self.accept()
        if (beside := self._asked.beside) is not None:
            self._actions.start_agreed(beside)

    def _on_finished(self, result: int) -> None:
        self._state.request_changed.disconnect(self._show)
        self._state.engines_changed.disconnect(self._show)
        super()._on_finished(result)
