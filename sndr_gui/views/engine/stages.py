"""The stages of a start with their durations, and the progress of a job."""

import time

from PySide6.QtWidgets import QGridLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.start import StageRow
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import ElidedLabel, IconLabel, set_text, set_tone, text
from sndr_gui.views.widgets.layout import clear, row

_ICONS = {
    "done": ("circle-check", "good"),
    "running": ("loader", "accent"),
    "failed": ("circle-alert", "bad"),
}


class StageList(QWidget):
    """One line a stage: what it is, a detail, and how long it took."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(2, 1)
        self._lines: list[tuple[IconLabel, QLabel, QLabel, QLabel]] = []
        self._shown: tuple[StageRow, ...] = ()

    def show_stages(self, stages: tuple[StageRow, ...]) -> None:
        """Show these stages; the lines stay, so that only what changed is drawn."""
        if stages == self._shown:
            return
        if len(stages) < len(self._shown):
            clear(self._grid)
            self._lines.clear()
        self._shown = stages
        for place, stage in enumerate(stages):
            if place == len(self._lines):
                labels = (
                    IconLabel("loader", "accent", 16),
                    text(""),
                    ElidedLabel("", "muted"),
                    text("", "muted"),
                )
                for number, label in enumerate(labels):
                    self._grid.addWidget(label, place, number)
                self._lines.append(labels)
            picture, name, detail, time = self._lines[place]
            picture.set_icon(*_ICONS[stage.state])
            set_text(name, stage.name)
            set_text(detail, stage.detail)
            set_text(time, stage.time)
            time.setToolTip(plain_tooltip(tr("How long “{name}” took", name=stage.name)))
            time.setAccessibleName(tr("{name} took {time}", name=stage.name, time=stage.time))


class JobView(QWidget):
    """A job: its title, its step, how far it is, and Cancel; or how it ended, with Dismiss if wanted."""

    def __init__(self, what: str, *, dismiss: bool = False, cancel: str = tr("Cancel")) -> None:
        """`cancel` is the word for it: of what goes on later it is Pause."""
        super().__init__()
        self._what, self._dismiss, self._verb = what, dismiss, cancel
        self._title = text("", name="h2", wrap=True)
        self._step = text("", "muted", wrap=True)
        self.command = CopyField(what=tr("the command that fixes it"), wraps=True)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setRange(0, 1000)
        self._bar.setAccessibleName(tr("Progress of the {what}", what=what))
        self.cancel = button(cancel, hint=tr("{cancel} the {what}", cancel=cancel, what=what))
        body = QVBoxLayout(self)
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(8)
        body.addLayout(row(self._title, self.cancel))
        body.addWidget(self._step)
        body.addWidget(self.command)
        body.addWidget(self._bar)

    def show_job(self, job: Job, cancelling: bool) -> None:
        """Show where the job is."""
        set_text(self._title, job.title)
        self.cancel.setVisible(not job.ended or self._dismiss)
        self.cancel.setEnabled(job.ended or not cancelling)
        words = tr("Dismiss") if job.ended else tr("Cancelling…") if cancelling else self._verb
        if self.cancel.text() != words:
            self.cancel.setText(words)
        self.cancel.setAccessibleName(
            tr("{verb} the {what}", verb=tr("Dismiss") if job.ended else self._verb, what=self._what)
        )
        set_text(self._step, formats.strip_backticks(_story(job)))
        set_tone(self._step, "bad" if job.state is JobState.FAILED else "muted")
        fix = job.error.fix if job.error is not None else None
        self.command.set_content((fix.command if fix else None) or "")
        self.command.setVisible(bool(fix and fix.command))
        self._bar.setVisible(not job.ended)
        step = job.step
        if step is None or job.state is JobState.QUEUED:
            self._bar.setRange(0, 1000)
            self._bar.setValue(0)
        else:
            self._bar.setRange(0, 1000)
            self._bar.setValue(round(1000 * step.done))


def _story(job: Job) -> str:
    if job.state is JobState.QUEUED:
        return tr("Waiting for {behind}.", behind=job.behind) if job.behind else tr("Queued.")
    if job.state is JobState.FAILED:
        return job.error.sentence() if job.error else tr("Failed.")
    if job.state is JobState.CANCELLED:
        return " ".join(part for part in (tr("Cancelled."), job.undone, job.left) if part)
    if job.state is JobState.DONE:
        # Its result may be looked at days later.
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(job.ended_at or job.created_at))
        return tr("Done, {when}.", when=when)
    if job.step is None:
        return tr("Starting…")
    detail = f" · {job.step.detail}" if job.step.detail else ""
    share = f" · {formats.percent(job.step.progress)}" if job.step.progress is not None else ""
    return tr(
        "Step {number} of {of}: {name}{detail}{share}",
        number=job.step.number,
        of=job.step.of,
        name=job.step.name,
        detail=detail,
        share=share,
    )
