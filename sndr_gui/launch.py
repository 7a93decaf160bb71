"""The view-model of Launch: choose a model, set what matters, see the plan, start it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.protocol import (
    Engine,
    EngineState,
    LaunchPlan,
    LaunchRequest,
    ModelFile,
    ModelOrigin,
    Overrides,
    Problem,
    ServerChoice,
    ServerInfo,
)
from sndr_gui import formats
from sndr_gui.actions import Actions
from sndr_gui.client import HostClient
from sndr_gui.errors import HostError, HostRefused
from sndr_gui.home import SERVER_NAMES, StageRow, stage_rows
from sndr_gui.rows import Column, RowsModel
from sndr_gui.session import Session

_DEBOUNCE_MS = 250


@dataclass(frozen=True)
class Form:
    """What the person set; None and the empty word leave it to the layers below."""

    context: int | None = None
    streams: int | None = None
    kv_type_k: str = ""
    kv_type_v: str = ""
    speculation: str = ""
    server: ServerChoice = ServerChoice.AUTO
    keep: bool = False

    def request(self, model: str) -> LaunchRequest:
        """The launch request that this form makes of a model."""
        return LaunchRequest(
            model=model,
            server=self.server,
            keep=self.keep,
            overrides=Overrides(
                context=self.context,
                streams=self.streams,
                kv_type_k=self.kv_type_k or None,
                kv_type_v=self.kv_type_v or None,
                speculation=self.speculation or None,
            ),
        )


@dataclass(frozen=True)
class SettingRow:
    """One resolved setting of the plan, as shown."""

    name: str
    value: str
    layer: str
    why: str


def model_columns() -> list[Column[ModelFile]]:
    """The columns of the list of models."""

    def tone(model: ModelFile) -> str:
        return "bad" if model.problem else "muted"

    def note(model: ModelFile) -> str:
        if model.problem is not None:
            return model.problem.message
        parts = ["bundled"] if model.origin is ModelOrigin.BUNDLED else []
        if model.format != "GGUF":
            parts.append(model.format)
        if model.mtp_layers:
            parts.append("MTP")
        if model.embedding_only:
            parts.append("embeddings")
        return " · ".join(parts)

    def tip(model: ModelFile) -> str:
        return model.problem.sentence() if model.problem else model.path

    return [
        Column(
            "Model",
            lambda m: m.name,
            lambda m: m.name.casefold(),
            lambda m: "bad" if m.problem else "",
            tip=tip,
        ),
        Column("Size", lambda m: formats.size(m.size), lambda m: m.size, tone, right=True, tip=tip),
        Column("Quant", lambda m: m.quantization or formats.UNMEASURED, tone=tone, tip=tip),
        Column(
            "Context", lambda m: formats.count(m.context), lambda m: m.context or 0, tone, right=True, tip=tip
        ),
        Column("", note, tone=tone, tip=tip),
    ]


class LaunchModel(QObject):
    """What Launch shows.

    Signals:
        models_changed: the list of models is new
        selected_changed: another model was chosen
        plan_changed: the plan, its problem, or whether one is being made, is new
        changed: the start or what is under way moved on
    """

    models_changed = Signal()
    selected_changed = Signal()
    plan_changed = Signal()
    changed = Signal()

    def __init__(self, session: Session, actions: Actions) -> None:
        super().__init__()
        self.session, self.actions = session, actions
        self.rows: RowsModel[ModelFile] = RowsModel(model_columns(), lambda model: model.id, self)
        self.form = Form()
        self.form_error = ""
        self.selected: ModelFile | None = None
        self.plan: LaunchPlan | None = None
        self.problem: Problem | None = None
        self.planning = False
        self._plan_task: asyncio.Task[None] | None = None
        self._shown = False
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_DEBOUNCE_MS)
        self._soon.timeout.connect(self._start_planning)
        state = session.state
        state.models_changed.connect(self._on_models)
        state.servers_changed.connect(self._on_servers)
        state.engines_changed.connect(self.changed)
        state.jobs_changed.connect(self.changed)
        session.link.changed.connect(self._on_link)
        actions.changed.connect(self.changed)
        self._on_models()

    def set_shown(self, shown: bool) -> None:
        """Plan only while somebody looks."""
        self._shown = shown
        if not shown:
            self._soon.stop()
        elif not self.plan or self._soon.isActive():
            self._plan_soon()

    # The list of models.

    def _on_models(self) -> None:
        page = self.session.state.models
        models = page.models if page else ()
        self.rows.set_rows(models)
        known = {model.id: model for model in models}
        if self.selected is not None and self.selected.id in known:
            self.selected = known[self.selected.id]
        else:
            self.selected = next((model for model in models if model.problem is None), None)
            self.selected_changed.emit()
            self._plan_soon()
        self.models_changed.emit()

    def _on_servers(self) -> None:
        self.selected_changed.emit()
        self._plan_soon()

    def _on_link(self) -> None:
        self.changed.emit()
        if self.session.link.connected:
            self._plan_soon()

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that are looked through for models."""
        page = self.session.state.models
        return page.folders if page else ()

    def set_filter(self, text: str) -> None:
        """Show only the models that hold these words."""
        self.rows.set_filter(text)
        self.models_changed.emit()

    def select(self, model: str) -> None:
        """Choose a model; the form starts over, since another model takes other values."""
        chosen = next((row for row in self.rows.shown if row.id == model), None)
        if chosen is None or (self.selected is not None and chosen.id == self.selected.id):
            return
        self.selected = chosen
        self.form = Form(server=self.form.server, keep=self.form.keep)
        self.form_error = ""
        self.plan = None
        self.selected_changed.emit()
        self._plan_soon()

    def add_folder(self, folder: str) -> None:
        """Look for models in one more folder."""
        entry = self.session.state.setting("models.folders")
        known = [str(value) for value in (entry.value if entry and entry.value else ())]
        if folder in known:
            self.rescan()
            return

        async def work(client: HostClient) -> None:
            self.session.state.set_settings(
                await client.change_settings({"models.folders": [*known, folder]})
            )
            self.session.state.set_models(await client.scan_models())

        self.session.command("add folder", work)

    def rescan(self) -> None:
        """Look through the folders again."""

        async def work(client: HostClient) -> None:
            self.session.state.set_models(await client.scan_models())

        self.session.command("rescan", work)

    # The form.

    def set_form(self, form: Form) -> None:
        """Take over what the person set, and plan again."""
        if form != self.form:
            server_changed = form.server is not self.form.server
            self.form = form
            if server_changed:
                server = self.server()
                types = server.kv_types if server else ()
                self.form = replace(
                    form,
                    kv_type_k=form.kv_type_k if form.kv_type_k in types else "",
                    kv_type_v=form.kv_type_v if form.kv_type_v in types else "",
                )
                self.selected_changed.emit()
            self._plan_soon()

    def set_form_error(self, sentence: str) -> None:
        """Say what cannot be taken of what was typed; nothing starts until it is mended."""
        if sentence != self.form_error:
            self.form_error = sentence
            self.changed.emit()

    def server(self) -> ServerInfo | None:
        """The server that the form's choice means now."""
        page = self.session.state.servers
        if page is None:
            return None
        choice = page.next_start if self.form.server is ServerChoice.AUTO else self.form.server
        return next((server for server in page.servers if server.choice is choice), None)

    def server_choices(self) -> tuple[tuple[str, ServerChoice], ...]:
        """The servers that can be chosen."""
        page = self.session.state.servers
        choices: list[tuple[str, ServerChoice]] = []
        if page is not None:
            auto = f"Automatic ({SERVER_NAMES[page.next_start].lower()})" if page.next_start else "Automatic"
            choices.append((auto, ServerChoice.AUTO))
            for server in page.servers:
                if server.present and server.problem is None:
                    choices.append((f"{SERVER_NAMES[server.choice]} · {server.version}", server.choice))
        return tuple(choices)

    def kv_types(self) -> tuple[str, ...]:
        """The KV cache types that this server offers."""
        server = self.server()
        return server.kv_types if server else ()

    def kv_label(self, kind: str) -> str:
        """What a KV type means for this model on this server, as far as the plan has said."""
        return self.plan.kv_types.get(kind, kind) if self.plan else kind

    def speculation_kinds(self) -> tuple[str, ...]:
        """The kinds of speculation that this server offers for this model."""
        server, model = self.server(), self.selected
        kinds = server.speculation if server else ()
        has_mtp = model is not None and model.mtp_layers > 0
        return tuple(
            kind for kind in kinds if kind not in ("off", "none") and (kind != "draft-mtp" or has_mtp)
        )

    # The plan.

    def _plan_soon(self) -> None:
        if self._shown and self.selected is not None and self.session.link.connected:
            self.planning = True
            self._soon.start()
            self.plan_changed.emit()

    def _start_planning(self) -> None:
        if self._plan_task is not None:
            self._plan_task.cancel()
        if self.selected is not None and self.selected.problem is None:
            self._plan_task = self.session.tasks.start(self._make_plan(self.selected.id, self.form), "plan")
        else:
            self.plan, self.planning = None, False
            self.problem = self.selected.problem if self.selected else None
            self.plan_changed.emit()

    async def _make_plan(self, model: str, form: Form) -> None:
        try:
            self.plan = await self.session.client.plan(form.request(model))
            self.problem = None
        except HostRefused as error:
            self.plan, self.problem = None, error.problem
        except HostError:
            # The status bar says that the host is away; the plan is made again when it is back.
            self.plan = None
        self.planning = False
        self.plan_changed.emit()

    def setting_rows(self) -> tuple[SettingRow, ...]:
        """The plan's settings, each with the layer that set it."""
        settings = self.plan.settings if self.plan else ()
        return tuple(
            SettingRow(entry.name.replace("_", " "), shown_value(entry.value), entry.layer.value, entry.why)
            for entry in settings
        )

    def planned(self, name: str) -> str:
        """What the plan says for one setting, shown where the form leaves it open."""
        settings = self.plan.settings if self.plan else ()
        entry = next((setting for setting in settings if setting.name == name), None)
        return shown_value(entry.value) if entry else ""

    # The start.

    @property
    def can_start(self) -> bool:
        """Whether the plan can be started now."""
        ready = self.plan is not None and self.plan.startable and not self.planning and not self.form_error
        return (
            ready and self.session.link.connected and not self.actions.pending("start") and not self.starting
        )

    @property
    def starting(self) -> Engine | None:
        """The engine that is being started."""
        engine = self.session.state.running
        states = (EngineState.PREPARING, EngineState.STARTING)
        return engine if engine is not None and engine.state in states else None

    @property
    def replaces(self) -> str:
        """The engine that a start would replace."""
        engine = self.session.state.running
        return engine.name if engine is not None and not self.starting else ""

    def stages(self, now: float) -> tuple[StageRow, ...]:
        """The stages of the start under way."""
        engine = self.starting
        return stage_rows(engine.stages, now) if engine else ()

    def start(self) -> None:
        """Start the plan."""
        if self.can_start and self.plan is not None:
            self.actions.start_plan(self.plan)

    def cancel(self) -> None:
        """Give up the start."""
        if (engine := self.starting) is not None:
            self.actions.cancel_start(engine)


def shown_value(value: object) -> str:
    """A setting's value as a person reads it."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
