"""The view-model of the first run: this machine, models that are here, one start, one measurement."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from engine_host.client.bench_reports.figures import median_text, name_of
from engine_host.client.first_run.overview import (
    IN_PLACE,
    first_measurement,
    no_others,
    only_bundled,
    places,
    presets_sentence,
    recommended,
)
from engine_host.protocol.bench.lab import LabRun, Quantity, RunBench
from engine_host.protocol.engines import Engine
from engine_host.protocol.jobs import JobState
from engine_host.protocol.language import tr
from engine_host.protocol.models import ModelFile
from sndr_gui.host.choice import STARTING_STATES
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.bench.page import BenchModel
from sndr_gui.models.bench.words import at_text
from sndr_gui.models.engine.start import SERVING
from sndr_gui.models.home.machine import MachineModel, MachinePart
from sndr_gui.models.launch.presets import LaunchPresets
from sndr_gui.models.launch.subject import ENGINE_NAMES
from sndr_gui.models.window.actions import Actions

_ENGINES = (ENGINE_NAMES["llama.cpp"], ENGINE_NAMES["vllm"])
_TOLD = (Quantity.DECODE, Quantity.TTFT)


class ShortBench(BenchModel):
    """A measurement that is soon over, of the engine that the window is about."""

    @property
    def request(self) -> RunBench:
        """The run that a click on Measure asks for."""
        engine = self.engine
        return first_measurement(engine.name if engine is not None else "")

    @property
    def measured(self) -> LabRun | None:
        """The run that the newest measurement kept, once it is listed.

        An engine is one start: what another one answered says nothing of it. Where none runs, the newest.
        """
        job, engine = self.newest, self.engine
        kept = job.result.get("runs", ()) if job is not None and job.state is JobState.DONE else ()
        run = next((run for run in self.runs.all if run.id in kept), None)
        return run if run is None or engine is None or run.engine.id == engine.id else None


class FirstRunModel(QObject):
    """Everything that the first run shows; it decides nothing, and nothing waits for it.

    Signals:
        changed: the machine, models, an engine or the measurement is new
        wanted: somebody wants to see it
    """

    changed = Signal()
    wanted = Signal()

    def __init__(
        self, session: Session, actions: Actions, machine: MachineModel, presets: LaunchPresets
    ) -> None:
        super().__init__()
        self.session, self.actions = session, actions
        self._machine, self._presets = machine, presets
        self.bench = ShortBench(session)
        self._shown = False
        for signal in (
            session.state.models_changed,
            session.state.engines_changed,
            session.connection.changed,
            actions.changed,
            machine.changed,
            presets.rows_changed,
            self.bench.changed,
        ):
            signal.connect(self._on_changed)

    def set_shown(self, shown: bool) -> None:
        """Read what is shown, while somebody looks."""
        self._shown = shown
        self.bench.set_shown(shown)
        if shown:
            self._read()

    def _read(self) -> None:
        self._machine.read()
        self._presets.load_if_stale()

    def _on_changed(self) -> None:
        if self._shown:
            # It may have been opened before there was a host to ask.
            self._presets.load_if_stale()
            self.changed.emit()

    # This machine, and the models that are here.

    @property
    def connected(self) -> bool:
        """True while the host answers."""
        return self.session.connection.connected

    def machine(self) -> tuple[tuple[str, str], ...]:
        """Return the parts of the machine by their names; none while no host told of it.

        An engine that was not read yet has its line: what is below must not move when somebody clicks it.
        """
        found = self._machine.parts()
        told = {part.name: _about(part) for part in found if not part.is_engine}
        engines = {part.name: _about(part) for part in found if part.is_engine}
        lines = {name: engines.get(name, tr("not read yet")) for name in _ENGINES}
        return (*told.items(), *lines.items()) if found else ()

    @property
    def waiting(self) -> str:
        """The state of the connection, while there is nothing to show."""
        return "" if self._machine.host is not None else self.session.connection.sentence

    @property
    def can_do(self) -> str:
        """The number of presets that fit here, once that was judged."""
        if self._presets.verdicts is None:
            return self._presets.sentence or tr("Checking which presets fit…")
        return presets_sentence(self._presets.verdicts.verdicts)

    def models(self) -> tuple[tuple[str, str], ...]:
        """Return each place of models, with how many are there and how large they are."""
        page = self.session.state.models
        return tuple((one.name, one.about) for one in places(page.models)) if page is not None else ()

    @property
    def models_sentence(self) -> str:
        """The fate of the models that were found, or the places that were looked through."""
        page = self.session.state.models
        if page is None:
            return tr("Looking for models…")
        return no_others() if only_bundled(page.models) else IN_PLACE

    # The start.

    @property
    def recommended(self) -> ModelFile | None:
        """The model to begin with."""
        page = self.session.state.models
        return recommended(page.models) if page is not None else None

    @property
    def engine(self) -> Engine | None:
        """The engine that runs or starts; one that failed is Home's to tell."""
        engine = self.session.state.engine
        return engine if engine is not None and engine in self.session.state.live else None

    @property
    def runs(self) -> bool:
        """True when an engine is ready to be asked."""
        return self.engine is not None and self.engine.state in SERVING

    @property
    def starting(self) -> bool:
        """True from the click on Start until the engine is ready."""
        engine = self.engine
        return self.actions.starting or (engine is not None and engine.state in STARTING_STATES)

    def start_sentence(self) -> str:
        """Return what Start does, or where the start is."""
        engine, model = self.engine, self.recommended
        if engine is not None and engine.state in SERVING:
            return tr("{name} runs. Ask it something in Chat, or measure it below.", name=engine.name)
        if engine is not None:
            stage = engine.stages[-1].name if engine.stages else tr("preparing")
            return tr("{name} is starting: {stage}.", name=engine.name, stage=stage)
        if self.actions.problem is not None:
            return self.actions.problem.sentence()
        if self.waiting:
            return tr("One model ships with the program; it can start as soon as the engine host is there.")
        if model is None:
            return tr("The model that ships with the program is not there. Launch starts one of yours.")
        return tr(
            "{name} ships with the program ({size}). It is small, runs on any machine and "
            "needs no network: a good first look, and no judge of what larger models can "
            "do.",
            name=model.name,
            size=formats.size(model.size),
        )

    @property
    def command(self) -> str:
        """The command that starts the same."""
        model = self.recommended
        return f"sndr run {model.id}" if model is not None else "sndr run MODEL"

    def start(self) -> None:
        """Start the recommended model."""
        if (model := self.recommended) is not None and self.engine is None:
            self.actions.start_model(model.id)

    def cancel_start(self) -> None:
        """Give up the start."""
        if (engine := self.engine) is not None and not self.runs:
            self.actions.cancel_start(engine)

    # The measurement.

    def measure_sentence(self) -> str:
        """Return what Measure does, or what it found."""
        bench = self.bench
        if bench.problem is not None:
            return bench.problem.sentence()
        run = bench.measured
        if run is not None:
            tokens = run.parts[0].max_tokens if run.parts else 0
            return tr(
                "{at_text}, {model}, answers of at most {tokens} tokens. Bench keeps it.",
                at_text=at_text(run),
                model=run.engine.model
                if bench.engine is not None
                else tr("{name}, which runs no more", name=run.engine.model),
                tokens=tokens,
            )
        if not self.runs:
            return tr("Start something first; then its speed on this machine can be measured.")
        return tr(
            "Asks for a short story once to warm up and three times measured, then checks "
            "what was answered. It can be cancelled at any time."
        )

    def figures(self) -> tuple[tuple[str, str, str], ...]:
        """Return the measured figures: name, median, and why one is struck or missing."""
        run = self.bench.measured
        figures = run.parts[0].figures if run is not None and run.parts else ()
        return tuple(
            (name_of(one.quantity), median_text(one), one.why) for one in figures if one.quantity in _TOLD
        )


def _about(part: MachinePart) -> str:
    """Return a part of the machine in a line; what is no memory is told by its value alone."""
    if part.name == "GPU":
        return tr("{part}; models run on the processor", part=part.value)
    return part.value if part.share is None else part.sentence
