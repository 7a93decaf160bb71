"""The doctor: why is this slow, and why did it fail."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QVBoxLayout

from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from sndr_gui.models.doctor.page import DoctorModel
from sndr_gui.models.doctor.words import SPANS, missing_word
from sndr_gui.views.doctor.causes import Causes
from sndr_gui.views.doctor.failure import FailureCard
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card, EmptyState
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.problems import Findings, ProblemBox

_ABOUT = tr(
    "Start an engine and ask it something: the queue, the KV cache, prompts that "
    "are read twice, refused drafts, heat and power of GPUs, processors and memory "
    "are measured and judged here. When a start fails, the reason stands here, "
    "with the lines of the log that tell it and what to do."
)


class DoctorView(Page):
    """The page of the doctor; `go` opens another page, `open_log` the log of an engine at its failure."""

    def __init__(
        self,
        model: DoctorModel,
        go: Callable[[str], object],
        open_log: Callable[[str], object],
        apply_fix: Callable[[Problem | Finding], object],
    ) -> None:
        super().__init__(tr("Doctor"), scrolls=True)
        self.model = model
        self.again = button(
            tr("Look again"),
            model.read,
            icon="refresh-cw",
            hint=tr("Judge what was measured until now"),
            command="sndr doctor",
        )
        self.tools.addWidget(self.again)
        self.problem = ProblemBox()
        self.no_gpu = Findings(lambda _finding: None, lambda _fix: False)
        self.no_gpu.hide()
        self.engine = ChoiceBox(tr("Engine to examine"))
        self.engine.setMinimumWidth(160)
        self.engine.activated.connect(self._on_engine)
        self.span = ChoiceBox(tr("Time to look back"))
        for box in (self.engine, self.span):
            box.setSizeAdjustPolicy(ChoiceBox.SizeAdjustPolicy.AdjustToContents)
        self.span.fill(SPANS, model.minutes)
        self.span.activated.connect(self._on_span)
        self.busy = text("", "muted", wrap=True)
        self.verdict = text("", wrap=True)
        self.causes = Causes(go)
        self.not_measured = text("", "muted", wrap=True)
        self.command = CopyField(model.command, tr("the command that says the same"))
        self.slow = Card(tr("Why is this slow?"))
        for part in (
            Flow(self.engine, self.span),
            self.busy,
            self.verdict,
            self.causes,
            self.not_measured,
            self.command,
        ):
            self.slow.body.addWidget(part)
        self.failure = FailureCard(model, open_log, apply_fix)
        self.empty = EmptyState(
            "first-aid",
            tr("Nothing to examine yet"),
            _ABOUT,
            CopyField("sndr run --demo", tr("the command that starts one")),
            button(
                tr("Open Launch"),
                lambda: go("launch"),
                icon="rocket",
                kind="primary",
                command="sndr run MODEL",
            ),
        )
        lines = QVBoxLayout()
        for card in (self.problem, self.slow, self.failure, self.no_gpu):
            lines.addWidget(card)
        self.body.addLayout(lines)
        self.body.addWidget(self.empty)
        self.body.addStretch(1)
        model.changed.connect(self.refresh)
        self.refresh()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)

    def _on_engine(self, _place: int) -> None:
        self.model.choose(str(self.engine.currentData()))

    def _on_span(self, _place: int) -> None:
        self.model.set_minutes(float(self.span.currentData()))

    def refresh(self) -> None:
        """Show what is known now."""
        model = self.model
        set_text(self.subtitle, model.subtitle)
        self.again.setEnabled(model.connected and not model.reading)
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        nothing = model.knows_nothing
        self.empty.setVisible(nothing)
        self.slow.setVisible(not nothing)
        self._refresh_slow()
        self.failure.refresh()

    def _refresh_slow(self) -> None:
        model, found = self.model, self.model.found
        chosen = model.chosen
        self.engine.fill(model.choices, chosen.id if chosen is not None else "")
        set_text(self.busy, "\n".join(model.busy_words()) if found is not None else tr("Looking…"))
        verdict = model.verdict()
        self.verdict.setVisible(bool(verdict))
        set_text(self.verdict, verdict)
        no_gpu = found.no_gpu if found is not None else None
        self.no_gpu.show_findings((no_gpu,) if no_gpu is not None else ())
        self.causes.show_causes(found.causes if found is not None else ())
        missing = found.not_measured if found is not None else ()
        instead = found.instead if found is not None else None
        self.not_measured.setVisible(bool(missing))
        set_text(
            self.not_measured,
            "\n".join(
                [
                    tr(
                        "Could not be judged, as it was not measured: {missing}.",
                        missing="; ".join(map(missing_word, missing)),
                    ),
                    *(() if instead is None else (instead.text, f"$ {instead.command}")),
                ]
            ),
        )
        self.command.set_content(model.command)
