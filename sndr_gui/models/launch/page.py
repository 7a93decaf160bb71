"""The view-model of Launch: choose a preset or a model, set what matters, see what it takes, start it."""

from __future__ import annotations

import enum
import shlex
from dataclasses import replace

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.base import Severity
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import PlannedPatches
from sndr_gui.host.choice import STARTING_STATES
from sndr_gui.host.session import Session
from sndr_gui.models.engine.installations import InstallationsModel
from sndr_gui.models.engine.now import decode_now
from sndr_gui.models.fit.memory_watch import MemoryWatch
from sndr_gui.models.launch.form import Form, PlannedForm
from sndr_gui.models.launch.models import LaunchModels
from sndr_gui.models.launch.patches import PatchLine, patch_lines
from sndr_gui.models.launch.placement import (
    GpuOffer,
    Place,
    Remedy,
    Room,
    gpu_offers,
    key_of,
    places,
    room,
    still_there,
)
from sndr_gui.models.launch.presets import LaunchPresets
from sndr_gui.models.launch.same_name import ends_its_namesake, room_of_namesake
from sndr_gui.models.launch.settings import SettingRow, planned, planned_value, resolved_rows, setting_rows
from sndr_gui.models.launch.sizes import fit_request
from sndr_gui.models.launch.start_watch import StartWatch
from sndr_gui.models.launch.subject import VLLM, Subject, of_model, of_preset
from sndr_gui.models.window.actions import Actions
from sndr_gui.models.window.replacing import idle_ones


class ListKind(enum.Enum):
    """The list in front; what is chosen in it is what Launch is about."""

    PRESETS = tr("Presets")
    MODELS = tr("Models")


