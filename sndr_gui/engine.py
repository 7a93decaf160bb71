"""The view-model of Engine: one start of an engine, its stages, and what it reports of itself."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.protocol import Engine, EnginePatches, EngineState, Problem, Readings
from sndr_gui import formats
from sndr_gui.actions import Actions
from sndr_gui.home import STATE_WORDS, HomeModel, StageRow, build_of, stage_rows
from sndr_gui.link import Phase
from sndr_gui.patches import REASONS
from sndr_gui.readings import Value
from sndr_gui.session import Session
from sndr_gui.trends import Trends

DECODE, KV = "decode_rate", "kv.share"
_STARTING = (EngineState.PREPARING, EngineState.STARTING)
_SERVING = (EngineState.READY, EngineState.BUSY)
_ENDING = (EngineState.DRAINING, EngineState.STOPPING)
_LATENCY_NAMES = {
    "TTFT": ("TTFT", "time to first token"),
    "ITL": ("ITL", "inter-token latency"),
    "queue": ("Queue", "waiting for its turn in the engine"),
    "prefill": ("Prefill", "reading the prompt"),
    "decode": ("Decode", "from the first token to the last"),
    "end to end": ("End to end", "the whole request in the engine"),
}


@dataclass(frozen=True)
class Fact:
    """One thing about a start: what it is, its value, and what stands in its tooltip."""

    name: str
    value: str
    about: str = ""


@dataclass(frozen=True)
class LatencyRow:
    """One of the engine's own histograms, as shown."""

    name: str
    about: str
    count: str
    mean: str
    p50: str
    p95: str


@dataclass(frozen=True)
class Speculation:
    """How drafts did; `by_position` holds the share accepted at draft token 1, 2, …."""

    method: str
    length: float | None
    drafted: int | None
    accepted: int | None
    by_position: tuple[float, ...]

    @property
    def sentence(self) -> str:
        """Everything in one line."""
        if self.length is None and not self.drafted:
            return "No draft has been verified yet: ask it something."
        parts = []
        if self.length is not None:
            parts.append(f"{self.length:.2f} tokens a step")
        if self.drafted and self.accepted is not None:
            share = formats.share(self.accepted, self.drafted)
            parts.append(
                f"{formats.count(self.accepted)} of {formats.count(self.drafted)} drafts accepted, {share}"
            )
        return "  ·  ".join(parts)


