"""The engine that failed last: its reason, the lines of its log that tell it, and what to do."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtWidgets import QHBoxLayout

from engine_host.protocol.engines import COLD_START, Engine
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from sndr_gui.models.doctor.page import MOST_ENDS, DoctorModel
from sndr_gui.models.doctor.record import RecordModel
from sndr_gui.models.doctor.words import reason_words
from sndr_gui.models.engine.choice import state_word
from sndr_gui.models.engine.start import build_of
from sndr_gui.views.doctor.ends import EarlierEnds
from sndr_gui.views.doctor.record import RecordDialog
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import badge, set_text, text
from sndr_gui.views.widgets.layout import show_part
from sndr_gui.views.widgets.problems import ProblemBox


class FailureCard(Card):
    """Why the last engine failed; a start that only takes its time is said to be well."""

    def __init__(
        self,
        model: DoctorModel,
        open_log: Callable[[str], object],
        apply_fix: Callable[[Problem | Finding], object],
    ) -> None:
        self.reason = badge("", "bad")
        super().__init__(tr("Why did it fail?"), self.reason)
        self._model, self._open_log = model, open_log
        self.cold = ProblemBox("info")
        self.about = text("", "muted", wrap=True)
        self.failure = ProblemBox("error", apply_fix)
        self.failure.log_wanted.connect(self._on_log_wanted)
        self.command = CopyField("", tr("the command that shows the log"))
        self.record = CopyField("", tr("the command that shows what it held and wanted"))
        self.open = button(
            tr("Open record"),
            self._on_open,
            icon="first-aid",
            hint=tr("Show what it held, and what would have saved it"),
        )
        self.earlier = EarlierEnds(MOST_ENDS, self._open_record)
        for part in (self.cold, self.about, self.failure, self.command):
            self.body.addWidget(part)
        told = QHBoxLayout()
        told.addWidget(self.record, 1)
        told.addWidget(self.open)
        self.body.addLayout(told)
        self.body.addWidget(self.earlier)

    def refresh(self) -> None:
        """Show the last start that failed, and those that are under way."""
        failed, starting = self._model.failed, self._model.starting
        show_part(self, not self._model.knows_nothing)
        self.cold.setVisible(bool(starting))
        if starting:
            self.cold.show_sentence("  ".join(map(_progress, starting)), COLD_START)
        for part in (self.reason, self.failure):
            part.setVisible(failed is not None)
        for way in (self.record, self.open):
            way.setVisible(failed is not None and not failed.was_refused)
        self.open.setEnabled(failed is not None and bool(self._model.record_of(failed.id)))
        self.earlier.show_ends(self._model.earlier, self._model.record_of)
        # Where it never had a process there is no log.
        self.command.setVisible(failed is not None and bool(failed.stages))
        if failed is None:
            set_text(self.about, tr("No engine died that this host remembers, and no start has failed."))
            return
        set_text(self.about, self._told(failed))
        self.command.set_content(f"sndr logs {failed.id}")
        self.record.set_content(f"sndr autopsy {failed.id}")
        problem = failed.problem
        set_text(self.reason, tr("ended") if problem is None else reason_words(problem.reason))
        self.failure.show_end(failed)

    def _told(self, failed: Engine) -> str:
        said = tr(
            "{name} ({id}), {build_of}, started {moment}.",
            name=failed.name,
            id=failed.id,
            build_of=build_of(failed),
            moment=_moment(failed.created_at),
        )
        if failed.ended_at is not None:
            said += " " + tr("It ended {moment}.", moment=_moment(failed.ended_at))
        later = self._model.later(failed)
        if later is not None:
            said += " " + tr(
                "It was started again {moment} and is {state_word}.",
                moment=_moment(later.created_at),
                state_word=state_word(later),
            )
        return said

    def _on_open(self) -> None:
        if (failed := self._model.failed) is not None:
            self._open_record(self._model.record_of(failed.id))

    def _open_record(self, record: str) -> None:
        model = RecordModel(self._model.session, record)
        dialog = RecordDialog(self, model, self._open_log)
        model.setParent(dialog)
        dialog.open()

    def _on_log_wanted(self) -> None:
        if (failed := self._model.failed) is not None:
            self._open_log(failed.id)


def _progress(engine: Engine) -> str:
    stage = engine.stages[-1] if engine.stages else None
    if stage is None:
        return tr("{name} is starting and has not failed.", name=engine.name)
    return tr(
        "{name} is starting and has not failed: {stage}, since {moment}.",
        name=engine.name,
        stage=stage.name,
        moment=time.strftime("%H:%M:%S", time.localtime(stage.started_at)),
    )


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
