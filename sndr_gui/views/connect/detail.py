"""One client: its state, what is done with it, its settings to copy, and its probe."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.connect.words import OUTCOMES, STATES
from engine_host.protocol.endpoint.connect import ClientSettings, FileDifference, ProbeOutcome, ProbeStep
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.models.connect.page import TONES, ConnectModel
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import badge, set_text, set_tone, text
from sndr_gui.views.widgets.layout import GAP, clear, column, row, show_part
from sndr_gui.views.widgets.problems import ProblemBox

_OUTCOME_TONES = {
    ProbeOutcome.PASSED: "good",
    ProbeOutcome.FAILED: "bad",
    ProbeOutcome.UNCLEAR: "warn",
    ProbeOutcome.SKIPPED: "muted",
}
_WORKING = {
    "reading": tr("reading…"),
    "writing": tr("writing…"),
    "undoing": tr("undoing…"),
    "probing": tr("probing…"),
}


class ClientDetail(QWidget):
    """Shows the client that is chosen."""

    def __init__(self, model: ConnectModel, open_launch: Callable[[], None]) -> None:
        super().__init__()
        self.model = model
        self._built: tuple[str, ClientSettings | None] | None = None
        self._shown_steps: tuple[ProbeStep, ...] = ()
        self.state = badge("")
        self.card = Card(" ", self.state)
        self.where = text("", "muted", wrap=True)
        self.impossible = text("", wrap=True)
        self.problem = ProblemBox()
        self.launch = button(tr("Open Launch"), open_launch, kind="primary", icon="rocket")
        self.write = button(tr("Write it for me"), model.propose, kind="primary", icon="check")
        self.undo = button(tr("Undo"), model.undo, icon="undo-2")
        self.probe = button(tr("Probe"), model.probe, icon="activity")
        self.done = text("", "good", wrap=True)
        self.command = CopyField("", tr("equivalent command"), wraps=True)
        for part in (self.where, self.impossible, self.problem):
            self.card.body.addWidget(part)
        self.card.body.addLayout(row(self.launch, self.write, self.undo, self.probe, None))
        self.card.body.addWidget(self.done)
        self.card.body.addWidget(self.command)
        self.steps = Card(tr("Probe"))
        self._step_lines = QVBoxLayout()
        self._step_lines.setSpacing(6)
        self.steps.body.addLayout(self._step_lines)
        self.settings = Card(tr("Settings"))
        self._lines = QVBoxLayout()
        self._lines.setSpacing(8)
        self.settings.body.addLayout(self._lines)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(GAP)
        for card in (self.card, self.steps, self.settings):
            outer.addWidget(card)

    def refresh(self) -> None:
        """Show what is known now."""
        model, entry = self.model, self.model.entry
        show_part(self, entry is not None)
        if entry is None:
            return
        set_text(self.card.title, entry.title)
        working = _WORKING.get(model.working, "") if model.working else ""
        set_text(self.state, working or STATES[entry.state])
        set_tone(self.state, "accent" if working else TONES.get(entry.state, ""))
        places = [entry.address or "", *entry.files]
        set_text(self.where, "\n".join(filter(None, places)))
        self.where.setVisible(bool(self.where.text()))
        set_text(self.impossible, model.impossible)
        self.impossible.setVisible(bool(model.impossible))
        self._refresh_problem()
        ready = model.facts is not None and not model.impossible
        idle = not model.working
        self.write.setVisible(ready and entry.writable)
        self.write.setEnabled(idle)
        self.undo.setVisible(entry.undo)
        self.undo.setEnabled(idle)
        loses = model.undoing_loses
        self.undo.setText(tr("Undo anyway") if loses else tr("Undo"))
        yes, what = " --yes" if loses else "", tr("Put the old file back")
        if loses:
            what = tr("Put the old file back; what stands there now is kept beside it")
        self.probe.setVisible(ready)
        self.probe.setEnabled(idle)
        self.write.setToolTip(tip(tr("Look at the changes, then write"), command=model.command("--write")))
        undoing = f"sndr connect {entry.name} --undo{yes}"
        self.undo.setToolTip(tip(what, command=undoing))
        self.probe.setToolTip(tip(tr("Try it as the client does"), command=model.command("--probe")))
        self.command.set_content(model.command())
        done = model.done if model.done is not None and model.done.client == entry.name else None
        set_text(self.done, "\n".join(self._done_lines()) if done is not None else "")
        self.done.setVisible(bool(self.done.text()))
        self._refresh_steps()
        self._refresh_settings()

    def _refresh_problem(self) -> None:
        model, entry = self.model, self.model.entry
        own = model.problems.get(model.chosen) or (entry.problem if entry is not None else None)
        missing = None if model.impossible else model.missing
        problem = own or missing
        self.problem.setVisible(problem is not None)
        self.launch.setVisible(missing is not None)
        if problem is not None:
            self.problem.set_severity("error" if own is not None else "info")
            difference = problem.evidence.get("difference")
            lines = tuple(str(difference).splitlines()) if difference else ()
            self.problem.show_problem(problem, lines)

    def _done_lines(self) -> list[str]:
        done = self.model.done
        if done is None:
            return []
        if not done.files:
            return [tr("It was as before already.") if self.model.undone else tr("It is set up already.")]
        if self.model.undone:
            return [_taken_back(file) for file in done.files]
        return [
            tr("Written: {path} (before: {backup})", path=file.path, backup=file.backup)
            if file.backup
            else tr("Written: {path}", path=file.path)
            for file in done.files
        ]

    def _refresh_steps(self) -> None:
        model = self.model
        steps = model.steps if model.probed == model.chosen else ()
        self.steps.setVisible(bool(steps) or (model.working == "probing" and model.probed == model.chosen))
        if steps == self._shown_steps:
            return
        self._shown_steps = steps
        clear(self._step_lines)
        for step in steps:
            took = "" if step.seconds is None else formats.duration(step.seconds)
            mark = badge(OUTCOMES[step.outcome], _OUTCOME_TONES[step.outcome])
            self._step_lines.addLayout(row(mark, text(step.name), None, text(took, "muted")))
            self._step_lines.addWidget(text(step.detail, "muted", wrap=True))
            if step.problem is not None and step.problem.fix is not None:
                self._step_lines.addWidget(text(step.problem.fix.text, wrap=True))

    def _refresh_settings(self) -> None:
        settings = self.model.settings
        self.settings.setVisible(settings is not None)
        if self._built == (self.model.chosen, settings):
            return
        self._built = (self.model.chosen, settings)
        clear(self._lines)
        if settings is None:
            return
        for warning in settings.warnings:
            box = ProblemBox("warning")
            box.show_sentence(warning)
            self._lines.addWidget(box)
        facts = tr(
            "{model}  ·  context {context} tokens, answers up to {max_output}",
            model=settings.model,
            context=formats.number(settings.context),
            max_output=formats.number(settings.max_output),
        )
        self._lines.addWidget(text(facts, "muted", wrap=True))
        for field in settings.fields:
            self._lines.addLayout(
                column(text(field.caption, "muted"), CopyField(field.value, field.caption), spacing=2)
            )
        for one in settings.texts:
            self._lines.addWidget(text(one.place, "muted", wrap=True))
            self._lines.addWidget(
                CopyField(one.text, tr("settings for {place}", place=one.place), wraps=True)
            )
        for note in settings.notes:
            self._lines.addWidget(text(formats.strip_backticks(note), "muted", wrap=True))


def _taken_back(file: FileDifference) -> str:
    """Say what became of a file that was written before."""
    if file.backup:
        values = {"path": file.path, "backup": file.backup}
        return (
            tr("Removed: {path} (what stood there: {backup})", **values)
            if file.removed
            else tr("Put back: {path} (what stood there: {backup})", **values)
        )
    return tr("Removed: {path}", path=file.path) if file.removed else tr("Put back: {path}", path=file.path)