class EngineModel(QObject):
    """What the page shows of one engine: the newest, or the one that was chosen.

    Signals:
        changed: something shown is new
    """

    changed = Signal()

    def __init__(self, session: Session, actions: Actions, home: HomeModel) -> None:
        super().__init__()
        self.session, self.actions, self.home = session, actions, home
        self._chosen = ""
        self.trends = Trends(session, (DECODE, KV))
        state = session.state
        for signal in (
            state.host_changed,
            state.engines_changed,
            session.link.changed,
            actions.changed,
            home.changed,
        ):
            signal.connect(self.changed)
        # Samples and patch results come in bursts; the page is drawn four times a second.
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(250)
        self._soon.timeout.connect(self.changed)
        self.trends.changed.connect(self._on_news)
        state.applied.connect(self._on_news)
        # Durations of a running start count up without any event.
        self._clock = QTimer(self)
        self._clock.setInterval(1000)
        self._clock.timeout.connect(self.changed)

    def set_shown(self, shown: bool) -> None:
        """Count time only while somebody looks."""
        if shown:
            self._clock.start()
        else:
            self._clock.stop()

    def _on_news(self, _news: object = None) -> None:
        if not self._soon.isActive():
            self._soon.start()

    # Which engine.

    def engines(self) -> tuple[Engine, ...]:
        """Every start that the host remembers, the newest first."""
        known = self.session.state.engines.values()
        return tuple(sorted(known, key=lambda engine: -engine.created_at))

    def choose(self, engine_id: str) -> None:
        """Look at another start; the empty name follows the newest."""
        newest = self.session.state.engine
        self._chosen = "" if newest is not None and newest.id == engine_id else engine_id
        self.changed.emit()

    @property
    def engine(self) -> Engine | None:
        """The engine on the page."""
        state = self.session.state
        return state.engines.get(self._chosen) or state.engine

    @property
    def newest(self) -> bool:
        """Whether the engine on the page is the one that Stop and Relaunch mean."""
        return self.engine is self.session.state.engine

    def title_of(self, engine: Engine) -> str:
        """An engine in the list of starts."""
        at = time.strftime("%H:%M:%S", time.localtime(engine.created_at))
        return f"{engine.name}  ·  {at}  ·  {STATE_WORDS[engine.state].lower()}"

    @property
    def mode(self) -> str:
        """The page's face: connecting, lost, empty, starting, running, stopping, failed or ended."""
        if self.session.state.host is None:
            starts = self.session.link.phase in (Phase.STARTING, Phase.RECONNECTING)
            return "connecting" if starts else "lost"
        engine = self.engine
        if engine is None:
            return "empty"
        if engine.state in _STARTING:
            return "starting"
        if engine.state in _ENDING:
            return "stopping"
        if engine.state in _SERVING:
            return "running"
        return "failed" if engine.state is EngineState.FAILED else "ended"

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        engine = self.engine
        if self.session.state.host is None:
            return self.session.link.sentence
        if engine is None:
            return "no engine runs"
        parts = [engine.name, build_of(engine), self._machine()]
        if engine.state in _SERVING and engine.ready_at:
            parts.append(f"up {formats.duration(time.time() - engine.ready_at)}")
        else:
            parts.append(STATE_WORDS[engine.state].lower())
        if (lost := self.session.link.lost_at) is not None:
            parts.append(f"last seen {formats.age(time.time() - lost)}")
        return "  ·  ".join(part for part in parts if part)

    def _machine(self) -> str:
        host = self.session.state.host
        if host is None:
            return ""
        return self.home.machine.split("  ·  ")[1] if host.gpus else f"{host.cpu_threads} CPU threads"

    # The start.

    def stages(self) -> tuple[StageRow, ...]:
        """The stages of the start, with their durations."""
        engine = self.engine
        if engine is None:
            return ()
        return stage_rows(engine.stages, engine.ended_at or time.time(), engine.state is EngineState.FAILED)

    @property
    def start_title(self) -> str:
        """What the card of the stages is called."""
        engine = self.engine
        if engine is None:
            return ""
        if engine.state in _STARTING:
            return f"Starting {engine.name}"
        if engine.verified is not None:
            return f"Ready {formats.duration(engine.verified.ready_after)} after it was started"
        if engine.state is EngineState.FAILED and engine.stages:
            return f"Failed in the stage “{engine.stages[-1].name}”"
        return "The start"

    @property
    def start_age(self) -> str:
        """How long a start under way has taken until now."""
        engine = self.engine
        if engine is None or engine.state not in _STARTING:
            return ""
        return formats.duration(time.time() - engine.created_at)

    def problem(self) -> Problem | None:
        """Why the engine failed."""
        return self.engine.problem if self.engine else None

    # What it reports.

    @property
    def readings(self) -> Readings | None:
        """What a living engine last said of itself: the last numbers of a dead one are no numbers."""
        engine = self.engine
        return engine.readings if engine is not None and self.mode in ("running", "stopping") else None

    def cards(self) -> tuple[Value, ...]:
        """The cards: decode, memory, KV cache, requests; with vLLM the prefix cache and preemptions too."""
        engine = self.engine
        if engine is None:
            return ()
        values = self.home.numbers.values() if self.newest else tuple(_gone())
        return (*values, *self._of_vllm()) if engine.engine == "vllm" else values

    def _of_vllm(self) -> tuple[Value, ...]:
        readings = self.readings
        if readings is None:
            return (
                Value("Prefix cache", formats.UNMEASURED, "not running"),
                Value("Preemptions", formats.UNMEASURED, "not running"),
            )
        asked, found = readings.prefix_queries_total, readings.prefix_hits_total
        if asked is None or found is None:
            prefix = Value("Prefix cache", formats.UNMEASURED, "not measured: it is off")
        elif not asked:
            prefix = Value("Prefix cache", formats.UNMEASURED, "no prompt yet")
        else:
            note = f"{formats.count(found)} of {formats.count(asked)} prompt tokens found"
            prefix = Value("Prefix cache", formats.share(found, asked), note)
        count = readings.preemptions_total
        if count is None:
            return (prefix, Value("Preemptions", formats.UNMEASURED, "not measured"))
        note = "requests put off for want of KV blocks" if count else "KV blocks were always enough"
        return (prefix, Value("Preemptions", formats.count(count), note))

    def latencies(self) -> tuple[LatencyRow, ...]:
        """The engine's own latencies since its start."""
        rows = []
        for one in self.readings.latencies if self.readings else ():
            name, about = _LATENCY_NAMES.get(one.name, (one.name, ""))
            rows.append(
                LatencyRow(
                    name,
                    about,
                    formats.count(one.count),
                    formats.duration(one.mean),
                    _quantile(one.p50, one.p50_below),
                    _quantile(one.p95, one.p95_below),
                )
            )
        return tuple(rows)

    def speculation(self) -> Speculation | None:
        """How drafts did; None where nothing is drafted."""
        engine = self.engine
        if engine is None or engine.plan.speculation == "off":
            return None
        readings = self.readings or Readings(at=0)
        return Speculation(
            engine.plan.speculation,
            readings.acceptance_length,
            readings.draft_tokens_total,
            readings.draft_accepted_total,
            readings.acceptance_by_position,
        )

    # The overlay.

    def applies(self) -> EnginePatches | None:
        """What the processes reported of their patches."""
        return self.session.state.applies.get(self.engine.id) if self.engine else None

    @property
    def patched(self) -> str:
        """The apply summary in words."""
        engine = self.engine
        if engine is None:
            return ""
        if engine.engine != "vllm":
            return "llama.cpp has no overlay: it runs as it was built."
        planned = engine.plan.patches
        if planned is None or not planned.chosen:
            return "This start has no patches: it is plain vLLM."
        applies = self.applies()
        if applies is not None and applies.summary:
            return applies.summary
        return (
            f"{formats.plural(len(planned.chosen), 'patch', 'patches')} chosen; no process has reported yet."
        )

    def left_out(self) -> tuple[tuple[str, str], ...]:
        """The patches that this start is without, each with the reason."""
        planned = self.engine.plan.patches if self.engine else None
        return tuple((one.patch, REASONS[one.reason]) for one in (planned.left_out if planned else ()))

    # Facts.

    def facts(self) -> tuple[Fact, ...]:
        """What was started, as it is."""
        engine = self.engine
        if engine is None:
            return ()
        plan = engine.plan
        facts = [
            Fact("Engine", build_of(engine), engine.server_version),
            Fact("Model", plan.model_path.rsplit("/", 1)[-1], plan.model_path),
            Fact(
                "Context", f"{formats.count(plan.context)} tokens × {formats.plural(plan.streams, 'stream')}"
            ),
            Fact("Speculation", plan.speculation),
            Fact("Process", str(engine.pid) if engine.pid else formats.UNMEASURED, "the first of its group"),
            Fact("Ends with", "nobody: it is kept" if engine.keep else "the engine host"),
        ]
        if plan.installation:
            facts.insert(1, Fact("Environment", plan.installation, "where this vLLM is installed"))
        if (verified := engine.verified) is not None:
            moved = {True: ", drafts were verified", False: ", no draft was seen", None: ""}
            said = "generated a token" if verified.token_generated else "generated nothing"
            facts.append(Fact("Verified", said + moved[verified.speculation_moved]))
        for name, size in engine.buffers.items():
            facts.append(Fact(name, formats.size(size), "as the engine printed it"))
        return tuple(facts)

    def settings(self) -> tuple[Fact, ...]:
        """The settings of the start, each with the layer that set it."""
        plan = self.engine.plan if self.engine else None
        return tuple(
            Fact(setting.name, formats.UNMEASURED if setting.value is None else str(setting.value), layer)
            for setting in (plan.settings if plan else ())
            for layer in [f"{setting.layer}{f': {setting.why}' if setting.why else ''}"]
        )

    @property
    def command(self) -> str:
        """The command line of ours that starts the same."""
        return self.engine.plan.command if self.engine else ""

    @property
    def argv(self) -> str:
        """The command line that the engine was started with."""
        return shlex.join(self.engine.plan.argv) if self.engine else ""

    def cancel(self) -> None:
        """Give up the start."""
        if self.engine is not None:
            self.actions.cancel_start(self.engine)


def _quantile(value: float | None, below: float | None) -> str:
    return f"< {formats.duration(below)}" if value is None and below is not None else formats.duration(value)


def _gone() -> list[Value]:
    return [
        Value(name, formats.UNMEASURED, "not running")
        for name in ("Decode, one request", "Memory", "KV cache", "Requests")
    ]
