"""Home: the engine, its numbers, the endpoint, and the servers that can run it."""

import time
from collections.abc import Callable

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QPushButton, QWidget

from engine_host.protocol import Backend, Problem
from sndr_gui.host.connection import Phase
from sndr_gui.kit import formats
from sndr_gui.kit.plain_tip import plain_tip
from sndr_gui.models.engine.trends import TREND_SECONDS
from sndr_gui.models.home.page import HomeModel, ServerRow
from sndr_gui.views.engine.stages import JobView, StageList
from sndr_gui.views.graphs.trend import Trend
from sndr_gui.views.widgets.copying import CommandLine, CopyButton, Switcher
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.parts import (
    GAP,
    Card,
    Dot,
    EmptyState,
    Page,
    ValueCard,
    badge,
    button,
    clear,
    column,
    row,
    set_text,
    set_tone,
    text,
    tip,
)
from sndr_gui.views.widgets.problems import ProblemBox
from sndr_gui.views.widgets.stop_button import StopButton

_MODES = {
    "connecting": "Starting the engine host",
    "lost": "The engine host is away",
    "empty": "No engine runs",
}


class HomeView(Page):
    """The page of the engine that runs."""

    def __init__(
        self, model: HomeModel, open_logs: Callable[[str], None], open_launch: Callable[[], None]
    ) -> None:
        super().__init__("Home", scrolls=True)
        self.model = model
        self._open_logs = open_logs
        self.stop = StopButton(model.stop)
        self.relaunch = button(
            "Relaunch", model.relaunch, kind="primary", shortcut="Ctrl+R", hint="Start the same again"
        )
        self.tools.addWidget(self.stop)
        self.tools.addWidget(self.relaunch)
        self._cards = [ValueCard(name) for name in ("Decode, one request", "Memory", "KV cache", "Requests")]
        cards = QHBoxLayout()
        cards.setSpacing(GAP)
        for card in self._cards:
            cards.addWidget(card, 1)
        self._cards_row = QWidget()
        cards.setContentsMargins(0, 0, 0, 0)
        self._cards_row.setLayout(cards)
        self.hero = _Hero(model, open_launch)
        self.starting = _StartCard(model)
        self.failure = ProblemBox(mend=model.actions.mend)
        self.failure.log.show()
        self.failure.log_wanted.connect(self._on_log_wanted)
        self.endpoint = _EndpointCard(model)
        self.servers = _ServersCard(model)
        for part in (self.hero, self.starting, self.failure, self._cards_row):
            self.body.addWidget(part)
        self._lower = QHBoxLayout()
        self._lower.setSpacing(GAP)
        self._lower.addWidget(self.endpoint, 1)
        self._lower.addWidget(self.servers, 1)
        self.body.addLayout(self._lower)
        self._trend_card = Card("Decode, all streams, tokens a second")
        self._trend = Trend("Decode rate of the last five minutes", TREND_SECONDS)
        self._trend_card.body.addWidget(self._trend, 1)
        self._trend_card.setMinimumHeight(170)
        self._trend_card.setMaximumHeight(330)
        self.body.addWidget(self._trend_card, 1)
        self.body.addStretch(0)
        model.changed.connect(self.refresh)
        self.refresh()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)
        if shown:
            self.refresh()

    def _on_log_wanted(self) -> None:
        engine = self.model.engine
        self._open_logs(engine.id if engine else "host")

    def refresh(self) -> None:
        """Show the state of now."""
        model, mode = self.model, self.model.mode
        set_text(self.subtitle, model.subtitle)
        self.hero.setVisible(mode in _MODES)
        self.starting.setVisible(mode == "starting")
        self.failure.setVisible(mode == "failed")
        self._cards_row.setVisible(mode in ("running", "stopping", "starting", "failed"))
        for part in (self.endpoint, self.servers):
            part.setVisible(mode not in ("connecting", "lost"))
        trend = mode in ("running", "stopping")
        self._trend_card.setVisible(trend)
        if trend:
            self._trend.show_points(list(model.numbers.trend), time.time())
        self._refresh_buttons(mode)
        if mode in _MODES:
            self.hero.refresh(mode)
        if mode == "starting":
            self.starting.refresh()
        if mode == "failed":
            self._refresh_failure()
        for card, value in zip(self._cards, model.values(), strict=True):
            card.show_value(value.caption, value.value, value.note)
        self.endpoint.refresh()
        self.servers.refresh()

    def _refresh_buttons(self, mode: str) -> None:
        model = self.model
        connected = model.session.link.connected
        stopping = mode == "stopping" or model.actions.pending("stop")
        self.stop.show_state(model.stopping.question, stopping, connected)
        self.stop.setVisible(mode in ("running", "stopping"))
        relaunching = model.actions.pending("relaunch")
        question = model.stopping.relaunch_question
        self.relaunch.setText("Relaunching…" if relaunching else question or "Relaunch")
        self.relaunch.setVisible(mode in ("running", "stopping", "failed"))
        self.relaunch.setEnabled(connected and not relaunching)
        if (engine := model.engine) is not None:
            self.relaunch.setToolTip(plain_tip(f"Start the same again  (Ctrl+R)\n{engine.plan.command}"))

    def _refresh_failure(self) -> None:
        engine, problem = self.model.engine, self.model.problem()
        if engine is None:
            return
        if isinstance(problem, Problem):
            self.failure.show_problem(problem, engine.last_lines)
        else:
            self.failure.show_sentence(f"{engine.name} ended.", "", engine.last_lines)


