"""Comparisons on Fit: types of the KV cache, contexts against streams, speeds, and what was learnt."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout

from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import FitReport, Verdict
from sndr_gui.kit import formats
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.fit.device_memory import VERDICTS
from sndr_gui.models.fit.figures import bound
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import badge, set_text, set_tone, text
from sndr_gui.views.widgets.layout import clear, show_part

# Short, because there are many; never a colour alone.
_LETTERS = {
    Verdict.FITS: tr("fits"),
    Verdict.TIGHT: tr("tight"),
    Verdict.UNKNOWN: "?",
    Verdict.DOES_NOT_FIT: tr("no"),
    Verdict.CANNOT_RUN: tr("never"),
}


def _right(label: QLabel) -> QLabel:
    label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return label


class KvCard(Card):
    """The types of the KV cache: what a token costs, how far each goes, and whether it fits."""

    def __init__(self) -> None:
        super().__init__(tr("KV cache types"))
        self._shown: object = None
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(7)
        self._grid.setColumnStretch(4, 1)
        self.body.addLayout(self._grid)

    def show_report(self, report: FitReport | None) -> None:
        """Show the types of an answer."""
        # Where nothing fits there is nothing to compare.
        choices = report.kv_choices if report and report.largest_context else ()
        show_part(self, bool(choices))
        known = (choices, report.kv if report else "")
        if known == self._shown or report is None:
            return
        self._shown = known
        clear(self._grid)
        for place, title in enumerate((tr("Type"), tr("Per token"), tr("Longest context"), tr("Here"), "")):
            label = text(title, "muted")
            self._grid.addWidget(_right(label) if place in (1, 2) else label, 0, place)
        for number, choice in enumerate(choices, start=1):
            word, tone = VERDICTS[choice.verdict]
            name = text(choice.kv + (f"  ({tr('chosen')})" if choice.kv == report.kv else ""))
            note = text(choice.note, "muted", wrap=True)
            longest = bound(choice.largest_context)
            cells = (
                name,
                _right(text(formats.size(choice.bytes_per_token))),
                _right(text(longest)),
                badge(word, tone),
                note,
            )
            said = tr(
                "{kv}: {size} per token, {word}",
                kv=choice.kv,
                size=formats.size(choice.bytes_per_token),
                word=word,
            )
            name.setAccessibleName(tr("{said}, longest context {longest}", said=said, longest=longest))
            for place, cell in enumerate(cells):
                self._grid.addWidget(cell, number, place)


class GridCard(Card):
    """The verdict for every pair of context and streams, in words and colours."""

    def __init__(self) -> None:
        super().__init__(tr("Contexts and streams"))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(6)
        self._grid.setVerticalSpacing(6)
        self.cells: dict[tuple[int, int], QLabel] = {}
        hint = tr("All streams at full context; tight: requests may wait for one another.")
        self.body.addWidget(text(hint, "muted", wrap=True))
        self.body.addLayout(self._grid)

    def show_report(self, report: FitReport | None) -> None:
        """Show the grid of an answer."""
        grid = report.grid if report else ()
        show_part(self, bool(grid))
        places = {(cell.context, cell.streams) for cell in grid}
        if places != set(self.cells):
            self._build(places)
        for cell in grid:
            made = self.cells[cell.context, cell.streams]
            many, (word, tone) = formats.plural(cell.streams, "stream"), VERDICTS[cell.verdict]
            said = tr(
                "{many} of {context} tokens: {word}",
                many=many,
                context=formats.number(cell.context),
                word=word,
            )
            set_text(made, _LETTERS[cell.verdict])
            set_tone(made, tone)
            made.setToolTip(plain_tooltip(said))
            made.setAccessibleName(said)

    def _build(self, places: set[tuple[int, int]]) -> None:
        clear(self._grid)
        self.cells.clear()
        contexts = sorted({context for context, _ in places})
        streams = sorted({count for _, count in places})
        self._grid.addWidget(text(tr("Streams"), "muted"), 0, 0)
        for place, context in enumerate(contexts, start=1):
            head = text(formats.number(context), "muted")
            head.setAlignment(Qt.AlignmentFlag.AlignCenter)
            self._grid.addWidget(head, 0, place)
            self._grid.setColumnStretch(place, 1)
        for line, count in enumerate(streams, start=1):
            self._grid.addWidget(_right(text(f"{count}", "muted")), line, 0)
        for context, count in places:
            made = badge("")
            made.setAlignment(Qt.AlignmentFlag.AlignCenter)
            made.setFixedWidth(52)
            self.cells[context, count] = made
            line, place = streams.index(count) + 1, contexts.index(context) + 1
            self._grid.addWidget(made, line, place, Qt.AlignmentFlag.AlignCenter)


class ReportedCard(Card):
    """Speeds that were measured or published for this model, each with machine, version and source."""

    def __init__(self) -> None:
        super().__init__(tr("Published speeds"))
        self._shown: object = None
        self._lines = QVBoxLayout()
        self._lines.setSpacing(6)
        self.body.addLayout(self._lines)

    def show_speeds(self, speeds: tuple[tuple[str, str, str], ...]) -> None:
        """Show these speeds: value, conditions, whose."""
        show_part(self, bool(speeds))
        if speeds == self._shown:
            return
        self._shown = speeds
        clear(self._lines)
        for value, what, whose in speeds:
            self._lines.addWidget(text(value, name="h2"))
            self._lines.addWidget(text(f"{what}  ·  {whose}", "muted", wrap=True))


class KnownCard(Card):
    """The corrections corrected by starts here, and what the model's files do not say."""

    def __init__(self) -> None:
        super().__init__(tr("Accuracy"))
        self._learnt = text("", wrap=True)
        self._unknown = text("", wrap=True)
        self._where = text("", "muted", wrap=True)
        for part in (self._learnt, self._unknown, self._where):
            self.body.addWidget(part)

    def show_report(self, report: FitReport | None) -> None:
        """Show what an answer says of itself."""
        show_part(self, report is not None)
        if report is None:
            return
        learnt = [
            tr(
                "{part} × {factor} from {starts} here",
                part=one.part,
                factor=formats.number(one.factor, ".2f"),
                starts=formats.plural(one.n, "start"),
            )
            for one in report.corrections
        ]
        set_text(
            self._learnt,
            tr("Corrections: {learnt}.", learnt="; ".join(learnt))
            if learnt
            else tr("No corrections: no start of this engine on this hardware has changed an estimate yet."),
        )
        set_text(
            self._unknown,
            tr("Not known: {unknown}.", unknown="; ".join(report.unknown)) if report.unknown else "",
        )
        self._unknown.setVisible(bool(report.unknown))
        sources = {part.source.value for device in report.devices for part in device.parts}
        words = {
            "files": tr("the model's files"),
            "catalogue": tr("the catalogue"),
            "hub": "Hugging Face",
            "formula": tr("formulas"),
            "measured": tr("measurements"),
            "estimate": tr("estimates"),
        }
        set_text(
            self._where,
            tr("Sources: {words}.", words=", ".join(words[one] for one in sorted(sources)))
            if sources
            else "",
        )
