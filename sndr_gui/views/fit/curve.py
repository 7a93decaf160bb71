"""The needed memory over the context, against the usable memory; the graph library is loaded late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import FitReport
from sndr_gui.kit import formats
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import show_part

if TYPE_CHECKING:
    from sndr_gui.views.graphs.plots import Curve


class CurveCard(Card):
    """One curve with the room as a line; said in words below for whoever cannot see it."""

    def __init__(self) -> None:
        super().__init__(tr("Needed memory by context, GiB"))
        self.curve: Curve | None = None
        self.note = text("", "muted", wrap=True)
        self._report: FitReport | None = None
        self.body.addWidget(self.note)
        self.body.setSpacing(6)

    def make_curve(self) -> None:
        """Make the graph once its library is there."""
        from sndr_gui.views.graphs.plots import Curve

        if self.curve is None:
            self.curve = Curve(tr("Needed memory by context"))
            self.curve.setFixedHeight(220)
            self.body.insertWidget(1, self.curve)
            self.show_report(self._report)

    def show_report(self, report: FitReport | None) -> None:
        """Show the curve of an answer."""
        self._report = report
        points = report.curve if report else ()
        show_part(self, bool(points))
        if report is None or not points:
            return
        if self.curve is not None:
            gib = 2**30
            self.curve.show_points(
                [point.context for point in points],
                [point.needed / gib for point in points],
                points[-1].room / gib,
                report.context,
            )
        first, last = points[0], points[-1]
        said = tr(
            "The line is the usable memory, {size}. {context} tokens need {size_2}, "
            "{context_2} need {size_3}.",
            size=formats.size(last.room),
            context=formats.number(first.context),
            size_2=formats.size(first.needed),
            context_2=formats.number(last.context),
            size_3=formats.size(last.needed),
        )
        set_text(self.note, said)
