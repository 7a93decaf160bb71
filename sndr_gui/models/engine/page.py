"""The view-model of Engine: one start of an engine, its stages, and what it reports of itself."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass

from engine_host.protocol.engines import Engine, EngineState, Readings
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind
from engine_host.protocol.patches import EnginePatches, ProcessRole
from sndr_gui.host.choice import LIVE_STATES, STARTING_STATES
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.engine import cards as engine_cards
from sndr_gui.models.engine.cards import LatencyRow, Speculation
from sndr_gui.models.engine.metrics import EngineMetrics, Metric
from sndr_gui.models.engine.start import (
    SERVING,
    PageMode,
    StageRow,
    build_of,
    page_mode,
    stage_rows,
    start_age,
    start_failed,
    word_for,
)
from sndr_gui.models.engine.trends import TREND_SECONDS, Trends
from sndr_gui.models.home.page import HomeModel
from sndr_gui.models.launch.settings import planned_value
from sndr_gui.models.monitor.lines import Line
from sndr_gui.models.patches.outcomes import REASONS, ProcessCard, process_cards, process_name
from sndr_gui.models.window.actions import Actions
from sndr_gui.models.window.live_model import LiveModel

_SERIES = {
    "prefill_rate": tr("Prefill"),
    "decode_rate": tr("Decode"),
    "requests.running": tr("Running"),
    "requests.waiting": tr("Waiting"),
    "kv.share": tr("Filled"),
    "acceptance_length": tr("Tokens per step"),
}


@dataclass(frozen=True)
class Fact:
    """One thing about a start: what it is, its value, and what stands in its tooltip."""

    name: str
    value: str
    about: str = ""


@dataclass(frozen=True)
class StageSpan:
    """One stage of a start by its length in seconds; `state` is done, running or failed."""

    name: str
    seconds: float
    state: str


class EngineModel(LiveModel):
    """The model of Engine: the chosen engine, be it a start that failed."""

    def __init__(self, session: Session, actions: Actions, home: HomeModel) -> None:
        super().__init__()
        self.session, self.actions, self.home = session, actions, home
        self.trends = Trends(session, tuple(_SERIES))
        self.metrics = EngineMetrics(session, self.trends)
        self.stopping = home.stopping
        state = session.state
        for signal in (
            state.host_changed,
            state.engines_changed,
            session.connection.changed,
            actions.changed,
            self.stopping.changed,
        ):
            signal.connect(self.changed)
        self.trends.changed.connect(self.throttle.trigger)
        state.applied.connect(self.throttle.trigger)
        state.request_changed.connect(self.throttle.trigger)

    # Which engine.

    @property
    def engine(self) -> Engine | None:
        """The engine on the page."""
        return self.session.state.engine

    @property
    def told_apart(self) -> str:
        """The name of the engine on the page where others run too; else empty."""
        others = [one for one in self.session.state.live if one is not self.engine]
        return self.engine.name if others and self.engine is not None else ""

    @property
    def can_relaunch(self) -> bool:
        """True when the engine on the page runs, or failed and none took its place."""
        engine = self.engine
        return engine is not None and (self.is_live or self.session.state.live_named(engine.name) is None)

    @property
    def is_live(self) -> bool:
        """True while the engine on the page starts, runs or stops."""
        return self.engine is not None and self.engine.state in LIVE_STATES

    @property
    def mode(self) -> PageMode:
        """The state of the page."""
        return page_mode(self.session, self.engine)

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        engine = self.engine
        if self.session.state.host is None:
            return self.session.connection.sentence
        if engine is None:
            return tr("no engine runs")
        parts = [engine.name, build_of(engine), self._machine()]
        if engine.state in SERVING and engine.ready_at:
            parts.append(tr("up {duration}", duration=formats.duration(time.time() - engine.ready_at)))
        else:
            parts.append(formats.inside(word_for(engine)))
        if (lost := self.session.connection.lost_at) is not None:
            parts.append(tr("last seen {age}", age=formats.age(time.time() - lost)))
        return "  ·  ".join(part for part in parts if part)

    def _machine(self) -> str:
        host = self.session.state.host
        if host is None:
            return ""
        if host.gpus:
            return self.home.machine.split("  ·  ")[1]
        threads = planned_value(self.engine.plan if self.engine else None, "threads")
        if isinstance(threads, int):
            return tr(
                "{threads} of {cpu_threads}",
                threads=threads,
                cpu_threads=formats.plural(host.cpu_threads, "CPU thread"),
            )
        return tr("a machine of {cpu_threads}", cpu_threads=formats.plural(host.cpu_threads, "CPU thread"))

    # The start.

    def stages(self) -> tuple[StageRow, ...]:
        """Return the stages of the start with their durations."""
        engine = self.engine
        if engine is None:
            return ()
        return stage_rows(engine.stages, engine.ended_at or time.time(), start_failed(engine))

    @property
    def start_title(self) -> str:
        """The title of the card of the stages."""
        engine = self.engine
        if engine is None:
            return ""
        if engine.state in STARTING_STATES:
            return tr("Starting {name}", name=engine.name)
        if (took := engine.ready_after) is not None:
            if engine.state is EngineState.FAILED:
                return tr("Ready after {duration}, ended later", duration=formats.duration(took))
            return tr("Ready after {duration}", duration=formats.duration(took))
        if engine.state is EngineState.FAILED and engine.stages:
            return tr("Failed in stage “{name}”", name=engine.stages[-1].name)
        return tr("Start")

    @property
    def start_age(self) -> str:
        """The time that a start under way has taken."""
        engine = self.engine
        if engine is None or engine.state not in STARTING_STATES:
            return ""
        return start_age(engine)

    def problem(self) -> Problem | None:
        """Return the problem that made the engine fail."""
        return self.engine.problem if self.engine else None

    def stage_spans(self) -> tuple[StageSpan, ...]:
        """Return the stages of the start by their length."""
        engine = self.engine
        if engine is None:
            return ()
        now = engine.ended_at or time.time()
        rows = self.stages()
        spans = ((stage.ended_at or now) - stage.started_at for stage in engine.stages)
        return tuple(
            StageSpan(row.name, max(0.0, span), row.state) for row, span in zip(rows, spans, strict=True)
        )

    # What it reports.

    @property
    def readings(self) -> Readings | None:
        """The readings of a live engine; the last numbers of one that ended are none."""
        engine = self.engine
        if engine is None or self.mode not in ("running", "stopping"):
            return None
        return engine.readings or Readings(at=0)

    def cards(self) -> tuple[Metric, ...]:
        """Return the cards of the engine's metrics; dashes with the reason where there are none."""
        engine = self.engine
        if engine is None:
            return ()
        requests = tuple(self.session.state.requests.values())
        prefill = self.trends.points("prefill_rate")
        return engine_cards.cards(engine, self.readings, self.metrics, requests, prefill)

    def latencies(self) -> tuple[LatencyRow, ...]:
        """Return the engine's own latencies, or those that the endpoint measured."""
        engine = self.engine
        if engine is None:
            return ()
        return engine_cards.latencies(engine, self.readings, tuple(self.session.state.requests.values()))

    @property
    def latency_source(self) -> str:
        """The source of the latencies, in a sentence."""
        return engine_cards.latency_source(self.engine) if self.engine else ""

    def speculation(self) -> Speculation | None:
        """Return the counts of draft tokens; None where nothing is drafted."""
        return engine_cards.speculation(self.engine, self.readings) if self.engine else None

    def lines(self, *names: str) -> list[Line]:
        """Return some of the measured series as lines of a graph."""
        made = []
        for name in names:
            points = [point for point in self.trends.points(name) if time.time() - point[0] <= TREND_SECONDS]
            at, values = [at for at, _value in points], [value for _at, value in points]
            made.append(Line(name, "", _SERIES[name], tr("the engine"), at=at, values=values))
        return made

    # The overlay.

    @property
    def has_overlay(self) -> bool:
        """True when this engine can be patched: llama.cpp runs as it was built."""
        return self.engine is not None and self.engine.engine == EngineKind.VLLM

    def applies(self) -> EnginePatches | None:
        """Return the patch reports of the engine's processes."""
        return self.session.state.applies.get(self.engine.id) if self.engine else None

    @property
    def patched(self) -> str:
        """The apply summary in words."""
        engine = self.engine
        if engine is None:
            return ""
        planned = engine.plan.patches
        if planned is None or not planned.chosen:
            return tr("No patches in this start.")
        applies = self.applies()
        if applies is not None and applies.summary:
            return applies.summary
        count = formats.plural(len(planned.chosen), "patch", "patches")
        return tr("{count} selected; no process has reported yet.", count=count)

    def processes(self) -> tuple[ProcessCard, ...]:
        """Return a card for each process with its patch outcomes."""
        return process_cards(self.applies())

    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Return the patches that this start is without, each with the reason."""
        planned = self.engine.plan.patches if self.engine else None
        return tuple((one.patch, REASONS[one.reason]) for one in (planned.left_out if planned else ()))

    # Facts.

    def facts(self) -> tuple[Fact, ...]:
        """Return the facts of the start: engine, model, context, state, processes."""
        engine = self.engine
        if engine is None:
            return ()
        plan = engine.plan
        facts = [
            Fact(tr("Engine"), build_of(engine), engine.server_version),
            Fact(tr("Model"), plan.model_path.rsplit("/", 1)[-1], plan.model_path),
            Fact(
                tr("Context"),
                tr(
                    "{count} tokens × {streams}",
                    count=formats.count(engine.context),
                    streams=formats.plural(plan.streams, "stream"),
                ),
            ),
            Fact(tr("Speculation"), plan.speculation),
            Fact(tr("State"), word_for(engine)),
        ]
        if not engine.was_refused:
            begun = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(engine.created_at))
            led = tr("role and process id; the first leads the group")
            kept = tr("yes") if engine.keep else tr("no, it ends with the engine host")
            facts.append(Fact(tr("Processes"), self._processes(engine), led))
            facts.append(Fact(tr("Started"), begun))
            facts.append(Fact(tr("Keep running"), kept))
        if plan.gpus:
            facts.append(Fact("GPUs", self._gpus(plan.gpus), "\n".join(plan.gpus)))
        if plan.installation:
            facts.insert(1, Fact(tr("Environment"), plan.installation, tr("where this vLLM is installed")))
        if not self.has_overlay:
            facts.append(Fact(tr("Patches"), tr("none: llama.cpp has no overlay")))
        if (verified := engine.verified) is not None:
            moved = {
                True: "  ·  " + tr("draft tokens were verified"),
                False: "  ·  " + tr("no draft token was seen"),
                None: "",
            }
            said = tr("generated a token") if verified.token_generated else tr("generated nothing")
            facts.append(Fact(tr("Verified"), said + moved[verified.speculation_moved]))
        for name, size in engine.buffers.items():
            facts.append(Fact(name, formats.size(size), tr("from the engine's log")))
        return tuple(facts)

    def settings(self) -> tuple[Fact, ...]:
        """Return the settings of the start, each with the layer that set it."""
        plan = self.engine.plan if self.engine else None
        return tuple(
            Fact(setting.name, formats.UNMEASURED if setting.value is None else str(setting.value), layer)
            for setting in (plan.settings if plan else ())
            for layer in [f"{setting.layer}{f': {setting.why}' if setting.why else ''}"]
        )

    @property
    def command(self) -> str:
        """The equivalent command of this program."""
        return self.engine.plan.command if self.engine else ""

    @property
    def argv(self) -> str:
        """The command line that the engine was started with."""
        return shlex.join(self.engine.plan.argv) if self.engine else ""

    def _gpus(self, uuids: tuple[str, ...]) -> str:
        """Return GPUs by number and name; by UUID where this machine no longer has one."""
        host = self.session.state.host
        known = {gpu.uuid: f"{gpu.index}: {gpu.name}" for gpu in (host.gpus if host is not None else ())}
        return ", ".join(known.get(uuid, uuid) for uuid in uuids)

    def _processes(self, engine: Engine) -> str:
        """Return the known processes, each with its id."""
        applies = self.applies()
        known = sorted(applies.processes, key=lambda process: process.since) if applies else []
        named = [
            f"{process_name(process)} {process.pid}"
            for process in known
            if process.role is not ProcessRole.HELPER
        ]
        if engine.pid and engine.pid not in {process.pid for process in known}:
            named.insert(0, str(engine.pid))
        return "  ·  ".join(named) or formats.UNMEASURED

    # What can be done.

    def stop(self) -> None:
        """Stop the engine on the page; asks once more while it answers requests."""
        if self.engine is not None and self.is_live:
            self.stopping.stop(self.engine)

    def relaunch(self) -> None:
        """Start the same again; asks once more while requests are answered."""
        if self.engine is not None:
            self.stopping.relaunch(self.engine)

    def cancel(self) -> None:
        """Give up the start."""
        if self.engine is not None:
            self.actions.cancel_start(self.engine)
