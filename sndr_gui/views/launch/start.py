"""The start on Launch: the bar with the command line and the button, and how the start goes and ended."""

import time
from collections.abc import Callable

from PySide6.QtWidgets import QSizePolicy, QWidget

from engine_host.protocol.engines import EngineState
from engine_host.protocol.language import tr
from sndr_gui.host.connection import Phase
from sndr_gui.kit import formats, measured_by
from sndr_gui.kit.formats import listed
from sndr_gui.kit.shortcuts import keys
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.choice import command_of
from sndr_gui.models.launch.page import LaunchModel, ListKind
from sndr_gui.views.engine.stages import StageList
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import IconLabel, set_text, set_tone, text
from sndr_gui.views.widgets.layout import column, row, show_part
from sndr_gui.views.widgets.problems import ProblemBox

_LONGEST = 300


class StartBar(Card):
    """The start bar, always visible: the equivalent command, what the start would do, and the button."""

    def __init__(self, model: LaunchModel) -> None:
        super().__init__()
        self._model = model
        self.body.setContentsMargins(12, 10, 12, 10)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.start = button(tr("Start"), model.start, kind="primary", icon="play", shortcut=keys("start"))
        self.on_demand = button(tr("On demand"), model.add_on_demand)
        self.on_demand.setAccessibleName(tr("Load it on demand"))
        self.cancel = button(tr("Cancel"), model.watch.cancel)
        self.cancel.setAccessibleName(tr("Cancel the start"))
        self.note = text("", "muted", wrap=True)
        self.remedy = button("", self._on_remedy)
        self.remedy.hide()
        self.equivalent_command = CopyField(what=tr("equivalent command"), wraps=True)
        said = row(self.note, self.remedy)
        said.setStretch(0, 1)
        told = column(self.equivalent_command, said, spacing=4)
        # One above the other: the command line needs the width.
        line = row(told, self.cancel, column(self.start, self.on_demand, spacing=4), spacing=12)
        line.setStretch(0, 1)
        self.body.addLayout(line)

    def refresh(self) -> None:
        """Show whether the plan can start, or how far its start is."""
        model = self._model
        engine = model.watch.starting
        sending = model.actions.starting
        age = f" {formats.duration(time.time() - engine.created_at)}" if engine else ""
        self.start.setText(tr("Starting…{age}", age=age) if model.starts_already or sending else tr("Start"))
        self.start.setEnabled(model.can_start)
        self.equivalent_command.set_content(model.equivalent_command or "sndr launch PRESET")
        self.on_demand.setEnabled(model.can_add_on_demand)
        self.on_demand.setToolTip(
            tip(
                tr("Start nothing now: the first request for it loads it, and it ends when nobody asks"),
                "",
                model.on_demand_command if model.equivalent_command else "",
            )
        )
        self.cancel.setVisible(engine is not None)
        command = command_of(model.session.state, engine, "stop", "--now")
        self.cancel.setToolTip(tip(tr("Cancel this start"), "", command))
        cancelling = engine is not None and model.actions.pending(f"cancel {engine.job}")
        self.cancel.setEnabled(not cancelling)
        sentence, tone = self._sentence()
        set_text(self.note, formats.shortened(sentence, _LONGEST))
        set_tone(self.note, tone)
        planning = model.planning and model.session.connection.connected
        waits = tr("Planning…") if planning else sentence
        what = tr("Start this plan") if model.can_start else waits
        self.start.setToolTip(tip(what, keys("start"), model.equivalent_command))
        remedies = model.room().remedies if model.plan is not None else ()
        self.remedy.setVisible(bool(remedies))
        if remedies:
            self.remedy.setText(remedies[0].label)
            self.remedy.setAccessibleName(remedies[0].label)
            self.remedy.setToolTip(plain_tooltip(tr("{label}: plan it so", label=remedies[0].label)))

    def _on_remedy(self) -> None:
        for remedy in self._model.room().remedies[:1]:
            self._model.apply_remedy(remedy)

    def _sentence(self) -> tuple[str, str]:
        model = self._model
        connection = model.session.connection
        if not connection.connected:
            return connection.sentence, "muted" if connection.phase is Phase.STARTING else "bad"
        if model.watch.starting is not None:
            stages = model.watch.stages(time.time())
            step = f": {stages[-1].name}" if stages else ""
            queued = "" if model.starts_already else ("  " + tr("Another start takes its turn after it."))
            return tr(
                "Starting {name}{step}.{queued}", name=model.watch.starting.name, step=step, queued=queued
            ), "accent"
        if model.subject is None:
            presets = model.presets
            unread = presets.page is None or presets.verdicts is None
            if model.list is ListKind.PRESETS and unread and not presets.sentence:
                return tr("Reading what can be started…"), "muted"
            return tr("Select a preset or a model first."), "muted"
        if model.form_error:
            return tr(
                "{form_error}  The command uses the last valid values.", form_error=model.form_error
            ), "bad"
        if model.missing is not None:
            return tr("Install vLLM first."), "warn"
        if model.planning_long:
            return tr("Planning…"), "muted"
        if model.plan is None:
            if model.problem is None:
                return tr("Planning…"), "muted"
            return model.refusal, "bad"
        if model.actions.added_on_demand == model.plan.name:
            return tr(
                "{name} is loaded when a request asks for it; Home shows it.", name=model.plan.name
            ), "good"
        if not model.plan.startable:
            return model.room().sentence or model.refusal, "bad"
        if model.room().remedies:
            return model.room().sentence, "warn"
        if ended := [one.name for one in model.plan.instead_of]:
            return tr("Ends {ended} first.", ended=listed(ended)), "warn"
        if beside := [one.name for one in model.plan.beside]:
            return tr("Runs beside {beside}.", beside=listed(beside)), "muted"
        return tr("Ready to start."), "muted"


