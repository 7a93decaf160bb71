"""A line of a setting that is the window's own: caption and help at the left, its control at the right."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QLabel, QLayout, QWidget

from sndr_gui.models.settings.look import WindowEntry
from sndr_gui.views.widgets.copying import SegmentedControl
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import column, row


class OwnLine(QWidget):
    """One setting of the window; `control` takes the focus when somebody is led to it."""

    def __init__(
        self,
        entry: WindowEntry,
        control: QWidget,
        about: QLabel | None = None,
        field: QWidget | QLayout | None = None,
    ) -> None:
        """`about` stands for a help that changes, `field` for a control that is not alone."""
        super().__init__()
        self.entry, self._control = entry, control
        said = about if about is not None else text(entry.help, "muted", wrap=True)
        line: QHBoxLayout = row(column(text(entry.label), said, spacing=2), field or control)
        line.setStretch(0, 1)
        self.setLayout(line)

    @property
    def control(self) -> QWidget:
        """The part that takes the focus; of segments the one that is down."""
        made = self._control
        return made.buttons[made.place] if isinstance(made, SegmentedControl) else made
