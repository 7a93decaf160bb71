"""The demands of a file from somebody else, one below the other, before a person consents to them."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.launch.consents import ConsentNeeded
from sndr_gui.kit import formats
from sndr_gui.views.widgets.copying import WrapAnywhereLabel
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import rule, scrolling

_MOST = 100
_LONGEST = 4_000


class DemandList(QWidget):
    """Shows each demand with its place and what it can do; `complete` where none was left out or cut."""

    def __init__(self, needed: ConsentNeeded) -> None:
        super().__init__()
        shown = needed.demands[:_MOST]
        self.complete = len(shown) == len(needed.demands) and all(len(one.what) <= _LONGEST for one in shown)
        canvas = QWidget()
        lines = QVBoxLayout(canvas)
        lines.setContentsMargins(0, 0, 8, 0)
        lines.setSpacing(4)
        file = ""
        for demand in shown:
            if demand.file != file:
                file = demand.file
                lines.addWidget(text(tr("{file} asks for", file=file), "muted", wrap=True))
            lines.addWidget(rule())
            lines.addWidget(WrapAnywhereLabel(demand.what[:_LONGEST]))
            lines.addWidget(text(demand.does, "" if demand.known else "warn", wrap=True))
            place = (
                demand.key
                if demand.line is None
                else tr("line {line}, {key}", line=demand.line, key=demand.key)
            )
            lines.addWidget(text(place, "muted", wrap=True))
        if not self.complete:
            count = formats.plural(len(needed.demands), "thing")
            sentence = tr(
                "It asks for {count}, which is more than can be shown here. Read the file itself.",
                count=count,
            )
            lines.addWidget(text(sentence, "bad", wrap=True))
        lines.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        area = scrolling(canvas)
        area.setMinimumHeight(180)
        area.setAccessibleName(tr("What it asks for"))
        outer.addWidget(area)
