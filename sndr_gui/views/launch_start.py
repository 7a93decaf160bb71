"""The start on Launch: the button, the command line that does the same, the stages, and how it ended."""

import time
from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from engine_host.protocol import EngineState
from sndr_gui import formats
from sndr_gui.launch import LaunchModel
from sndr_gui.views.copying import CommandLine
from sndr_gui.views.parts import Card, Picture, button, row, set_text, text
from sndr_gui.views.problems import ProblemBox
from sndr_gui.views.stages import StageList


class StartCard(Card):
    """Start, what it would replace, the stages of a start under way, and what came of it."""

    def __init__(
        self, model: LaunchModel, open_chat: Callable[[], None], open_log: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._model, self._open_log = model, open_log
        self.start = button("Start", model.start, kind="primary", icon="play", shortcut="Ctrl+Return")
        self.cancel = button("Cancel", model.cancel, hint="Give up this start", command="sndr stop --now")
        self.cancel.setAccessibleName("Cancel the start")
        self._note = text("", "muted", wrap=True)
        self._stages = StageList()
        self.ready_text = text("", "good", wrap=True)
        self.chat = button("Open chat", open_chat, icon="message-square", hint="Talk to the model")
        self.ready = QWidget()
        self.ready.setLayout(row(Picture("circle-check", "good", 18), self.ready_text, self.chat))
        self.failure = ProblemBox()
        self.failure.mended.connect(model.actions.mend)
        self.failure.log_wanted.connect(self._on_log)
        self.failure.log.show()
        self.again = button("Try again", self._on_again, icon="rotate-cw", hint="Start the same again")
        self._again_row = QWidget()
        self._again_row.setLayout(row(self.again, None))
        self.problem = ProblemBox()
        self.problem.mended.connect(model.actions.mend)
        self.twin = CommandLine(what="the command line that does the same", wraps=True)
        self.body.addLayout(row(self.start, self.cancel, self._note))
        for part in (
            self.twin,
            self._stages,
            self.ready,
            self.failure,
            self._again_row,
            self.problem,
        ):
            self.body.addWidget(part)

    def _on_log(self) -> None:
        if (engine := self._model.latest) is not None:
            self._open_log(engine.id)

    def _on_again(self) -> None:
        if (engine := self._model.latest) is not None:
            self._model.actions.relaunch(engine)

    def refresh(self) -> None:
        """Show whether the plan can start, how far its start is, or how it ended."""
        model = self._model
        engine = model.starting
        sending = model.actions.pending("start") or model.actions.pending("relaunch")
        age = f" {formats.duration(time.time() - engine.created_at)}" if engine else ""
        self.start.setText(f"Starting…{age}" if engine or sending else "Start")
        self.start.setEnabled(model.can_start)
        self.start.setToolTip(
            f"Start this plan  (Ctrl+Return)\n{model.plan.command if model.plan else ''}".strip()
        )
        self.twin.setVisible(model.plan is not None)
        self.twin.set_content(model.plan.command if model.plan else "")
        self.cancel.setVisible(engine is not None)
        cancelling = engine is not None and model.actions.pending(f"cancel {engine.job}")
        self.cancel.setEnabled(not cancelling)
        set_text(self._note, self._sentence())
        stages = model.stages(time.time())
        self._stages.setVisible(bool(stages))
        self._stages.show_stages(stages)
        self._refresh_end(bool(sending))
        problem = model.actions.problem
        self.problem.setVisible(problem is not None)
        if problem is not None:
            self.problem.show_problem(problem)

    def _refresh_end(self, sending: bool) -> None:
        latest = self._model.latest
        failed = latest is not None and latest.state is EngineState.FAILED
        self.ready.setVisible(latest is not None and not failed)
        self.failure.setVisible(failed)
        self._again_row.setVisible(failed)
        if latest is None:
            return
        if failed:
            if latest.problem is not None:
                self.failure.show_problem(latest.problem, latest.last_lines)
            else:
                self.failure.show_sentence(f"{latest.name} failed.", "", latest.last_lines)
            self.again.setEnabled(not sending and self._model.session.link.connected)
            return
        took = latest.verified.ready_after if latest.verified else None
        if took is None and latest.ready_at is not None:
            took = latest.ready_at - latest.created_at
        after = f" after {formats.duration(took)}" if took is not None else ""
        set_text(self.ready_text, f"{latest.name}: ready{after}.")

    def _sentence(self) -> str:
        model = self._model
        if not model.session.link.connected:
            return "The engine host is not connected."
        if model.starting is not None:
            return f"{model.starting.name} is being started."
        if model.selected is None:
            return "Choose a model first."
        if model.form_error:
            return model.form_error
        if model.missing is not None:
            return "vLLM has to be installed first."
        if model.planning:
            return "Making the plan…"
        if model.plan is None:
            return "This model cannot be started; the reason stands below."
        if not model.plan.startable:
            return "Something below stops the start."
        return f"Replaces {model.replaces}, which runs now." if model.replaces else "Ready to start."
