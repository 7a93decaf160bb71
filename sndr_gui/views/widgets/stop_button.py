"""The Stop button: one click drains and stops; on a busy engine it asks first."""

from collections.abc import Callable

from engine_host.protocol.language import tr
from sndr_gui.kit.formats import shortened
from sndr_gui.kit.shortcuts import keys
from sndr_gui.views.widgets.buttons import Button, tip
from sndr_gui.views.widgets.labels import restyle


class StopButton(Button):
    """Says what a click does now: stop, stop anyway, or nothing because it stops already."""

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__(tr("Stop"))
        self.setAccessibleName(tr("Stop"))
        self.setShortcut(keys("stop"))
        self.show_equivalent_command("sndr stop")
        self.clicked.connect(stop)

    def show_equivalent_command(self, command: str) -> None:
        """Name equivalent command."""
        self.setToolTip(tip(tr("Finish what runs, then stop"), keys("stop"), command))

    def show_state(self, question: str, stopping: bool, connected: bool, name: str = "") -> None:
        """Show the state of the engine; `question` is the label while a second click is waited for.

        `name` tells which engine it is, where several run.
        """
        plain = tr("Stop {name}", name=shortened(name, 16)) if name else tr("Stop")
        label = tr("Stopping…") if stopping else question or plain
        if self.text() != label:
            self.setText(label)
            self.setAccessibleName(label)
            self.setProperty("danger", "true" if question else "")
            restyle(self)
        self.setEnabled(connected and not stopping)
