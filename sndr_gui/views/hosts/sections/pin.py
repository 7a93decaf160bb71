"""The vLLM that starts of a host use, the one before, and the way to pin another one."""

from __future__ import annotations

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.models.hosts.actions.pin import PinAction, PinBackAction
from sndr_gui.models.hosts.pin import HostPinModel
from sndr_gui.models.hosts.planned import PlannedAction, PlannedJob
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.hosts.planned import PlannedDialog
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.problems import ProblemBox

_ABOUT = tr("Starts there use this vLLM where none is named; engines that run go on with theirs.")
_AWAY = tr("Its engine host tells it once it is connected.")


class PinCard(Card):
    """The pin, as the engine host there last told it."""

    def __init__(self, model: HostPinModel) -> None:
        self._model, name = model, model.name
        self.read = button(
            tr("Read"),
            model.read,
            icon="refresh-cw",
            hint=tr("Ask which vLLM starts there use"),
            command=f"sndr host pin {name}",
        )
        self.read.setAccessibleName(tr("Read the pin of vLLM on {name}", name=name))
        super().__init__(tr("vLLM that starts use"), self.read)
        self.pin = button(
            tr("Pin…"),
            self._on_pin,
            icon="bookmark",
            hint=tr("Have starts there use another vLLM; its plan is shown first"),
            command=f"sndr host pin {name} vllm VERSION",
        )
        self.pin.setAccessibleName(tr("Pin vLLM on {name}", name=name))
        self.back = button(
            tr("Back to the one before…"),
            self._on_back,
            icon="undo-2",
            hint=tr("Use the pin again that was before; its plan is shown first"),
            command=f"sndr host pin {name} --back",
        )
        self.back.setAccessibleName(tr("Back to the previous vLLM on {name}", name=name))
        self.about = text(_ABOUT, "muted", wrap=True)
        self.problem = ProblemBox()
        self.table = PlainTable(tr("vLLM that starts use"))
        self.job = JobView(tr("pin of vLLM"), dismiss=True)
        self.job.cancel.clicked.connect(model.cancel)
        for part in (self.about, self.problem, self.table, self.job, Flow(self.pin, self.back)):
            self.body.addWidget(part)
        model.changed.connect(self.refresh)
        if model.session is not None:
            model.read()

    def refresh(self) -> None:
        """Show what was last read."""
        model = self._model
        reachable, plan, job = model.session is not None, model.plan, model.job
        busy = job is not None and not job.ended
        set_text(self.about, _ABOUT if reachable or plan is not None else _AWAY)
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        rows = (
            () if plan is None else ((tr("Now"), plan.now), (tr("Before"), plan.before or formats.UNMEASURED))
        )
        self.table.show_rows((), rows)
        self.job.setVisible(job is not None)
        if job is not None:
            self.job.show_job(job, False)
        self.read.setEnabled(reachable and not model.reading)
        self.pin.setEnabled(reachable and plan is not None and not busy)
        self.back.setEnabled(self.pin.isEnabled() and plan is not None and plan.before is not None)

    def _on_pin(self) -> None:
        plan = self._model.plan
        now = readable(plan.now) if plan is not None else ""
        self._open(PinAction(self._model.name, self._model.versions, now))

    def _on_back(self) -> None:
        self._open(PinBackAction(self._model.name))

    def _open(self, action: PlannedAction) -> None:
        session = self._model.session
        if session is not None:
            PlannedDialog(self.window(), PlannedJob(session, self._model.name, action)).open()