class OutcomeCard(Card):
    """The named stages of a start under way, and what came of the last one; nothing while there is none."""

    def __init__(
        self, model: LaunchModel, open_chat: Callable[[str], None], open_log: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._model, self._open_chat, self._open_log = model, open_chat, open_log
        self.stages = StageList()
        self.ready_text = text("", "good", wrap=True)
        self.chat = button(
            tr("Open chat"), self._on_chat, icon="message-square", hint=tr("Chat with this model")
        )
        self.ready = QWidget()
        self.ready.setLayout(row(IconLabel("circle-check", "good", 18), self.ready_text, self.chat))
        self.failure = ProblemBox(apply_fix=model.actions.apply_fix)
        self.failure.log_wanted.connect(self._on_log)
        self.again = button(
            tr("Try again"), self._on_again, icon="rotate-cw", hint=tr("Start the same again")
        )
        self._again_row = QWidget()
        self._again_row.setLayout(row(self.again, None))
        self.problem = ProblemBox(apply_fix=model.actions.apply_fix)
        for part in (self.stages, self.ready, self.failure, self._again_row, self.problem):
            self.body.addWidget(part)
        self.hide()

    def _on_chat(self) -> None:
        if (engine := self._model.watch.latest) is not None:
            self._open_chat(engine.id)

    def _on_log(self) -> None:
        if (engine := self._model.watch.latest) is not None:
            self._open_log(engine.id)

    def _on_again(self) -> None:
        if (engine := self._model.watch.latest) is not None:
            self._model.actions.relaunch(engine)

    def refresh(self) -> None:
        """Show how far the start is, or how it ended."""
        model = self._model
        stages = model.watch.stages(time.time())
        self.stages.setVisible(bool(stages))
        self.stages.show_stages(stages)
        latest = model.watch.latest
        failed = latest is not None and latest.state is EngineState.FAILED
        self.ready.setVisible(latest is not None and not failed)
        self.failure.setVisible(failed)
        self._again_row.setVisible(failed)
        problem = model.actions.problem
        self.problem.setVisible(problem is not None)
        if problem is not None:
            self.problem.show_problem(problem)
        show_part(self, bool(stages) or latest is not None or problem is not None)
        if latest is None:
            return
        if failed:
            self.failure.show_end(latest)
            sending = model.actions.starting
            self.again.setEnabled(not sending and model.session.connection.connected)
            return
        said = tr("{name}: ready.", name=latest.name)
        if (took := latest.ready_after) is not None:
            said = tr("{name}: ready after {duration}.", name=latest.name, duration=formats.duration(took))
        set_text(self.ready_text, said)
        self.ready_text.setToolTip(plain_tooltip(measured_by.START))
        self.ready_text.setAccessibleDescription(measured_by.START)
