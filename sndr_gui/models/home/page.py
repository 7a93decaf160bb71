"""The view-model of Home: the engine that runs, how it does, who can reach it, and which server runs it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from engine_host.protocol.endpoint.example import EXAMPLE_QUESTION
from engine_host.protocol.engines import Backend, Engine, EngineState, ServerInfo, ServerPage
from engine_host.protocol.errors import Problem
from engine_host.protocol.host import Endpoint, Reach
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind, ServerChoice
from engine_host.protocol.models import ModelFile
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.engine.last_ran import LastRan
from sndr_gui.models.engine.metrics import EngineMetrics, Metric
from sndr_gui.models.engine.start import (
    SERVER_NAMES,
    PageMode,
    StageRow,
    build_of,
    page_mode,
    stage_rows,
    start_age,
    start_failed,
    word_for,
)
from sndr_gui.models.home.alerts import Alerts
from sndr_gui.models.home.engines import EngineRow, engine_rows
from sndr_gui.models.home.no_gpu import no_gpu_word, told_of_no_gpu
from sndr_gui.models.home.on_demand import OnDemandRows
from sndr_gui.models.window.actions import Actions
from sndr_gui.models.window.live_model import LiveModel
from sndr_gui.models.window.stop_engine import StopEngine


@dataclass(frozen=True)
class ServerRow:
    """One llama.cpp server, as shown."""

    name: str
    about: str
    state: str
    tone: str
    speed: str


class HomeModel(LiveModel):
    """The model of Home."""

    def __init__(self, session: Session, actions: Actions) -> None:
        super().__init__()
        self.session, self.actions = session, actions
        self.stopping = StopEngine(session, actions)
        self.stopping.changed.connect(self.changed)
        state = session.state
        for signal in (
            state.host_changed,
            state.engines_changed,
            state.jobs_changed,
            state.servers_changed,
            state.models_changed,
            state.on_demand_changed,
            session.connection.changed,
            actions.changed,
        ):
            signal.connect(self.changed)
        self.last = LastRan(session, actions)
        self.on_demand = OnDemandRows(session)
        self.alerts = Alerts(session)
        self.metrics = EngineMetrics(session)
        self.metrics.changed.connect(self.throttle.trigger)
        state.request_changed.connect(self.throttle.trigger)

    # What is shown.

    @property
    def engine(self) -> Engine | None:
        """The engine on the page."""
        return self.session.state.engine

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
            return self.machine
        parts = [engine.name, build_of(engine)]
        if engine.state in (EngineState.READY, EngineState.BUSY) and engine.ready_at:
            parts.append(tr("up {duration}", duration=formats.duration(time.time() - engine.ready_at)))
        else:
            parts.append(formats.inside(word_for(engine)))
        if self.session.connection.lost_at is not None:
            parts.append(
                tr("last seen {age}", age=formats.age(time.time() - self.session.connection.lost_at))
            )
        return "  ·  ".join(parts)

    @property
    def about_gpus(self) -> str:
        """Why no GPU is listed and what to do, where the line below the title is about the machine."""
        return told_of_no_gpu(self.session.state.host) if self.engine is None else ""

    @property
    def machine(self) -> str:
        """This machine in a few words."""
        host = self.session.state.host
        if host is None:
            return ""
        if host.gpus:
            names: dict[str, int] = {}
            for gpu in host.gpus:
                names[gpu.name] = names.get(gpu.name, 0) + 1
            gpus = ", ".join(f"{n} × {name}" if n > 1 else name for name, n in names.items())
        else:
            gpus = no_gpu_word(host)
        threads = tr("{cpu_threads} CPU threads", cpu_threads=host.cpu_threads)
        return "  ·  ".join((host.hostname, gpus, threads, f"{formats.size(host.ram_total)} RAM"))

    def values(self) -> tuple[Metric, ...]:
        """Return the four cards: decode, memory, KV cache, requests."""
        return self.metrics.values()

    def stages(self) -> tuple[StageRow, ...]:
        """Return the stages of the newest start."""
        engine = self.engine
        if engine is None:
            return ()
        return stage_rows(engine.stages, engine.ended_at or time.time(), start_failed(engine))

    @property
    def start_age(self) -> str:
        """The time that the start has taken."""
        engine = self.engine
        return start_age(engine) if engine else ""

    def problem(self) -> Problem | None:
        """Return the problem that made the engine fail."""
        engine = self.engine
        return engine.problem if engine is not None and engine.state is EngineState.FAILED else None

    # The engines side by side.

    def engines(self) -> tuple[EngineRow, ...]:
        """Return the rows of the engines, where there are several."""
        return engine_rows(self.session, self.actions, self.stopping)

    def choose(self, engine_id: str) -> None:
        """Be about this engine, here and on every page."""
        if (engine := self.session.state.engines.get(engine_id)) is not None:
            self.session.state.choose(engine)

    def stop_engine(self, engine_id: str) -> None:
        """Stop one of the engines; asks once more while it answers requests."""
        if (engine := self.session.state.engines.get(engine_id)) is not None:
            self.stopping.stop(engine)

    # The endpoint.

    @property
    def endpoint(self) -> Endpoint | None:
        """The endpoint that editors connect to."""
        host = self.session.state.host
        return host.endpoint if host else None

    def reach(self) -> str:
        """Return who can reach the endpoint, in a sentence."""
        endpoint = self.endpoint
        if endpoint is None:
            return ""
        if endpoint.url is None:
            return tr("Not served: port {wanted_port} could not be used.", wanted_port=endpoint.wanted_port)
        if where := self.session.host:
            return tr(
                "On {where}: what asks this address must run there. From here its engines are asked so:",
                where=where,
            )
        who = tr("Reachable from this machine only.")
        if endpoint.reach is Reach.NETWORK:
            who = tr("Reachable from your network.")
        needed = " " + tr("API key required: `sndr keys create NAME` makes one and prints it once.")
        key = needed if endpoint.key_required else (" " + tr("No API key required."))
        moved = (
            (" " + tr("Port {wanted_port} was taken.", wanted_port=endpoint.wanted_port))
            if endpoint.port != endpoint.wanted_port
            else ""
        )
        return formats.strip_backticks(who + key + moved)

    def snippet(self, language: str) -> str:
        """Return a program that talks to the endpoint, ready to paste."""
        endpoint, engine = self.endpoint, self.session.state.running
        url = (endpoint.url if endpoint else None) or "http://127.0.0.1:8020/v1"
        demo = self.actions.demo_model()
        model = engine.name if engine else demo.name if demo else "MODEL"
        locked = endpoint is not None and endpoint.key_required
        key = "KEY" if locked else "local"
        needs_key = "  -H 'Authorization: Bearer KEY' \\\n" if locked else ""
        message = f'{{"role": "user", "content": "{EXAMPLE_QUESTION}"}}'
        if language == "curl":
            body = f'"model": "{model}", "stream": true, "messages": [{message}]'
            return (
                f"curl -N {url}/chat/completions \\\n"
                f"{needs_key}"
                f"  -H 'Content-Type: application/json' \\\n"
                f"  -d '{{{body}}}'"
            )
        return (
            "from openai import OpenAI\n"
            f'client = OpenAI(base_url="{url}", api_key="{key}")\n'
            "stream = client.chat.completions.create(\n"
            f'    model="{model}", stream=True, messages=[{message}])\n'
            "for chunk in stream:\n"
            "    if chunk.choices:\n"
            '        print(chunk.choices[0].delta.content or "", end="", flush=True)'
        )

    # The llama.cpp servers.

    def servers(self) -> tuple[ServerRow, ...]:
        """Return the servers that are here or could be."""
        page = self.session.state.servers
        if page is None:
            return ()
        runs = {engine.server for engine in self.session.state.live}
        rows = []
        for server in page.servers:
            if server.choice is ServerChoice.OWN and not server.present and server.problem is None:
                continue
            state, tone = self._server_state(server, page, runs)
            devices = ", ".join(server.devices) or "CPU"
            about = f"{server.version or server.path}  ·  {devices}" if server.present else ""
            if server.problem is not None:
                fix = f" {server.problem.fix.text}" if server.problem.fix else ""
                about = formats.strip_backticks(server.problem.message + fix)
            speed = speed_of(page, server.choice) if server.present else ""
            rows.append(ServerRow(SERVER_NAMES[server.choice], about, state, tone, speed))
        return tuple(rows)

    @staticmethod
    def _server_state(server: ServerInfo, page: ServerPage, runs: set[ServerChoice]) -> tuple[str, str]:
        if not server.present:
            return tr("not installed"), "muted"
        if server.problem is not None:
            return tr("does not work"), "bad"
        if server.choice in runs:
            return tr("running"), "good"
        return (tr("next start"), "accent") if page.next_start is server.choice else (tr("ready"), "muted")

    def gain(self) -> str:
        """Return the speed-up that was measured, in a sentence."""
        page = self.session.state.servers
        if page is None:
            return ""
        comparison = page.comparison
        if comparison is None:
            return tr("The servers have not been compared on this machine.")
        built = {row.streams: row for row in comparison.rows if row.server is ServerChoice.BUILT}
        plain = {row.streams: row for row in comparison.rows if row.server is ServerChoice.PREBUILT}
        parts = []
        for streams in sorted(set(built) & set(plain)):
            before, after = plain[streams].decode_rate, built[streams].decode_rate
            if before > 0:
                at = formats.plural(streams, "stream")
                parts.append(
                    tr("{times:,.2g} times as fast at {streams}", times=after / before, streams=at)
                    if after > 2 * before
                    else tr("{share:+.0%} at {streams}", share=after / before - 1, streams=at)
                )
        if not parts:
            return tr("Only one server was measured.")
        age = formats.age(time.time() - comparison.at)
        how = f"{comparison.model}, {formats.plural(comparison.repeats, 'repeat')}, {age}"
        return tr("Built against prebuilt: {parts} ({how}).", parts=", ".join(parts), how=how)

    def job(self) -> Job | None:
        """Return the build or measurement under way, or one that failed and is the newest."""
        state = self.session.state
        live = state.live_job(JobKind.ENGINE_BUILD, JobKind.ENGINE_COMPARE)
        if live is not None:
            return live
        newest = state.newest_job(JobKind.ENGINE_BUILD, JobKind.ENGINE_COMPARE)
        ended_badly = newest is not None and newest.state in (JobState.FAILED, JobState.CANCELLED)
        return newest if ended_badly else None

    @property
    def backends(self) -> tuple[tuple[str, Backend], ...]:
        """The backends that llama.cpp can be built for, with their labels."""
        return (
            (tr("Automatic"), Backend.AUTO),
            ("CUDA", Backend.CUDA),
            ("Vulkan", Backend.VULKAN),
            ("CPU", Backend.CPU),
        )

    @property
    def can_build(self) -> bool:
        """True while llama.cpp can be built."""
        page = self.session.state.servers
        return self.session.connection.connected and page is not None and self.actions.live_job() is None

    @property
    def built(self) -> bool:
        """True when a built server is here."""
        page = self.session.state.servers
        servers = page.servers if page else ()
        return any(server.choice is ServerChoice.BUILT and server.present for server in servers)

    @property
    def can_measure(self) -> bool:
        """True when both servers are here to be measured."""
        return self.can_build and self.built

    # What can be done.

    def stop(self) -> None:
        """Stop the engine; asks once more while it answers requests."""
        if (engine := self.session.state.running) is not None:
            self.stopping.stop(engine)

    def unload(self, name: str) -> None:
        """Stop a model that a request loaded; asks once more while it answers requests."""
        engine, unload = self.session.state.live_named(name), partial(self.on_demand.unload, name)
        if engine is not None:
            self.stopping.stop(engine, unload)
        else:
            unload()

    def relaunch(self) -> None:
        """Start the same again; asks once more while requests are answered."""
        if (engine := self.engine) is not None:
            self.stopping.relaunch(engine)

    @property
    def demo_to_start(self) -> ModelFile | None:
        """The bundled model, while its start is offered: what ran last is offered as such, and only once."""
        demo, last = self.actions.demo_model(), self.last.engine
        if demo is None or self.session.state.live:
            return None
        ran = last is not None and last.plan.engine == EngineKind.LLAMA_CPP and last.plan.model == demo.id
        return None if ran else demo

    def start_demo(self) -> None:
        """Start the bundled model."""
        if (model := self.actions.demo_model()) is not None:
            self.actions.start_model(model.id)

    def cancel(self) -> None:
        """Give up the start."""
        if (engine := self.engine) is not None:
            self.actions.cancel_start(engine)


def speed_of(page: ServerPage, choice: ServerChoice) -> str:
    """Return the measured decode speed of one server, with its spread."""
    rows = [row for row in (page.comparison.rows if page.comparison else ()) if row.server is choice]
    if not rows:
        # That nothing was measured at all is said once, below the servers.
        return tr("not measured") if page.comparison is not None else ""
    row = min(rows, key=lambda entry: entry.streams)
    spread = max(row.high - row.decode_rate, row.decode_rate - row.low)
    return tr(
        "{rate} ± {spread} at {streams}",
        rate=formats.rate(row.decode_rate),
        spread=formats.number(spread, ".1f"),
        streams=formats.plural(row.streams, "stream"),
    )
