"""The question before the first start of a preset from somebody else."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.models.window.actions import Actions, PendingConsent
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.demands import DemandList
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row


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
        self._actions.start_with_consent(self._pending)
