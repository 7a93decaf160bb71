"""The notes of a fit report: changes that make it fit, advice, ceilings of speed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Advice, Change, FitReport, Roofline
from sndr_gui.kit import formats
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import SEVERITY_ICONS, IconLabel, badge, text
from sndr_gui.views.widgets.layout import clear, column, row, rule, show_part


def saved_words(change: Change) -> str:
    """Return what a change saves, and whether it is enough."""
    if change.fits:
        return tr("saves {size}, then it fits", size=formats.size(change.saves))
    return tr("saves {size}, not enough alone", size=formats.size(change.saves))


def speed_lines(roofline: Roofline, streams: int, measured: float | None) -> tuple[str, ...]:
    """Return the ceilings in words, and the measured speed beside them where one is measured."""
    lines = []
    if roofline.decode is not None:
        lines.append(tr("At most {rate} for one stream", rate=formats.rate(roofline.decode)))
    if streams > 1 and roofline.decode_all_streams is not None:
        many = formats.plural(streams, "stream")
        lines.append(
            tr(
                "At most {rate} for {many} together",
                rate=formats.rate(roofline.decode_all_streams),
                many=many,
            )
        )
    if roofline.decode_at_depth is not None and roofline.depth:
        lines.append(
            tr(
                "At most {rate} for one stream at {tokens} tokens of context",
                rate=formats.rate(roofline.decode_at_depth),
                tokens=formats.number(roofline.depth),
            )
        )
    if roofline.prefill is not None:
        lines.append(tr("At most {rate} of prefill", rate=formats.rate(roofline.prefill)))
    lines.append(tr("{size} read per step", size=formats.size(roofline.bytes_per_step)))
    lines.append(
        tr("Measured now, all streams: {rate}", rate=formats.rate(measured))
        if measured is not None
        else tr("Not measured here")
    )
    return tuple(lines)


class ChangesCard(Card):
    """The changes that make it fit, the cheapest first; a click applies one."""

    def __init__(self, apply: Callable[[Change], object], can: Callable[[Change], bool]) -> None:
        super().__init__(tr("To make it fit"))
        self._apply, self._can = apply, can
        self._shown: tuple[Change, ...] = ()
        self.buttons: dict[str, QWidget] = {}
        self._lines = QVBoxLayout()
        self._lines.setSpacing(8)
        self.body.addWidget(text(tr("The cheapest first; each on its own."), "muted", wrap=True))
        self.body.addLayout(self._lines)
        self.hide()

    def show_changes(self, changes: tuple[Change, ...]) -> None:
        """Show these changes."""
        show_part(self, bool(changes))
        if changes == self._shown:
            return
        self._shown = changes
        clear(self._lines)
        self.buttons = {}
        for change in changes:
            self._lines.addLayout(self._line(change))

    def _line(self, change: Change) -> QHBoxLayout:
        what = text(change.text, wrap=True)
        saves = text(saved_words(change), "good" if change.fits else "muted", wrap=True)
        parts: list[QWidget] = []
        if self._can(change):
            made = button(
                tr("Apply"), partial(self._on_apply, change), hint=change.text, command=change.option
            )
            made.setAccessibleName(tr("Apply: {text}", text=change.text))
            self.buttons[change.id] = made
            parts.append(made)
        made_line = row(column(what, saves, spacing=1), *parts, spacing=12)
        made_line.setStretch(0, 1)
        return made_line

    def _on_apply(self, change: Change, *_checked: object) -> None:
        self._apply(change)


class AdviceCard(Card):
    """The advisor's rules that apply, the gravest first, each with what shows it."""

    def __init__(self) -> None:
        super().__init__(tr("Advice"))
        self._shown: tuple[Advice, ...] = ()
        self._lines = QVBoxLayout()
        self._lines.setSpacing(10)
        self.body.addLayout(self._lines)
        self.hide()

    def show_advice(self, advice: tuple[Advice, ...]) -> None:
        """Show these rules."""
        show_part(self, bool(advice))
        if advice == self._shown:
            return
        self._shown = advice
        clear(self._lines)
        for number, one in enumerate(advice):
            if number:
                self._lines.addWidget(rule())
            self._lines.addLayout(self._line(one))

    @staticmethod
    def _line(one: Advice) -> QHBoxLayout:
        icon, tone = SEVERITY_ICONS[one.severity.value]
        evidence = text(tr("Evidence: {evidence}", evidence=one.evidence), "muted", wrap=True)
        name = badge(one.id)
        name.setToolTip(tr("The advisor's rule"))
        parts = [text(one.message, wrap=True)]
        if one.fix:
            parts.append(text(one.fix, "accent", wrap=True))
        body = column(*parts, evidence, row(name, None), spacing=3)
        side = column(IconLabel(icon, tone, 18), None)
        made = row(side, body, spacing=12)
        made.setStretch(1, 1)
        return made


class SpeedCard(Card):
    """The ceilings that the hardware sets, beside what is measured."""

    def __init__(self) -> None:
        super().__init__(tr("Speed"))
        self._shown: object = None
        self._lines = QVBoxLayout()
        self._lines.setSpacing(3)
        self.body.addLayout(self._lines)
        self.hide()

    def show_report(self, report: FitReport | None, measured: float | None) -> None:
        """Show the ceilings of a report."""
        roofline = report.roofline if report is not None else None
        show_part(self, roofline is not None)
        known = (roofline, report.streams if report else 0, measured)
        if roofline is None or report is None or known == self._shown:
            return
        self._shown = known
        clear(self._lines)
        for number, line in enumerate(speed_lines(roofline, report.streams, measured)):
            self._lines.addWidget(text(line, "" if number == 0 else "muted", wrap=True))
        if roofline.why:
            why = roofline.why[:1].upper() + roofline.why[1:]
            self._lines.addWidget(text(why, "muted", wrap=True))
        for part in report.corrections:
            starts = formats.plural(part.n, "start")
            self._lines.addWidget(
                text(
                    tr(
                        "Corrected by {starts} here: {part} × {factor}",
                        starts=starts,
                        part=part.part,
                        factor=formats.number(part.factor, ".2f"),
                    ),
                    "muted",
                )
            )
        if report.unknown:
            self._lines.addWidget(
                text(tr("Not known: {unknown}", unknown=", ".join(report.unknown)), "muted", wrap=True)
            )
