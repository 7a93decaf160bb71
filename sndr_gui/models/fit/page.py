"""The view-model of Fit: any model on any hardware, what it needs, how far it goes, and what to change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.catalog import HardwareEntry, ModelEntry
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import (
    Change,
    FitReport,
    HubPage,
    Measured,
    MeasuredPage,
    ReadFromHub,
    Verdict,
)
from engine_host.protocol.models import ModelFile
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import CatalogPage, PresetItem, PresetPage
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.rows import RowsModel
from sndr_gui.models.engine.now import decode_now
from sndr_gui.models.fit.figures import Figure, figures
from sndr_gui.models.fit.form import FitForm, ModelSource, change_of
from sndr_gui.models.fit.query import FitQuery
from sndr_gui.models.fit.starts import start_columns, start_key
from sndr_gui.models.launch.subject import ENGINE_NAMES
from sndr_gui.models.window.throttle import Throttle

Choice = tuple[str, object]
_SPEED = "tok/s"
# An engine that just became ready has told its figures by then.
_SETTLED_MS = 1500


class FitModel(QObject):
    """The model of Fit.

    Signals:
        changed: the form, or what can be chosen, is new
        answered: the answer, its problem, or whether one is waited for, is new
        starts_changed: the compared starts are new
    """

    changed = Signal()
    answered = Signal()
    starts_changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.form = FitForm()
        self.query = FitQuery(session)
        self.catalog: CatalogPage | None = None
        self.presets: PresetPage | None = None
        self.hub: HubPage | None = None
        self.starts: RowsModel[Measured] = RowsModel(start_columns(), start_key, self)
        self._engine: tuple[tuple[str, str], ...] = ()
        self._reload_throttle = Throttle(self, _SETTLED_MS, self._read_again)
        self.reading = False
        self.hub_problem: Problem | None = None
        self._shown = False
        self.query.changed.connect(self.answered)
        session.state.models_changed.connect(self._on_models)
        session.state.outdated.connect(self._on_outdated)
        session.state.engines_changed.connect(self._on_engine)
        session.connection.changed.connect(self._on_link)

    def set_shown(self, shown: bool) -> None:
        """Read what can be chosen when somebody looks."""
        self._shown = shown
        if shown:
            if self.form.here and self.query.request is not None:
                # What others hold changed while nobody looked.
                self.query.refresh()
            # What is known here needs no answer of the host.
            self._choose_first()
            self._on_link()

    def _on_link(self) -> None:
        if self._shown and self.session.connection.connected:
            self.load()
        self.changed.emit()

    def _on_outdated(self, part: str) -> None:
        if self._shown and part in ("presets", "all") and self.session.connection.connected:
            self.load()
            self.query.refresh()

    def _on_engine(self) -> None:
        """Another engine, or another state of it: what is free changed, and perhaps a start is compared."""
        now = self.session.state.holders
        if now != self._engine:
            self._engine = now
            self._reload_throttle.trigger()
        if self._shown:
            self.answered.emit()

    def _read_again(self) -> None:
        if not self._shown or not self.session.connection.connected:
            return
        if self.form.here:
            self.query.refresh()
        self.load()

    def _on_models(self) -> None:
        if self._shown:
            self._choose_first()
            self.changed.emit()
            self.answered.emit()

    def load(self) -> None:
        """Read the catalogue, what is known of the hub, and the compared starts."""

        async def work(client: AsyncControlClient) -> None:
            self.catalog, self.presets = await client.call(ops.CATALOG), await client.call(ops.PRESETS)
            self.hub = await client.call(ops.HUB_MODELS)
            page: MeasuredPage = await client.call(ops.FIT_STARTS)
            self.starts.set_rows(page.starts)
            self._choose_first()
            self.starts_changed.emit()
            self.changed.emit()
            self.answered.emit()

        self.session.read("read the catalogue", work)

    def _choose_first(self) -> None:
        """Begin with something that has an answer: a model of this machine on this machine."""
        if not self.form.model and (models := self.models):
            self.form = replace(self.form, model=models[0].id)
        if self.catalog is not None and not self.form.card and self.catalog.hardware:
            here = self.catalog.here.hardware if self.catalog.here else None
            self.form = replace(self.form, card=here or self.catalog.hardware[0].id)
        if self.catalog is not None and not self.form.catalogue and self.catalog.models:
            entry = self.catalog.models[0]
            self.form = replace(self.form, catalogue=entry.id)
        self._ask()

    # What can be chosen.

    @property
    def models(self) -> tuple[ModelFile, ...]:
        """The usable models of this machine."""
        page = self.session.state.models
        return tuple(model for model in page.models if model.problem is None) if page else ()

    def model_choices(self) -> list[Choice]:
        """Return the models of this machine."""
        return [(f"{model.name}  ·  {model.format}", model.id) for model in self.models]

    def catalogue_choices(self) -> list[Choice]:
        """Return the models of the catalogue."""
        return [(one.title, one.id) for one in (self.catalog.models if self.catalog else ())]

    def variant_choices(self) -> list[Choice]:
        """Return the weights of the chosen model of the catalogue, and the one that the host chooses."""
        entry, report = self.entry, self.report
        chosen = report.model.partition("/")[2] if report is not None and report.variants else ""
        fitting = {
            Verdict.FITS: tr("Largest that fits ({variant})", variant=chosen),
            Verdict.TIGHT: tr("Largest that starts ({variant})", variant=chosen),
        }
        if not chosen or report is None:
            usual = tr("Largest that fits")
        else:
            usual = fitting.get(report.verdict, tr("Smallest ({variant})", variant=chosen))
        return [
            (usual, ""),
            *(
                (f"{one.id}  ·  {formats.size(one.size)}" if one.size else one.id, one.id)
                for one in (entry.variants if entry else ())
            ),
        ]

    def preset_choices(self) -> list[Choice]:
        """Return the presets."""
        return [
            (item.preset.title, item.preset.id) for item in (self.presets.presets if self.presets else ())
        ]

    def card_choices(self) -> list[Choice]:
        """Return the GPUs of the catalogue."""
        return [
            (f"{one.title}  ·  {formats.measure(f'{one.vram_mib.value / 1024:.0f}', 'GiB')}", one.id)
            for one in (self.catalog.hardware if self.catalog else ())
        ]

    def kv_choices(self) -> list[Choice]:
        """Return the KV types that the answer compares, and the one that is chosen."""
        report = self.query.report
        found = [one.kv for one in report.kv_choices] if report else []
        if self.form.kv and self.form.kv not in found:
            found.append(self.form.kv)
        usual = tr("Default ({kv})", kv=report.kv) if report and self.form.kv is None else tr("Default")
        return [(usual, None), *((kind, kind) for kind in found)]

    @property
    def entry(self) -> ModelEntry | None:
        """The chosen model of the catalogue."""
        models = self.catalog.models if self.catalog else ()
        return next((one for one in models if one.id == self.form.catalogue), None)

    @property
    def card(self) -> HardwareEntry | None:
        """The chosen GPU of the catalogue."""
        cards = self.catalog.hardware if self.catalog else ()
        return next((one for one in cards if one.id == self.form.card), None)

    @property
    def here(self) -> str:
        """This machine as it is computed, in a sentence."""
        host = self.session.state.host
        if host is None:
            return ""
        if not host.gpus:
            return tr("No GPU: the CPU with {size} of RAM.", size=formats.size(host.ram_total))
        names = ", ".join(dict.fromkeys(gpu.name for gpu in host.gpus))
        return tr(
            "{gpus}: {names}, less what other processes use.",
            gpus=formats.plural(len(host.gpus), "GPU"),
            names=names,
        )

    # The form.

    def set_values(self, **values: Any) -> None:
        """Take over what was chosen or typed, and ask anew."""
        form = replace(self.form, **values)
        if form.catalogue != self.form.catalogue and "variant" not in values:
            form = replace(form, variant="")
        subject = ("source", "model", "catalogue", "variant", "preset", "path", "repository")
        if any(getattr(form, name) != getattr(self.form, name) for name in subject):
            # Another model takes other settings.
            form = replace(form, kv=values.get("kv"))
            self.hub_problem = None
        if form != self.form:
            self.form = form
            self._ask()
            self.changed.emit()

    def reset(self) -> None:
        """Leave every setting to the host again."""
        form = self.form
        self.form = replace(
            FitForm(),
            **{
                name: getattr(form, name)
                for name in (
                    "source", "model", "catalogue", "variant", "preset", "path", "repository", "pinned",
                    "where", "card", "count", "total", "taken", "bandwidth", "replace",
                )
            },
        )  # fmt: skip
        self._ask()
        self.changed.emit()

    def show_preset(self, preset: str) -> None:
        """Ask for a preset."""
        self.set_values(source=ModelSource.PRESET, preset=preset)

    def _ask(self) -> None:
        if not self._shown:
            return
        if self.form.missing:
            self.query.clear()
        else:
            self.query.ask(self.form.request())

    # The hub.

    @property
    def hub_name(self) -> str:
        """The host name that a config would be read from."""
        return self.hub.endpoint.partition("://")[2] if self.hub else "huggingface.co"

    @property
    def hub_known(self) -> bool:
        """True when the typed model's config was read before."""
        name = self.form.repository.strip()
        return any(name in (one.repository, one.model) for one in (self.hub.models if self.hub else ()))

    @property
    def hub_note(self) -> str:
        """The knowledge about the typed model, and the requests that reading it would send."""
        name = self.form.repository.strip()
        found = next(
            (one for one in (self.hub.models if self.hub else ()) if name in (one.repository, one.model)),
            None,
        )
        if found is None:
            return tr(
                "Nothing is sent until you ask. Reading sends two small requests to {hub_name}.",
                hub_name=self.hub_name,
            )
        values = {"hub": found.endpoint.partition("://")[2], "revision": found.revision[:12]}
        if not found.size:
            return tr("Read from {hub} at commit {revision}, size of the weights not known.", **values)
        return tr(
            "Read from {hub} at commit {revision}, weights {size}.", size=formats.size(found.size), **values
        )

    def read_from_hub(self) -> None:
        """Ask Hugging Face for the config.json of the typed model; only ever called by a click."""
        repository, _, revision = self.form.repository.strip().partition("@")
        if not repository or self.reading:
            return
        self.reading, self.hub_problem = True, None
        self.changed.emit()

        async def work(client: AsyncControlClient) -> None:
            found = await client.call(
                ops.READ_FROM_HUB, ReadFromHub(repository=repository, revision=revision or "main")
            )
            self.hub = await client.call(ops.HUB_MODELS)
            self.form = replace(self.form, repository=repository, pinned=found.model)
            self._ask()
            self.query.refresh()

        def done() -> None:
            self.reading = False
            self.changed.emit()
            self.answered.emit()

        def failed(error: HostError) -> None:
            if not error.lost:
                self.hub_problem = error.problem
            else:
                self.session.notices.error("hub", str(error))

        self.session.command("read from the hub", work, done=done, failed=failed)

    # The answer.

    @property
    def report(self) -> FitReport | None:
        """The newest answer."""
        return self.query.report

    @property
    def problem(self) -> Problem | None:
        """The reason why there is no answer; that a config was not read yet is no failure."""
        if self.hub_problem is not None:
            return self.hub_problem
        return None if self.unread else self.query.problem

    @property
    def unread(self) -> bool:
        """True when the typed model's config has to be read from the hub first."""
        problem = self.query.problem
        missing = problem is not None and problem.reason is Reason.MODEL_FILE_MISSING
        return missing and self.form.source is ModelSource.HUB

    @property
    def missing(self) -> str:
        """The thing to choose first, as a sentence; that it is being read while there is no choice yet."""
        waits = self.form.missing and not self._can_choose
        return tr("Reading what can be chosen…") if waits else self.form.missing

    @property
    def _can_choose(self) -> bool:
        if self.form.source is ModelSource.HERE:
            return self.session.state.models is not None
        return self.form.source in {ModelSource.FILE, ModelSource.HUB} or self.catalog is not None

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        if not self.session.connection.connected:
            return self.session.connection.sentence
        if self.missing:
            return self.missing
        if self.query.waiting:
            return tr("Computing…")
        report = self.report
        if report is None:
            return tr("Not computed") if self.problem is not None or self.unread else self.query.sentence
        where = f"{len(report.devices)} × " if len(report.devices) > 1 else ""
        name = report.devices[0].name.partition(" #")[0] if report.devices else ""
        engine = ENGINE_NAMES.get(report.engine.value, report.engine.value)
        name = tr("the CPU") if name == "processor" else name
        return tr(
            "{model} with {engine} on {where}{name}",
            model=report.model,
            engine=engine,
            where=where,
            name=name,
        )

    def figures(self) -> tuple[Figure, ...]:
        """Return the four figures in front."""
        return figures(self.report)

    @property
    def measured_speed(self) -> float | None:
        """The decode rate of the engine that runs this model now; None where nothing was measured."""
        if not self.form.here:
            return None
        for engine in reversed(self.session.state.live):
            mine = {engine.plan.model, engine.plan.model_path}
            by_preset = self.form.source is ModelSource.PRESET
            same = self.form.preset == engine.plan.preset if by_preset else self.form.name in mine
            if same and (rate := decode_now(self.session.state, engine)):
                return rate
        return None

    def reported_speeds(self) -> tuple[tuple[str, str, str], ...]:
        """Return the speeds that the catalogue has for this model: value, conditions, and who measured it."""
        wanted = self._wanted_model()
        found = []
        for item in self.presets.presets if self.presets else ():
            if not _is_of(item, wanted):
                continue
            for one in item.preset.card.evidence:
                if one.value is not None and one.unit.startswith(_SPEED):
                    whose = tr("measured by the project") if one.by == "us" else tr("reported by others")
                    what = f"{one.metric}; {one.machine}, {one.pin}"
                    value = formats.number(one.value, ",g")
                    found.append((formats.measure(value, one.unit), what, f"{whose}, {item.preset.id}"))
        return tuple(found[:6])

    def _wanted_model(self) -> tuple[str, str]:
        form = self.form
        if form.source is ModelSource.CATALOGUE:
            chosen = self.report.model.partition("/")[2] if self.report else ""
            return form.catalogue, form.variant or chosen
        if form.source is ModelSource.PRESET:
            items = self.presets.presets if self.presets else ()
            item = next((item for item in items if item.preset.id == form.preset), None)
            return (item.preset.model, item.preset.variant) if item else ("", "")
        return "", ""

    @property
    def command(self) -> str:
        """The command line that asks the same; it reads what was not read yet only when it is run."""
        return self.form.command() + (" --online" if self.unread else "")

    def preset_settings(self) -> dict[str, Any]:
        """Return the settings of the form for a preset of one's own."""
        return self.form.settings(self.report.engine) if self.report is not None else {}

    # Changes.

    def can_change(self, change: Change) -> bool:
        """Return True when a click can make a change."""
        return change_of(change, self.form) is not None

    def apply_change(self, change: Change) -> None:
        """Make a change."""
        values = change_of(change, self.form)
        if values is not None:
            self.set_values(**values)


def _is_of(item: PresetItem, wanted: tuple[str, str]) -> bool:
    return bool(wanted[0]) and (item.preset.model, item.preset.variant) == wanted
