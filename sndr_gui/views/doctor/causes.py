"""The causes for which an engine was slow, the gravest first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from engine_host.protocol.bench.diagnosis import SlowCause, SlowReason
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.models.doctor.words import evidence_words, fix_words, remedy_of, title_of
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import badge, text
from sndr_gui.views.widgets.layout import clear, rule, show_part

_GRAVE = 0.5


class Causes(QWidget):
    """A list of causes with their share of the time, their evidence and what would help."""

    def __init__(self, go: Callable[[str], object]) -> None:
        super().__init__()
        self._go = go
        self._shown: tuple[SlowCause, ...] = ()
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(10)
        self.rows: list[CauseRow] = []
        self.hide()

    def show_causes(self, causes: tuple[SlowCause, ...]) -> None:
        """Show these causes; a list that is the same stays, and with it the focus."""
        if causes == self._shown:
            return
        self._shown = causes
        clear(self._lines)
        self.rows = [CauseRow(number, cause, self._go) for number, cause in enumerate(causes, 1)]
        for row in self.rows:
            self._lines.addWidget(rule())
            self._lines.addWidget(row)
        show_part(self, bool(causes))


def _share_of(cause: SlowCause) -> QWidget:
    if cause.share is None:
        return badge(tr("all the time; its cost is not measured"), "warn")
    words = tr("{percent} of the time it worked", percent=formats.percent(cause.share))
    if cause.reason is SlowReason.ROOFLINE:
        return badge(words, "good")
    return badge(words, "bad" if cause.share >= _GRAVE else "warn")


class CauseRow(QFrame):
    """One cause."""

    def __init__(self, number: int, cause: SlowCause, go: Callable[[str], object]) -> None:
        super().__init__()
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(6)
        whose = "" if cause.engine is None else f"  ·  {formats.shortened(cause.engine)}"
        title = text(f"{number}. {title_of(cause)}{whose}", name="h2")
        lines.addWidget(Flow(title, _share_of(cause)))
        lines.addWidget(text(cause.sentence, wrap=True))
        if evidence := evidence_words(cause):
            lines.addWidget(text(evidence, "muted", wrap=True))
        if fix := fix_words(cause):
            lines.addWidget(text(formats.strip_backticks(fix), wrap=True))
        if cause.fix is not None and cause.fix.command:
            lines.addWidget(CopyField(cause.fix.command, tr("the command for cause {number}", number=number)))
        remedy = remedy_of(cause)
        self.open = button(remedy.button, partial(go, remedy.page))
        self.open.setAccessibleName(
            tr(
                "{button} for cause {number}: {title_of}",
                button=remedy.button,
                number=number,
                title_of=title_of(cause),
            )
        )
        lines.addWidget(Flow(self.open))
        self.setAccessibleName(tr("Cause {number}: {sentence}", number=number, sentence=cause.sentence))
