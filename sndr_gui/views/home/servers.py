"""The card of the llama.cpp servers: which one runs, its speed, building and measuring."""

from PySide6.QtWidgets import QGridLayout, QPushButton

from engine_host.protocol.engines import Backend
from engine_host.protocol.language import tr
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.home.page import HomeModel, ServerRow
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import badge, set_text, text
from sndr_gui.views.widgets.layout import clear, column

_BUILT_FOR = {
    Backend.AUTO: tr("For an NVIDIA GPU with CUDA or else Vulkan; without one for the CPU."),
    Backend.CUDA: tr("For NVIDIA GPUs; needs the CUDA toolkit."),
    Backend.VULKAN: tr("For GPUs of any vendor; needs Vulkan's headers and shader compiler."),
    Backend.CPU: tr("For the CPU only."),
}


class ServersCard(Card):
    """The llama.cpp servers: which one runs, and the speed-up of the other."""

    def __init__(self, model: HomeModel) -> None:
        super().__init__(tr("llama.cpp server"))
        self._model = model
        self._grid = QGridLayout()
        self._grid.setVerticalSpacing(10)
        self._shown: tuple[ServerRow, ...] = ()
        self._gain = text("", "muted", wrap=True)
        self._job = JobView(tr("job"))
        self._job.cancel.clicked.connect(self._on_cancel)
        self.target = ChoiceBox(tr("Build target of llama.cpp"))
        self.target.fill(model.backends, Backend.AUTO)
        self.target.currentIndexChanged.connect(self._on_target)
        self.build: QPushButton = button(tr("Build llama.cpp"), self._on_build, icon="hammer")
        self._on_target()
        self.measure = button(
            tr("Compare"),
            model.actions.measure,
            icon="timer",
            hint=tr("Measure both servers on the same prompts"),
            command="sndr engine compare",
        )
        self.body.addLayout(self._grid)
        self.body.addWidget(self._gain)
        self.body.addWidget(self._job)
        self.body.addStretch(1)
        self.body.addWidget(Flow(self.target, self.build, self.measure))

    @property
    def _backend(self) -> Backend:
        return Backend(self.target.currentData())

    def _on_target(self) -> None:
        chosen = "" if self._backend is Backend.AUTO else f" --backend {self._backend.value}"
        hint = _BUILT_FOR[self._backend]
        self.target.setToolTip(plain_tooltip(hint))
        self.build.setToolTip(
            tip(tr("Compile llama.cpp. {hint}", hint=hint), "", f"sndr engine build llama.cpp{chosen}")
        )

    def _on_build(self) -> None:
        self._model.actions.build(self._backend)

    def _on_cancel(self) -> None:
        if (job := self._model.job()) is not None:
            self._model.actions.cancel_job(job.id)

    def refresh(self) -> None:
        """Show the servers of now."""
        model = self._model
        rows = model.servers()
        if rows != self._shown:
            self._shown = rows
            clear(self._grid)
            for place, entry in enumerate(rows):
                self._fill(place, entry)
        set_text(self._gain, model.gain())
        job = model.job()
        self._job.setVisible(job is not None)
        if job is not None:
            self._job.show_job(job, model.actions.pending(f"cancel {job.id}"))
        building, measuring = model.actions.pending("build"), model.actions.pending("measure")
        label = tr("Build again") if model.built else tr("Build llama.cpp")
        self.build.setText(tr("Starting the build…") if building else label)
        self.build.setEnabled(model.can_build and not building)
        self.measure.setText(tr("Starting…") if measuring else tr("Compare"))
        self.measure.setEnabled(model.can_measure and not measuring)
        if not model.built:
            self.measure.setToolTip(tr("Build the other server first."))

    def _fill(self, place: int, entry: ServerRow) -> None:
        line = Flow(text(entry.name), badge(entry.state, entry.tone))
        if entry.speed:
            line.add(text(entry.speed, "muted"))
        about = text(entry.about, "bad" if entry.tone == "bad" else "muted", wrap=True)
        self._grid.addLayout(column(line, about, spacing=2), place, 0)