class LaunchModel(PlannedForm):
    """The view-model of Launch: the form and plan of what is chosen, and the start of it."""

    def __init__(self, session: Session, actions: Actions, installations: InstallationsModel) -> None:
        super().__init__(session, installations)
        self.actions = actions
        self.models, self.presets = LaunchModels(session), LaunchPresets(session)
        self.watch = StartWatch(session.state, actions)
        self.memory = MemoryWatch(session.state, self.fit, lambda: self._shown and not self.watch.starting)
        self.settled.connect(self._on_settled)
        self.list = ListKind.PRESETS
        self._model = ""
        self._holders: object = ()
        self._titles: dict[str, str] = {}
        state = session.state
        self.models.changed.connect(self._on_models)
        self.presets.rows_changed.connect(self._on_presets)
        self.presets.filter_changed.connect(self._on_filter_changed)
        self.models.filter_changed.connect(self._on_filter_changed)
        self.presets.detail_changed.connect(self._on_presets)
        state.servers_changed.connect(self._on_servers)
        state.engines_changed.connect(self._on_engines)
        state.jobs_changed.connect(self.changed)
        session.connection.changed.connect(self._on_link)
        actions.changed.connect(self.changed)
        actions.started.connect(self.changed)
        actions.stale.connect(self._on_stale)
        self.watch.settled.connect(self._on_engine_settled)
        installations.listed.connect(self._on_servers)
        installations.changed.connect(self.changed)
        state.outdated.connect(self._on_outdated)

    def set_shown(self, shown: bool) -> None:
        """Plan and compute only while somebody looks."""
        self._shown = self.watch.shown = shown
        self.presets.set_shown(shown)
        if not shown:
            self._soon.stop()
            return
        self._choose_first()
        if self._old or not self.plan:
            self._plan_soon()

    # What is started.

    def show_list(self, kind: ListKind) -> None:
        """Bring a list to the front; what was last chosen in it is chosen again."""
        if kind is not self.list:
            self.list = kind
            self.subject = None
            self._choose_first()
            self.subject_changed.emit()

    def _choose_first(self) -> None:
        """Choose what was last chosen in the list in front, or the best that is in it."""
        if self.subject is not None:
            return
        if self.list is ListKind.MODELS:
            last = self.models.find(self._model) if self.models.shows(self._model) else None
            model = last or self.models.first
            if model is not None:
                self.select(model.id)
            return
        row = self.presets.row if self.presets.shows(self.presets.chosen) else self.presets.best
        if row is not None:
            self.select_preset(row.item.preset.id)

    def _on_filter_changed(self) -> None:
        """Start nothing that the list does not show: the choice goes to the best that it does."""
        subject = self.subject
        if subject is not None:
            shown = self.presets if subject.is_preset else self.models
            if subject.is_preset is not (self.list is ListKind.PRESETS) or shown.shows(subject.id):
                return
            self.subject = self.plan = self.patches = self.problem = None
            self.fit.clear()
        self._choose_first()
        if self.subject is None:
            self.subject_changed.emit()

    def select(self, model: str) -> None:
        """Choose a model of this machine, whichever list is in front."""
        found = self.models.find(model)
        if found is not None:
            self.list, self._model = ListKind.MODELS, model
            self._take(of_model(found))

    def select_preset(self, preset: str) -> None:
        """Choose a preset, whichever list is in front."""
        self.list = ListKind.PRESETS
        row = self.presets.find(preset)
        if row is None:
            # Not read yet: it is taken up as soon as it is there.
            self.subject = None
            self.presets.choose(preset)
            self.subject_changed.emit()
            return
        detail = self.presets.detail_of(preset)
        # Taken first: what choosing reads must find it chosen.
        self._take(of_preset(row.item, detail.model if detail else None))
        self.presets.choose(preset)

    def _take(self, subject: Subject) -> None:
        """Be about this; the form starts over when it is another, since another takes other values."""
        before, self.subject = self.subject, subject
        if before is not None and before.asks == subject.asks:
            written = (before.preset, before.model) != (subject.preset, subject.model)
            if before != subject or written:
                self.subject_changed.emit()
                self._plan_soon()
            if written and self._shown:
                self.fit.refresh()
            return
        self.form = Form(server=self.form.server, installation=self.form.installation, keep=self.form.keep)
        self._wrong = {}
        self.plan = self.patches = self.problem = None
        self.fit.clear()
        self.subject_changed.emit()
        self._plan_soon()
        if subject.is_preset:
            self._ask_fit()

    def _on_models(self) -> None:
        subject = self.subject
        if subject is not None and not subject.is_preset:
            found = self.models.find(subject.id)
            if found is None:
                self.subject = None
            else:
                self._take(of_model(found))
        if self._shown:
            self._choose_first()
            if subject is not None and self.subject is None:
                self.subject_changed.emit()

    def _on_presets(self) -> None:
        subject = self.subject
        if subject is not None and subject.is_preset:
            row, detail = self.presets.find(subject.id), self.presets.detail
            if row is None:
                self.subject = None
            elif detail is not None and detail.item.preset.id == subject.id:
                self._take(of_preset(row.item, detail.model))
            else:
                self._take(of_preset(row.item))
        if self._shown and self.list is ListKind.PRESETS:
            self._choose_first()

    def _on_servers(self) -> None:
        self.subject_changed.emit()
        self._plan_soon()

    def _on_engine_settled(self) -> None:
        # What an engine holds, or held, is taken or free from now on.
        if self._shown:
            self.fit.refresh()

    def _on_engines(self) -> None:
        """Plan again when other engines are there, or leave: room and names are others."""
        state = self.session.state
        if state.holders != self._holders:
            self._holders = state.holders
            there = still_there(self.form.instead_of, state.live)
            if there != self.form.instead_of:
                self.set_form(replace(self.form, instead_of=there))
            else:
                self._plan_soon()
        self.changed.emit()

    # The place among the engines that run.

    def places(self) -> tuple[Place, ...]:
        """Return the places to choose from."""
        return places(self.session.state.live, self.form.instead_of, self.plan)

    @property
    def place(self) -> str:
        """The key of the place that is chosen."""
        return key_of(self.form.instead_of)

    def gpus(self) -> tuple[GpuOffer, ...]:
        """Return the GPUs to choose from."""
        host = self.session.state.host
        return gpu_offers(host.gpus if host is not None else (), self.form.gpus, self.plan, self.build)

    def use_gpu(self, uuid: str, wanted: bool) -> None:
        """Compute on this GPU or not; with none chosen the freest that suffice are taken."""
        host = self.session.state.host
        chosen = {*self.form.gpus, uuid} if wanted else {*self.form.gpus} - {uuid}
        here = tuple(gpu.uuid for gpu in (host.gpus if host is not None else ()))
        self.set_form(replace(self.form, gpus=tuple(one for one in here if one in chosen)))

    def room(self) -> Room:
        """Return the plan's words on room."""
        if self.plan is not None and self.form.instead_of is None and ends_its_namesake(self.plan):
            return room_of_namesake(self.plan)
        return room(self.plan, self.fit.report if not self.fit.waiting else None)

    def apply_remedy(self, remedy: Remedy) -> None:
        """Take another place, or another name."""
        if remedy.name:
            self.set_form(replace(self.form, name=remedy.name))
        else:
            self.set_form(replace(self.form, instead_of=remedy.instead_of))

    def _on_outdated(self, part: str) -> None:
        # What patches and settings say is part of the plan.
        if part in ("patches", "settings"):
            self._titles = {}
            self._plan_soon()

    def _on_stale(self) -> None:
        self.plan = None
        self._plan_soon()

    def _on_link(self) -> None:
        self.changed.emit()
        if self.session.connection.connected:
            self._plan_soon()

    # The form.

    def include(self, patch: str, wanted: bool) -> None:
        """Have a patch in this start, or leave it out of it."""
        form = self.form
        without = tuple(name for name in form.without if name != patch)
        added = tuple(name for name in form.added if name != patch)
        planned = self.known_patches
        usual = planned is not None and (patch in planned.chosen or patch in form.without)
        if not wanted and patch not in form.added:
            without = (*without, patch)
        if wanted and not usual:
            added = (*added, patch)
        self.set_form(replace(form, without=without, added=added))

    def _on_settled(self) -> None:
        self._ask_fit()
        if self.known_patches is not None and not self._titles and not self.planning:
            self._read_titles()

    def _read_titles(self) -> None:
        async def work(client: AsyncControlClient) -> None:
            self._titles = {patch.id: patch.title for patch in (await client.call(ops.PATCHES)).patches}
            self.plan_changed.emit()

        self.session.read("read the patches", work)

    # What it takes.

    def _ask_fit(self) -> None:
        """Ask what the start takes; of a model its plan says the most, so that it is waited for."""
        subject = self.subject
        if subject is None or (subject.problem is not None and not subject.is_preset):
            self.fit.clear()
        elif self._shown and not self.form_error and (subject.is_preset or self.plan or not self.planning):
            self.fit.ask(fit_request(subject, self.form, self.build, self.plan))

    def size(self, name: str) -> int | None:
        """Context or streams as they stand now: as set, as computed, or as planned; None while not known."""
        given = self.form.values.get(name)
        if given is not None:
            return int(given)
        report = self.fit.report
        if report is not None:
            return report.context if name == "context" else report.streams
        value = planned_value(self.plan, name)
        return value if isinstance(value, int) else None

    @property
    def longest(self) -> int | None:
        """The longest context that what is chosen can have, where that is known."""
        curve = self.fit.report.curve if self.fit.report else ()
        return (self.subject.longest if self.subject else None) or (curve[-1].context if curve else None)

    @property
    def measured(self) -> float | None:
        """Tokens a second that the engine measures right now, when it runs what is chosen."""
        subject = self.subject
        if subject is None:
            return None
        for engine in reversed(self.session.state.live):
            mine = engine.plan.preset if subject.is_preset else engine.plan.model
            if mine == subject.id and (rate := decode_now(self.session.state, engine)):
                return rate
        return None

    @property
    def refusal(self) -> str:
        """The reason why what is chosen cannot be started as it is set; empty where a plan says nothing."""
        if self.problem is not None:
            return self.problem.message
        errors = [one for one in self.plan.findings if one.severity is Severity.ERROR] if self.plan else []
        return errors[0].message if errors else ""

    @property
    def told(self) -> bool:
        """True when what stops the plan of a preset stands on its card already, among what is missing."""
        row = self.presets.row if self.subject is not None and self.subject.is_preset else None
        missing = row.verdict.missing if row is not None and row.verdict is not None else ()
        return self.problem is not None and self.problem.reason in [finding.reason for finding in missing]

    @property
    def equivalent_command(self) -> str:
        """The command line that does the same as Start; the plain one until the plan says more."""
        if self.plan is not None:
            return self.plan.command
        return self.subject.command if self.subject is not None else ""

    # The plan in words.

    def setting_rows(self) -> tuple[SettingRow, ...]:
        """The settings with the layer that set each: of the plan, or of the preset while there is none."""
        detail = self.presets.detail if self.subject is not None and self.subject.is_preset else None
        if self.plan is None and detail is not None:
            return resolved_rows(detail.resolved)
        return setting_rows(self.plan)

    def planned(self, name: str) -> str:
        """Return the plan's value of a setting, shown where the form leaves it open."""
        return planned(self.plan, name)

    @property
    def known_patches(self) -> PlannedPatches | None:
        """The patches of the plan, or those that the preset would get while there is no plan."""
        preset = self.subject is not None and self.subject.is_preset
        return self.patches or (self.presets.patches if preset else None)

    def patch_lines(self) -> tuple[PatchLine, ...]:
        """The patches of the plan, those that are in first."""
        planned = self.known_patches
        if planned is None or self.engine_kind is not VLLM:
            return ()
        return patch_lines(planned, self._titles, self.form.without)

    # The start.

    @property
    def starts_already(self) -> bool:
        """True while an engine under this plan's name starts: to start it again would end that."""
        name = self.plan.name if self.plan is not None else ""
        return any(e.name == name and e.state in STARTING_STATES for e in self.session.state.live)

    @property
    def can_start(self) -> bool:
        """True when the plan can be started now."""
        ready = self.plan is not None and self.plan.startable and self.subject is not None
        busy = self.actions.pending("start") or self.starts_already
        return (
            ready and not self._old and not self.form_error and self.session.connection.connected and not busy
        )

    def start(self) -> None:
        """Start the plan."""
        if self.can_start and self.plan is not None and self.subject is not None:
            # Who chose the place has said which engine goes; that it answers just now they may not know.
            chosen = self.form.instead_of is not None
            idle = idle_ones(self.session.state, self.plan) if chosen else ()
            self.actions.start_plan(self.plan, self.form.request(self.subject, self.build), idle)

    @property
    def can_add_on_demand(self) -> bool:
        """True when the plan may be left to requests: also one for which there is no room now."""
        ready = self.plan is not None and self.subject is not None and not self._old and not self.form_error
        return ready and self.session.connection.connected and not self.actions.pending("add on demand")

    @property
    def on_demand_command(self) -> str:
        """The command line that leaves the same to requests: it keeps nothing and ends nothing beforehand."""
        words = shlex.split(self.equivalent_command)
        # They stand at its end.
        while words[-2:-1] == ["--instead-of"]:
            del words[-2:]
        for option in ("--replace", "--keep"):
            if words[-1:] == [option]:
                del words[-1]
        return shlex.join([*words, "--on-demand"])

    def add_on_demand(self) -> None:
        """Let requests load what is on the page, instead of starting it."""
        if self.can_add_on_demand and self.subject is not None:
            asked = self.form.request(self.subject, self.build)
            self.actions.add_on_demand(asked.model_copy(update={"keep": False, "instead_of": None}))
