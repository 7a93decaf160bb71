"""Home before an engine runs: the first thing to do, and a start under way."""

from collections.abc import Callable

from engine_host.protocol.language import tr
from sndr_gui.host.connection import Phase
from sndr_gui.kit import formats
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.engine.choice import command_of
from sndr_gui.models.home.page import HomeModel
from sndr_gui.views.engine.again import StartAgain
from sndr_gui.views.engine.stages import StageList
from sndr_gui.views.widgets.buttons import button, set_primary, tip
from sndr_gui.views.widgets.cards import Card, EmptyState
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import ProblemBox

EMPTY_STATES = {
    "connecting": tr("Starting the engine host"),
    "lost": tr("Engine host not connected"),
    "empty": tr("No engine runs"),
}


class Hero(Card):
    """The page before an engine runs: the one thing to do."""

    def __init__(self, model: HomeModel, open_launch: Callable[[], None]) -> None:
        super().__init__()
        self._model = model
        self._ended = False
        self.again = StartAgain(model.last, keys("relaunch"))
        self.start = button(tr("Start the demo model"), model.start_demo, kind="primary", icon="play")
        self.choose = button(
            tr("Choose a model"), open_launch, icon="rocket", hint=tr("Open Launch"), shortcut=""
        )
        self.retry = button(tr("Retry now"), model.session.connection.retry, icon="refresh-cw")
        self.equivalent_command = CopyField(what=tr("equivalent command"))
        self.equivalent_command.setFixedWidth(420)
        self.problem = ProblemBox()
        self._state = EmptyState(
            "plug", "", "", row(self.again, self.start, self.choose, self.retry), self.equivalent_command
        )
        self._state.setMinimumHeight(270)
        self.body.addWidget(self._state)
        self.body.addWidget(self.problem)

    def refresh(self, mode: str) -> None:
        """Show the face for this mode."""
        model = self._model
        demo = model.demo_to_start
        connection = model.session.connection
        ended = connection.phase is Phase.ENDED
        set_text(self._state.heading, tr("The engine host was ended") if ended else EMPTY_STATES[mode])
        again = self.again.refresh(mode == "empty")
        set_primary(self.start, not again)
        if again:
            sentence = model.last.sentence()
        elif mode == "empty" and demo is not None:
            sentence = tr(
                "Start {name}, the small bundled model ({size}), to see everything work. It "
                "runs on any machine.",
                name=demo.name,
                size=formats.size(demo.size),
            )
        elif mode == "empty":
            sentence = tr("Choose a model, or add a model folder.")
        elif connection.phase in (Phase.FAILED, Phase.MISMATCH):
            sentence = tr("The window retries by itself, each time after a longer pause.")
        else:
            sentence = connection.sentence
        set_text(self._state.sentence, sentence)
        self.start.setVisible(mode == "empty" and demo is not None)
        pending = model.actions.pending("start")
        self.start.setText(tr("Starting…") if pending else tr("Start the demo model"))
        self.start.setEnabled(not model.actions.starting and connection.connected)
        self.choose.setVisible(mode == "empty")
        self.retry.setText(tr("Start again") if ended else tr("Retry now"))
        set_primary(self.retry, ended)
        self.retry.setVisible(mode == "lost")
        if ended and self.retry.isVisible() and not self._ended:
            # Enter starts it, from where the person is.
            self.retry.setFocus()
        self._ended = ended
        of_demo = f"sndr run {demo.id}" if mode == "empty" and demo else "sndr run MODEL"
        self.equivalent_command.set_content(model.last.command if again else of_demo)
        self.equivalent_command.setVisible(mode == "empty")
        failed = connection.phase in (Phase.FAILED, Phase.MISMATCH)
        self.problem.setVisible(failed)
        if failed:
            self.problem.show_sentence(
                connection.sentence, tr("Last lines of its log:") if connection.tail else "", connection.tail
            )


class StartCard(Card):
    """A start under way: its stages with their durations, and Cancel."""

    def __init__(self, model: HomeModel) -> None:
        self._age = text("", "muted")
        self.cancel = button(tr("Cancel"), model.cancel)
        self.cancel.setAccessibleName(tr("Cancel the start"))
        super().__init__(tr("Starting"), self._age, self.cancel)
        self._model = model
        self._stages = StageList()
        self.body.addWidget(self._stages)

    def refresh(self) -> None:
        """Show how far the start is."""
        engine = self._model.engine
        if engine is None:
            return
        set_text(self.title, tr("Starting {name}", name=engine.name))
        set_text(self._age, self._model.start_age)
        cancelling = self._model.actions.pending(f"cancel {engine.job}") or self._model.actions.stopping(
            engine
        )
        command = command_of(self._model.session.state, engine, "stop", "--now")
        self.cancel.setToolTip(tip(tr("Cancel this start"), "", command))
        self.cancel.setText(tr("Cancelling…") if cancelling else tr("Cancel"))
        self.cancel.setEnabled(not cancelling)
        self._stages.show_stages(self._model.stages())
