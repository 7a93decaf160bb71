"""The form of Launch: what is set, the launch request that it makes, and the plan of that."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.client import HostError
from engine_host.protocol.engine_settings.row import EngineSetting
from engine_host.protocol.engine_settings.table import Overrides, means_something, settings_of
from engine_host.protocol.engines import Installation
from engine_host.protocol.errors import Fix, Problem
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind, LaunchPlan, LaunchRequest, ServerChoice
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import PatchChoice, PlannedPatches
from sndr_gui.host.session import Session
from sndr_gui.models.engine.installations import InstallationsModel
from sndr_gui.models.fit.query import FitQuery
from sndr_gui.models.launch.offers import Offers
from sndr_gui.models.launch.placement import Ended
from sndr_gui.models.launch.subject import LLAMA_CPP, VLLM, Subject

_DEBOUNCE_MS = 250
# A plan that is there sooner is shown without a word in between.
_PATIENCE_MS = 300


@dataclass(frozen=True)
class Form:
    """The values that the person set; a setting that has none is left to the layers below."""

    values: Mapping[str, Any] = field(default_factory=dict)
    server: ServerChoice = ServerChoice.AUTO
    installation: str = ""
    keep: bool = False
    without: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    name: str = ""
    instead_of: Ended = None
    gpus: tuple[str, ...] = ()

    def fields(self, engine: EngineKind, build: str) -> tuple[EngineSetting, ...]:
        """Return the settings of an engine, without those of another build or without a meaning now."""
        return tuple(
            entry
            for entry in settings_of(engine)
            if entry.build in ("", build) and means_something(entry.name, self.values)
        )

    def given(self, engine: EngineKind, build: str) -> dict[str, Any]:
        """Return the values that were set, of the settings that the engine knows."""
        return {
            entry.name: self.values[entry.name]
            for entry in self.fields(engine, build)
            if self.values.get(entry.name) is not None
        }

    def request(self, subject: Subject, build: str) -> LaunchRequest:
        """Return the launch request for a model or a preset."""
        vllm = subject.engine is VLLM
        return LaunchRequest(
            **subject.asks,
            server=ServerChoice.AUTO if vllm else self.server,
            installation=(self.installation or None) if vllm else None,
            keep=self.keep,
            name=self.name or None,
            instead_of=self.instead_of,
            gpus=self.gpus,
            overrides=Overrides.model_validate(self.given(subject.engine, build)),
            patches=PatchChoice(off=self.without, on=self.added) if vllm else PatchChoice(),
        )


def refusal(name: str, value: Any) -> str:
    """Return what is wrong with the value of a setting; empty where it can be taken."""
    try:
        Overrides.model_validate({name: value})
    except ValidationError as error:
        return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    return ""


def words_of(text: str) -> tuple[tuple[str, ...], str]:
    """Split a line into arguments as a shell would, or say what is wrong with it."""
    try:
        return tuple(shlex.split(text)), ""
    except ValueError as error:
        return (), tr("not a list of arguments: {error}", error=error)


class PlannedForm(QObject):
    """The form of one start with its plan, which is made anew when something that it is made of changes.

    Signals:
        subject_changed: something else is started, or other fields or choices are there for it
        plan_changed: the plan, its problem, or whether one is being made, is new
        changed: something that stands beside the form is new
        settled: other values were taken, or their plan or its problem is there
    """

    subject_changed = Signal()
    plan_changed = Signal()
    changed = Signal()
    settled = Signal()

    def __init__(self, session: Session, installations: InstallationsModel) -> None:
        super().__init__()
        self.session, self.installations = session, installations
        self.fit = FitQuery(session)
        self.form = Form()
        self._wrong: dict[str, str] = {}
        self.subject: Subject | None = None
        self.plan: LaunchPlan | None = None
        self.patches: PlannedPatches | None = None
        self.problem: Problem | None = None
        self.planning = False
        # Whether what is chosen, set or true on the host moved on since the plan was made.
        self._old = True
        self._plan_task: asyncio.Future[None] | None = None
        self._shown = False
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_DEBOUNCE_MS)
        self._soon.timeout.connect(self._start_planning)
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(_PATIENCE_MS)
        self._patience.timeout.connect(self.changed)

    # What is set.

    def set_form(self, form: Form) -> None:
        """Take over what the person set, and plan again."""
        if form == self.form:
            return
        before, self.form = self.form, form
        if form.server is not before.server or form.installation != before.installation:
            offered = {
                field.name: {data for _, data in self.offers.choices(field)} for field in self.fields()
            }
            kept = {
                name: value
                for name, value in form.values.items()
                if not offered.get(name) or value in offered[name]
            }
            self.form = replace(form, values=kept)
            self.plan = None
            self.subject_changed.emit()
        elif form.values.get("speculation") != before.values.get("speculation"):
            self.subject_changed.emit()
        self._plan_soon()
        self.settled.emit()

    def set_value(self, name: str, value: Any) -> None:
        """Set one field of the form; None leaves it to the layers below."""
        self.set_values({name: value})

    def set_values(self, values: dict[str, Any]) -> None:
        """Set some fields of the form at once."""
        merged = {**self.form.values, **values}
        self.set_form(
            replace(self.form, values={name: value for name, value in merged.items() if value is not None})
        )

    def reset_values(self) -> None:
        """Leave every field to the layers below."""
        self._wrong = {}
        self.set_form(replace(self.form, values={}))
        self.subject_changed.emit()

    def set_error(self, name: str, sentence: str) -> None:
        """Say what cannot be taken of what was typed into a field; nothing starts until it is mended."""
        if sentence != self._wrong.get(name, ""):
            self._wrong = {key: said for key, said in self._wrong.items() if key != name}
            if sentence:
                self._wrong[name] = sentence
            self.changed.emit()

    @property
    def form_error(self) -> str:
        """The first thing that cannot be taken of what was typed."""
        return next(iter(self._wrong.values()), "")

    @property
    def behind(self) -> str:
        """The notice beside computed values while something typed cannot be taken."""
        return tr("For the last valid values, not for what is typed.") if self._wrong else ""

    @property
    def engine_kind(self) -> EngineKind:
        """The engine that runs what is chosen."""
        return self.subject.engine if self.subject is not None else LLAMA_CPP

    @property
    def environment(self) -> Installation | None:
        """vLLM's environment that this start gets."""
        return self.installations.resolve(self.form.installation)

    @property
    def build(self) -> str:
        """The build of this start's vLLM; empty for llama.cpp."""
        preset = self.subject.preset if self.subject is not None else None
        if self.engine_kind is VLLM and preset is not None and not self.form.installation:
            return "cuda" if preset.preset.needs.gpus else "cpu"
        one = self.environment or self.missing
        return one.build if one is not None and self.engine_kind is VLLM else ""

    @property
    def missing(self) -> Installation | None:
        """The environment that has to be installed before this can start."""
        if self.engine_kind is not VLLM or self.subject is None or self.subject.problem is not None:
            return None
        preset, host = self.subject.preset, self.session.state.host
        if preset is not None and preset.preset.needs.gpus and host is not None and not host.gpus:
            # It cannot run here whatever is installed; the verdict says so.
            return None
        wants_gpu = preset is not None and preset.preset.needs.gpus > 0 and not self.form.installation
        return self.installations.missing(self.form.installation, "cuda" if wants_gpu else "")

    def fields(self) -> tuple[EngineSetting, ...]:
        """Return the settings of the engine that runs what is chosen."""
        return self.form.fields(self.engine_kind, self.build)

    @property
    def offers(self) -> Offers:
        """The choices of the form now."""
        page = self.session.state.servers
        return Offers(
            page, self.installations, self.subject, self.form.server, self.build, self.plan, self.fit.report
        )

    # The plan.

    @property
    def planning_long(self) -> bool:
        """True while a plan is made that takes long enough to say so."""
        return self.planning and not self._soon.isActive() and not self._patience.isActive()

    def _plan_soon(self) -> None:
        if self._plan_task is not None:
            # Its answer would be taken for what is chosen and set by then.
            self._plan_task.cancel()
        self._old = True
        self.planning = self._shown and self.subject is not None and self.session.connection.connected
        if self.planning:
            self._soon.start()
            self.plan_changed.emit()

    def _start_planning(self) -> None:
        if self._plan_task is not None:
            self._plan_task.cancel()
        subject = self.subject
        if subject is not None and subject.problem is None and self.missing is None:
            self.planning = True
            self._patience.start()
            self._plan_task = self.session.tasks.start(self._make_plan(subject, self.form), "plan")
        else:
            self.plan, self.planning, self._old = None, False, False
            self.problem = subject.problem if subject else None
            self.plan_changed.emit()
            self.settled.emit()

    async def _make_plan(self, subject: Subject, form: Form) -> None:
        try:
            self.plan = await self.session.client.call(ops.PLAN, form.request(subject, self.build))
            self.problem, self._old = None, False
            # Kept when a plan is refused: the patch that was left out must be there to be put back.
            self.patches = self.plan.patches
        except HostError as error:
            self.plan, self.problem, self._old = None, error.problem, self._old and error.lost
            if error.lost:
                # When a host is back the plan is made again; of one that is silent nothing else tells.
                again = Fix(text=tr("Change a setting, or leave this page and come back: it is asked again."))
                self.problem = error.problem.model_copy(update={"fix": again})
        self.planning = False
        self.plan_changed.emit()
        self.settled.emit()
