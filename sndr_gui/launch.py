"""The view-model of Launch: choose a model, set what matters, see the plan, start it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.protocol import (
    Engine,
    EngineKind,
    EngineState,
    Installation,
    LaunchPlan,
    ModelFile,
    PlannedPatches,
    Problem,
    ServerChoice,
    ServerInfo,
)
from sndr_gui.actions import Actions
from sndr_gui.client import HostClient
from sndr_gui.errors import HostError, HostRefused
from sndr_gui.home import SERVER_NAMES, StageRow, stage_rows
from sndr_gui.installations import InstallationsModel, title_of
from sndr_gui.launch_form import VLLM, Choice, Field, Form, choices_of, engine_of
from sndr_gui.launch_models import model_columns
from sndr_gui.launch_patches import PatchLine, patch_lines
from sndr_gui.rows import RowsModel
from sndr_gui.session import Session

_DEBOUNCE_MS = 250


@dataclass(frozen=True)
class SettingRow:
    """One resolved setting of the plan, as shown."""

    name: str
    value: str
    layer: str
    why: str


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

    def __init__(self, session: Session, actions: Actions, installations: InstallationsModel) -> None:
        super().__init__()
        self.session, self.actions, self.installations = session, actions, installations
        self.rows: RowsModel[ModelFile] = RowsModel(model_columns(), lambda model: model.id, self)
        self.form = Form()
        self.form_error = ""
        self.selected: ModelFile | None = None
        self.plan: LaunchPlan | None = None
        self.problem: Problem | None = None
        self.planning = False
        self._plan_task: asyncio.Task[None] | None = None
        self._shown = False
        self._started = ""
        self._titles: dict[str, str] = {}
        self.patches: PlannedPatches | None = None
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
        actions.started.connect(self._on_started)
        installations.listed.connect(self._on_servers)
        installations.changed.connect(self.changed)
        state.outdated.connect(self._on_outdated)
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

    def _on_outdated(self, part: str) -> None:
        # What patches and settings say is part of the plan.
        if part in ("patches", "settings"):
            self._titles = {}
            self._plan_soon()

    def _on_started(self) -> None:
        engine = self.session.state.running
        self._started = engine.id if engine is not None and self._shown else ""
        self.changed.emit()

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
        self.form = Form(server=self.form.server, installation=self.form.installation, keep=self.form.keep)
        self.form_error = ""
        self.plan = self.patches = None
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
        if form == self.form:
            return
        before, self.form = self.form, form
        if form.server is not before.server or form.installation != before.installation:
            offered = {field.name: {data for _, data in self.choices(field)} for field in self.fields()}
            kept = {
                name: value
                for name, value in form.values.items()
                if not offered.get(name) or value in offered[name]
            }
            self.form = replace(form, values=kept)
            self.plan = None
            self.selected_changed.emit()
        elif form.values.get("speculation") != before.values.get("speculation"):
            self.selected_changed.emit()
        self._plan_soon()

    def include(self, patch: str, wanted: bool) -> None:
        """Have a patch in this start, or leave it out of it."""
        form = self.form
        without = tuple(name for name in form.without if name != patch)
        added = tuple(name for name in form.added if name != patch)
        planned = self.patches
        usual = planned is not None and (patch in planned.chosen or patch in form.without)
        if not wanted and patch not in form.added:
            without = (*without, patch)
        if wanted and not usual:
            added = (*added, patch)
        self.set_form(replace(form, without=without, added=added))

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

    @property
    def engine_kind(self) -> EngineKind:
        """The engine that runs the chosen model."""
        return engine_of(self.selected)

    @property
    def environment(self) -> Installation | None:
        """vLLM's environment that this start gets."""
        return self.installations.meant(self.form.installation)

    @property
    def build(self) -> str:
        """What this start's vLLM is built for; empty for llama.cpp."""
        one = self.environment or self.missing
        return one.build if one is not None and self.engine_kind is VLLM else ""

    @property
    def missing(self) -> Installation | None:
        """The environment that has to be installed before this model can start."""
        if self.engine_kind is not VLLM or self.selected is None or self.selected.problem is not None:
            return None
        return self.installations.missing(self.form.installation)

    def environment_choices(self) -> tuple[Choice, ...]:
        """The environments that can be chosen, those to be installed first marked."""
        best = self.installations.meant("")
        found: list[Choice] = [(f"Automatic ({title_of(best)})" if best else "Automatic", "")]
        for one in self.installations.all:
            state = "" if one.present else "  ·  damaged" if one.problem else "  ·  not installed"
            found.append((title_of(one) + state, one.id))
        return tuple(found)

    def fields(self) -> tuple[Field, ...]:
        """What can be set for the engine that runs the chosen model."""
        return self.form.fields(self.engine_kind, self.build)

    def choices(self, field: Field) -> tuple[Choice, ...]:
        """What a field offers beside its default."""
        if self.engine_kind is VLLM:
            return choices_of(field, self.build, self.selected)
        if field.name in ("kv_type_k", "kv_type_v"):
            return tuple((self.kv_label(kind), kind) for kind in self.kv_types())
        if field.name == "speculation":
            return (("Off", "off"), *((kind, kind) for kind in self.speculation_kinds()))
        return field.choices

    def kv_types(self) -> tuple[str, ...]:
        """The KV cache types that this server offers."""
        server = self.server()
        return server.kv_types if server else ()

    def kv_label(self, kind: str) -> str:
        """What a KV type means for this model on this server, as far as the plan has said."""
        return self.plan.kv_types.get(kind, kind) if self.plan else kind

    def speculation_kinds(self) -> tuple[str, ...]:
        """The kinds of speculation that this server of llama.cpp offers for this model."""
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
        if self.selected is not None and self.selected.problem is None and self.missing is None:
            self._plan_task = self.session.tasks.start(self._make_plan(self.selected, self.form), "plan")
        else:
            self.plan, self.planning = None, False
            self.problem = self.selected.problem if self.selected else None
            self.plan_changed.emit()

    async def _make_plan(self, model: ModelFile, form: Form) -> None:
        try:
            self.plan = await self.session.client.plan(form.request(model, self.build))
            self.problem = None
            # Kept when a plan is refused: the patch that was left out must be there to be put back.
            self.patches = self.plan.patches
        except HostRefused as error:
            self.plan, self.problem = None, error.problem
        except HostError:
            # The status bar says that the host is away; the plan is made again when it is back.
            self.plan = None
        self.planning = False
        self.plan_changed.emit()
        if self.patches is not None and not self._titles:
            self._read_titles()

    def _read_titles(self) -> None:
        async def work(client: HostClient) -> None:
            self._titles = {patch.id: patch.title for patch in (await client.patches()).patches}
            self.plan_changed.emit()

        self.session.command("read the patches", work)

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

    def patch_lines(self) -> tuple[PatchLine, ...]:
        """The patches of the plan, those that are in first."""
        planned = self.patches
        if planned is None or self.engine_kind is not VLLM:
            return ()
        return patch_lines(planned, self._titles, self.form.without)

    # The start.

    @property
    def latest(self) -> Engine | None:
        """The engine that was last started here, while it is ready or has failed."""
        engine = self.session.state.engines.get(self._started)
        ended = (EngineState.READY, EngineState.BUSY, EngineState.FAILED)
        return engine if engine is not None and engine.state in ended else None

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