class _Hero(Card):
    """What stands there before an engine runs: the one thing to do."""

    def __init__(self, model: HomeModel, open_launch: Callable[[], None]) -> None:
        super().__init__()
        self._model = model
        self.start = button("Start the demo model", model.start_demo, kind="primary", icon="play")
        self.choose = button("Choose a model", open_launch, icon="rocket", hint="Open Launch", shortcut="")
        self.retry = button("Try again now", model.session.link.retry, icon="refresh-cw")
        self.equivalent_command = CommandLine(what="the command line that does the same")
        self.equivalent_command.setFixedWidth(420)
        self.problem = ProblemBox()
        self._state = EmptyState(
            "plug", "", "", row(self.start, self.choose, self.retry), self.equivalent_command
        )
        self._state.setMinimumHeight(270)
        self.body.addWidget(self._state)
        self.body.addWidget(self.problem)

    def refresh(self, mode: str) -> None:
        """Show the face for this mode."""
        model = self._model
        demo = model.actions.demo_model()
        link = model.session.link
        set_text(self._state.heading, _MODES[mode])
        if mode == "empty" and demo is not None:
            sentence = (
                f"Start {demo.name}, the small model that came with the program ({formats.size(demo.size)}), "
                "to see everything work. It runs on any machine."
            )
        elif mode == "empty":
            sentence = "Choose one of your models, or add the folder that they are in."
        elif link.phase in (Phase.FAILED, Phase.MISMATCH):
            sentence = "The window tries again by itself, each time after a longer pause."
        else:
            sentence = link.sentence
        set_text(self._state.sentence, sentence)
        self.start.setVisible(mode == "empty" and demo is not None)
        pending = model.actions.pending("start")
        self.start.setText("Starting…" if pending else "Start the demo model")
        self.start.setEnabled(not pending and link.connected)
        self.choose.setVisible(mode == "empty")
        self.retry.setVisible(mode == "lost")
        self.equivalent_command.set_content(
            f"sndr run {demo.id}" if mode == "empty" and demo else "sndr run MODEL"
        )
        self.equivalent_command.setVisible(mode == "empty")
        failed = link.phase in (Phase.FAILED, Phase.MISMATCH)
        self.problem.setVisible(failed)
        if failed:
            self.problem.show_sentence(
                link.sentence, "These are its last words:" if link.tail else "", link.tail
            )


class _StartCard(Card):
    """A start under way: its stages with their durations, and Cancel."""

    def __init__(self, model: HomeModel) -> None:
        self._age = text("", "muted")
        self.cancel = button("Cancel", model.cancel, hint="Give up this start", command="sndr stop --now")
        self.cancel.setAccessibleName("Cancel the start")
        super().__init__("Starting", self._age, self.cancel)
        self._model = model
        self._stages = StageList()
        self.body.addWidget(self._stages)

    def refresh(self) -> None:
        """Show how far the start is."""
        engine = self._model.engine
        if engine is None:
            return
        set_text(self.title, f"Starting {engine.name}")
        set_text(self._age, self._model.start_age)
        cancelling = self._model.actions.pending(f"cancel {engine.job}") or self._model.actions.pending(
            "stop"
        )
        self.cancel.setText("Cancelling…" if cancelling else "Cancel")
        self.cancel.setEnabled(not cancelling)
        self._stages.show_stages(self._model.stages())


