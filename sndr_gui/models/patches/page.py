"""Patches: the catalogue, what took effect in which process, and the switches, without widgets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.engines import Engine, Installation
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import (
    EnginePatches,
    Patch,
    PatchDetail,
    PatchPage,
    PatchQuery,
    PatchResult,
    SwitchPatches,
)
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.rows import RowsModel
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.engine.installations import InstallationsModel
from sndr_gui.models.engine.start import build_of
from sndr_gui.models.patches.bisect import BisectionModel
from sndr_gui.models.patches.outcomes import REASONS, ProcessCard, process_cards, process_name, row_of
from sndr_gui.models.patches.restart import Restart, restart_of
from sndr_gui.models.patches.rows import ALL, FACETS, HERE, Facets, PatchRow, columns, passes
from sndr_gui.models.window.actions import Actions
from sndr_gui.models.window.throttle import Throttle

# What the host calls every patch at once.
ALL_PATCHES = "all"


class PatchesModel(QObject):
    """The model of Patches.

    Signals:
        changed: anything but the rows and the detail
        rows_changed: the rows or their number
        detail_changed: the chosen patch or what is known of it
        revealed: the chosen patch is to be seen in the table, which may be narrowed to others
    """

    changed = Signal()
    rows_changed = Signal()
    detail_changed = Signal()
    revealed = Signal()

    def __init__(self, session: Session, actions: Actions, installations: InstallationsModel) -> None:
        super().__init__()
        self.session, self.actions, self.installations = session, actions, installations
        self.bisection = BisectionModel(session)
        self.page: PatchPage | None = None
        self.rows: RowsModel[PatchRow] = RowsModel(columns(), lambda row: row.patch.id, self)
        self.facets = Facets()
        self.chosen = ""
        self.detail: PatchDetail | None = None
        self._pending: set[str] = set()
        self._shown = False
        self._asked = ""
        # A start reports hundreds of results in a second; the table is drawn ten times in it.
        self._throttle = Throttle(self, 100, self._fill)
        state = session.state
        state.applied.connect(self._throttle.trigger)
        state.engines_changed.connect(self._on_engine)
        state.outdated.connect(self._on_outdated)
        self.bisection.changed.connect(self.changed)
        installations.changed.connect(self.changed)
        installations.listed.connect(self._on_source)
        session.connection.changed.connect(self._on_link)

    def set_shown(self, shown: bool) -> None:
        """Read what is shown when somebody looks."""
        self._shown = shown
        if shown:
            self._on_link()

    def _on_link(self) -> None:
        if self._shown and self.session.connection.connected:
            if self.page is None:
                self.load()
            self._on_engine()
        self.changed.emit()

    def _on_outdated(self, part: str) -> None:
        if part in ("patches", "all") and self.session.connection.connected:
            self.load()

    def _on_engine(self) -> None:
        engine = self.engine
        wanted = engine.id if engine is not None and engine.engine == "vllm" else ""
        if wanted != self._asked and self._shown and self.session.connection.connected:
            self._asked = wanted
            self._on_source()
        self.changed.emit()

    def _on_source(self) -> None:
        """Another vLLM: what a patch touches, and which are for it, is another thing."""
        if self.page is not None and self._shown:
            self._fill()
            if self.chosen:
                self._read_detail(self.chosen)

    def load(self) -> None:
        """Read the catalogue."""

        async def work(client: AsyncControlClient) -> None:
            self._take(await client.call(ops.PATCHES))

        self.session.read("read the patches", work)

    def _take(self, page: PatchPage) -> None:
        self.page = page
        self._fill()
        if self.chosen:
            self._read_detail(self.chosen)
        self.changed.emit()

    def _fill(self) -> None:
        page = self.page
        if page is None:
            return
        if self.facets.pid is not None and self.facets.pid not in {card.pid for card in self.cards()}:
            self.facets = replace(self.facets, pid=None)
        made = (row_of(patch, self.applies, self.facets.pid) for patch in page.patches)
        self.rows.set_rows([row for row in made if passes(row, self.facets, self.version)])
        self.rows_changed.emit()
        self.detail_changed.emit()

    # What is shown.

    @property
    def engine(self) -> Engine | None:
        """The engine that runs or starts."""
        return self.session.state.running

    @property
    def applies(self) -> EnginePatches | None:
        """The patch reports of the running engine's processes."""
        engine = self.engine
        return self.session.state.applies.get(engine.id) if engine else None

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        if self.page is None:
            return (
                self.session.connection.sentence
                if not self.session.connection.connected
                else tr("Reading the catalogue…")
            )
        parts = [tr("{patches} in the catalogue", patches=len(self.page.patches))]
        if (faults := len(self.page.faults)) > 0:
            parts.append(tr("{folders} cannot be used", folders=formats.plural(faults, "folder")))
        engine = self.engine
        if engine is not None:
            parts.append(tr("{name} on {build_of}", name=engine.name, build_of=build_of(engine)))
        return "  ·  ".join(parts)

    @property
    def hint(self) -> tuple[str, str]:
        """The hint while no process reports: a heading and a sentence; empty when one does."""
        engine = self.engine
        if engine is None and self.missing is not None:
            return (
                tr("vLLM is not installed"),
                tr("Install it to see what each patch changes."),
            )
        if engine is None:
            return (
                tr("No engine runs"),
                tr("Start a model on vLLM to see which patches took effect in each process."),
            )
        if engine.engine != "vllm":
            return (
                tr("{engine} has no overlay", engine=engine.engine),
                tr("Patches change vLLM only."),
            )
        return (
            ("", "")
            if self.cards()
            else (tr("Waiting for the engine's processes"), tr("None has reported yet."))
        )

    def cards(self) -> tuple[ProcessCard, ...]:
        """Return one card a process, in order of their start; a short-lived helper only after trouble."""
        return process_cards(self.applies)

    @property
    def missing(self) -> Installation | None:
        """The environment to install while there is no vLLM on this machine."""
        if self.engine is not None and self.engine.engine == EngineKind.VLLM:
            # It runs from an environment that the person made.
            return None
        return self.installations.missing("")

    @property
    def version(self) -> str:
        """The vLLM that this page speaks of: the running one, or else the one that a start would get."""
        engine = self.engine
        wanted = engine.plan.installation if engine is not None and engine.engine == EngineKind.VLLM else ""
        one = self.installations.get(wanted) or self.installations.resolve("")
        return one.version if one is not None else ""

    def choices(self, facet: str) -> list[tuple[str, str]]:
        """Return the choices of a facet: label and value."""
        patches = self.page.patches if self.page else ()
        found: list[tuple[str, str]] = [(FACETS[facet], ALL)]
        match facet:
            case "family":
                values = {patch.family for patch in patches}
            case "kind":
                values = {kind.value for patch in patches for kind in patch.kinds}
            case "range":
                values = {patch.applies_to.vllm for patch in patches}
                if self.version:
                    runs = self.engine is not None and self.engine.engine == EngineKind.VLLM
                    found.append(
                        (
                            tr("For {version}, which runs", version=self.version)
                            if runs
                            else tr("For {version}, which is here", version=self.version),
                            HERE,
                        )
                    )
            case _:
                values = {row_of(patch, self.applies, self.facets.pid).state for patch in patches}
        return [*found, *((word_of(value), value) for value in sorted(values))]

    def set_facets(self, facets: Facets) -> None:
        """Show only the rows in these facets."""
        self.facets = facets
        self._fill()
        self.changed.emit()

    def choose(self, patch: str) -> None:
        """Show one patch in full."""
        if patch == self.chosen:
            return
        self.chosen, self.detail = patch, None
        self.detail_changed.emit()
        if patch:
            self._read_detail(patch)

    def reveal(self, patch: str) -> None:
        """Show one patch in full, and in the table."""
        self.choose(patch)
        self.revealed.emit()

    def _read_detail(self, patch: str) -> None:
        engine = self.engine
        ours = engine is not None and engine.engine == EngineKind.VLLM
        version = (engine.plan.installation or None) if engine is not None and ours else None

        async def work(client: AsyncControlClient) -> None:
            detail = await client.call(ops.PATCH, PatchQuery(vllm=version), id=patch)
            if self.chosen == patch:
                self.detail = detail
                self.detail_changed.emit()

        self.session.read("read a patch", work)

    @property
    def patch(self) -> Patch | None:
        """The chosen patch."""
        patches = self.page.patches if self.page else ()
        return next((patch for patch in patches if patch.id == self.chosen), None)

    @property
    def why_left_out(self) -> str:
        """The reason why this start is without the chosen patch; empty where it is not."""
        engine = self.engine
        planned = engine.plan.patches if engine else None
        for one in planned.left_out if planned else ():
            if one.patch == self.chosen:
                detail = f" ({one.detail})" if one.detail else ""
                return tr(
                    "Left out of this start: {reasons}{detail}.", reasons=REASONS[one.reason], detail=detail
                )
        return ""

    def needed_by(self) -> tuple[str, ...]:
        """Return the patches that need the chosen one."""
        patches = self.page.patches if self.page else ()
        return tuple(patch.id for patch in patches if self.chosen in patch.requires)

    def in_processes(self) -> tuple[tuple[str, PatchResult], ...]:
        """Return the result of the chosen patch in every process that reported it."""
        applies = self.applies
        return tuple(
            (process_name(process), result)
            for process in (applies.processes if applies else ())
            for result in process.results
            if result.patch == self.chosen
        )

    # What can be done.

    def pending(self, name: str) -> bool:
        """Return True while this command is under way."""
        return name in self._pending

    @property
    def can_ask_engine(self) -> bool:
        """True while an engine with an overlay runs."""
        engine = self.engine
        return self.session.connection.connected and engine is not None and engine.engine == "vllm"

    def scopes(self) -> tuple[tuple[str, str], ...]:
        """Return what can be switched as a whole: all patches, and each family; names and titles."""
        patches = self.page.patches if self.page else ()
        families = sorted({patch.family for patch in patches})
        counts = {name: sum(patch.family == name for patch in patches) for name in families}
        return (
            (ALL_PATCHES, tr("All {patches}", patches=formats.plural(len(patches), "patch", "patches"))),
            *((name, f"{name}  ·  {formats.plural(counts[name], 'patch', 'patches')}") for name in families),
        )

    def switch(self, to: str, name: str = "") -> None:
        """Switch the chosen patch, or a family or all by name, on, off, or back, for the next start."""
        change = SwitchPatches.model_validate({"names": (name or self.chosen,), "to": to})

        async def work(client: AsyncControlClient) -> None:
            self._take(await client.call(ops.SWITCH_PATCHES, change))

        self._send("switch", work)

    def probe(self) -> None:
        """Ask every process whether its patches are live."""
        if (engine := self.engine) is None:
            return
        name = engine.id

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.PROBE_PATCHES, id=name))

        self._send("probe", work)

    def restart(self) -> Restart | None:
        """Return the restart to confirm before a start without the patch; None when nothing is lost."""
        return restart_of(self.session.state, self.engine, self.chosen, self.needed_by())

    def start_without(self) -> None:
        """Restart the engine without the chosen patch."""
        if (engine := self.engine) is None:
            return
        name, patch = engine.id, self.chosen

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.START_WITHOUT, id=name, patch=patch))

        self._send("without", work)

    def _send(self, name: str, work: Callable[[AsyncControlClient], Awaitable[None]]) -> None:
        self._pending.add(name)
        self.detail_changed.emit()

        def done() -> None:
            self._pending.discard(name)
            self.detail_changed.emit()

        self.session.command(f"patches: {name}", work, done=done)
