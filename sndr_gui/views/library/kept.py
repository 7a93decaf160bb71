"""Downloads under way and paused, and deleted models that can come back."""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.library import TrashedModel, UnfinishedDownload
from sndr_gui.kit import formats
from sndr_gui.models.library.page import LibraryModel
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import clear, show_part


class KeptCard(Card):
    """The downloads and deleted models; hidden where there are none."""

    def __init__(self, model: LibraryModel) -> None:
        super().__init__(tr("Downloads and deleted models"))
        self._model = model
        self._views: dict[str, JobView] = {}
        self._waiting: object = None
        self.jobs, self.waiting = QWidget(), QWidget()
        for part in (self.jobs, self.waiting):
            lines = QVBoxLayout(part)
            lines.setContentsMargins(0, 0, 0, 0)
            lines.setSpacing(10)
            self.body.addWidget(part)

    def refresh(self) -> None:
        """Show what is known now."""
        model = self._model
        jobs, downloads, trash = model.jobs, model.downloads, model.trash
        show_part(self, bool(jobs or downloads or trash))
        self._show_jobs(jobs)
        shown = (downloads, trash, model.connected)
        if shown != self._waiting:
            self._waiting = shown
            self._show_waiting(downloads, trash)

    def _show_jobs(self, jobs: tuple[Job, ...]) -> None:
        lines = self.jobs.layout()
        assert lines is not None
        if list(self._views) != [job.id for job in jobs]:
            clear(lines)
            self._views = {}
            for job in jobs:
                view = self._views[job.id] = JobView(job.title, dismiss=True, cancel=self._verb(job))
                view.cancel.clicked.connect(partial(self._on_pause, job.id))
                lines.addWidget(view)
        for job in jobs:
            self._views[job.id].show_job(job, False)

    def _verb(self, job: Job) -> str:
        return tr("Pause") if job.kind is JobKind.MODEL_DOWNLOAD else tr("Cancel")

    def _on_pause(self, job_id: str, _down: bool = False) -> None:
        job = self._model.session.state.jobs.get(job_id)
        if job is not None:
            self._model.pause(job)

    def _show_waiting(
        self, downloads: tuple[UnfinishedDownload, ...], trash: tuple[TrashedModel, ...]
    ) -> None:
        lines = self.waiting.layout()
        assert lines is not None
        clear(lines)
        for one in downloads:
            for widget in self._paused(one):
                lines.addWidget(widget)
        for gone in trash:
            for widget in self._gone(gone):
                lines.addWidget(widget)
        if trash:
            made = button(
                tr("Delete for good"),
                self._model.empty_trash,
                icon="trash-2",
                hint=tr("Delete what was deleted for good, which frees the disk"),
                command="sndr models empty",
            )
            made.setEnabled(self._model.connected)
            lines.addWidget(Flow(made))

    def _paused(self, one: UnfinishedDownload) -> tuple[QWidget, ...]:
        name = f"{one.asked.repository} {one.label}"
        said = tr(
            "{name}: {size} of {size_2}, paused.",
            name=name,
            size=formats.size(one.here),
            size_2=formats.size(one.size),
        )
        if one.problem is not None:
            said += f" {formats.strip_backticks(one.problem.sentence())}"
        again = button(tr("Go on"), partial(self._model.go_on, one), icon="play", command=one.command)
        again.setAccessibleName(tr("Go on with {name}", name=name))
        give_up = button(
            tr("Give up"),
            partial(self._model.discard, one),
            hint=tr("Remove what came of it"),
            command=f"sndr models discard {one.id}",
        )
        give_up.setAccessibleName(tr("Give up {name}", name=name))
        for made in (again, give_up):
            made.setEnabled(self._model.connected)
        return text(said, wrap=True), Flow(again, give_up)

    def _gone(self, gone: TrashedModel) -> tuple[QWidget, ...]:
        left = formats.duration(max(0.0, gone.gone_at - time.time()))
        said = tr(
            "{model} is deleted ({size}), and gone for good in {left}.",
            model=gone.model,
            size=formats.size(gone.size),
            left=left,
        )
        back = button(
            tr("Restore"),
            partial(self._model.restore, gone.id),
            icon="undo-2",
            command=f"sndr models restore {gone.id}",
        )
        back.setAccessibleName(tr("Restore {model}", model=gone.model))
        back.setEnabled(self._model.connected)
        return text(said, "muted", wrap=True), Flow(back)