class _EndpointCard(Card):
    """Where editors connect, who can reach it, and what to paste."""

    def __init__(self, model: HomeModel) -> None:
        super().__init__("Endpoint")
        self._model = model
        self._dot = Dot("muted")
        self._url = text("", name="big")
        self._copy = CopyButton("the address")
        self._reach = text("", "muted", wrap=True)
        self._switch = Switcher(("curl", "OpenAI SDK"), "Example")
        self._snippet = CommandLine(what="the example", wraps=True)
        for choice in self._switch.buttons:
            choice.toggled.connect(self.refresh)
        self.body.addLayout(row(self._dot, self._url, self._copy, None))
        self.body.addWidget(self._reach)
        self.body.addSpacing(2)
        self.body.addLayout(row(self._switch, None))
        self.body.addWidget(self._snippet)
        self.body.addStretch(1)

    def refresh(self) -> None:
        """Show the endpoint of now."""
        endpoint = self._model.endpoint
        url = endpoint.url if endpoint else None
        connected = self._model.session.link.connected
        self._dot.set_token("good" if url and connected else "bad" if connected else "muted")
        set_text(self._url, url or "not served")
        self._copy.set_content(url or "")
        set_text(self._reach, self._model.reach())
        open_to_all = endpoint is not None and endpoint.reach == "network" and not endpoint.key_required
        set_tone(self._reach, "warn" if open_to_all else "muted")
        self._snippet.set_content(self._model.snippet(("curl", "python")[self._switch.place]))


_BUILT_FOR = {
    Backend.AUTO: "For an NVIDIA GPU where there is one, with CUDA or else Vulkan; else for the processor.",
    Backend.CUDA: "For the NVIDIA GPUs here; takes NVIDIA's toolkit.",
    Backend.VULKAN: "For GPUs of any maker; takes Vulkan's headers and shader compiler.",
    Backend.CPU: "For this processor alone.",
}


class _ServersCard(Card):
    """Which llama.cpp server runs, and what the other would gain."""

    def __init__(self, model: HomeModel) -> None:
        super().__init__("llama.cpp server")
        self._model = model
        self._grid = QGridLayout()
        self._grid.setVerticalSpacing(10)
        self._shown: tuple[ServerRow, ...] = ()
        self._gain = text("", "muted", wrap=True)
        self._job = JobView("job")
        self._job.cancel.clicked.connect(self._on_cancel)
        self.target = ChoiceBox("What llama.cpp is built for")
        self.target.fill(model.backends, Backend.AUTO)
        self.target.currentIndexChanged.connect(self._on_target)
        self.build: QPushButton = button("Build the faster engine", self._on_build, icon="hammer")
        self._on_target()
        self.measure = button(
            "Measure",
            model.actions.measure,
            icon="timer",
            hint="Run both servers on the same prompts and compare",
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
        self.target.setToolTip(hint)
        self.build.setToolTip(tip(f"Compile llama.cpp. {hint}", "", f"sndr engine build llama.cpp{chosen}"))

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
        label = "Build it again" if model.built else "Build the faster engine"
        self.build.setText("Starting the build…" if building else label)
        self.build.setEnabled(model.can_build and not building)
        self.measure.setText("Starting…" if measuring else "Measure")
        self.measure.setEnabled(model.can_measure and not measuring)
        if not model.built:
            self.measure.setToolTip("There is one server only: build the other, then measure both.")

    def _fill(self, place: int, entry: ServerRow) -> None:
        line = Flow(text(entry.name), badge(entry.state, entry.tone))
        if entry.speed:
            line.add(text(entry.speed, "muted"))
        about = text(entry.about, "bad" if entry.tone == "bad" else "muted", wrap=True)
        self._grid.addLayout(column(line, about, spacing=2), place, 0)
