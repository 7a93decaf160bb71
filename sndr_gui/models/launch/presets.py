"""The presets on Launch: which there are, what each would do on this machine, and all about one of them."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import PlannedPatches
from engine_host.protocol.presets import JudgePresets, PresetDetail, PresetPage, PresetVerdicts, ResolvePreset
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.rows import RowsModel
from sndr_gui.models.presets.rows import (
    FACETS,
    PresetFacets,
    PresetRow,
    choices,
    passes,
    preset_columns,
    preset_rows,
)
from sndr_gui.models.window.throttle import Throttle

# What changes the answer: files of the catalogue, models and engines that are here, and what is free.
_PARTS = ("presets", "models", "servers", "settings", "all")
_AGAIN_MS = 1500


class LaunchPresets(QObject):
    """The list of presets with their verdicts, what will work best first.

    Signals:
        rows_changed: the list, its verdicts, or what of it is shown, is new
        detail_changed: what is known of the chosen preset is new
        filter_changed: the person asked for others to be shown
    """

    rows_changed = Signal()
    detail_changed = Signal()
    filter_changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.rows: RowsModel[PresetRow] = RowsModel(preset_columns(), lambda row: row.item.preset.id, self)
        self.facets = PresetFacets()
        self.page: PresetPage | None = None
        self.verdicts: PresetVerdicts | None = None
        self.judging = False
        self._again = False
        self.sentence = ""
        self.chosen = ""
        self._all: list[PresetRow] = []
        self._details: dict[str, tuple[str, PresetDetail]] = {}
        self._patches: dict[str, PlannedPatches] = {}
        self._shown = False
        self._connected = session.connection.connected
        self._stale = True
        self._running: object = None
        self._throttle = Throttle(self, _AGAIN_MS, self.judge)
        session.state.outdated.connect(self._on_outdated)
        session.state.engines_changed.connect(self._on_engines)
        session.connection.changed.connect(self._on_link)

    # When it is read.

    def set_shown(self, shown: bool) -> None:
        """Read and judge only while somebody looks."""
        self._shown = shown
        if shown:
            self.load_if_stale()

    def load_if_stale(self) -> None:
        """Read and judge them if what is known is not what is so now."""
        if self._stale and self._session.connection.connected:
            self.load()

    def _on_link(self) -> None:
        connected, self._connected = self._connected, self._session.connection.connected
        if self._connected and not connected:
            # Another host may know others, and have other engines.
            self._stale = True
            if self._shown:
                self.load()

    def _on_outdated(self, part: str) -> None:
        if part in _PARTS:
            self._stale = True
            if self._shown and self._session.connection.connected:
                self.load()

    def _on_engines(self) -> None:
        # What an engine holds is free again when it ends, and taken when it is ready.
        now = self._session.state.holders
        if now != self._running:
            self._running = now
            self._stale = True
            if self._shown and self.page is not None:
                self._throttle.trigger()

    def load(self) -> None:
        """Read the presets, then judge them."""
        self._stale = False

        async def work(client: AsyncControlClient) -> None:
            self.page = await client.call(ops.PRESETS)
            self._patches = {}
            self._details = {
                name: (digest, detail)
                for name, (digest, detail) in self._details.items()
                if any(item.preset.id == name and item.digest == digest for item in self.page.presets)
            }
            self._refresh()
            if self.chosen:
                self._read_detail()
            self.judge()

        self._session.command("read the presets", work, failed=self._on_failed)

    def judge(self) -> None:
        """Ask for the verdicts on this machine."""
        if not self._session.connection.connected:
            return
        if self.judging:
            # What it will say may be old already.
            self._again = True
            return
        self.judging, self._again = True, False
        self.rows_changed.emit()

        async def work(client: AsyncControlClient) -> None:
            self.verdicts = await client.call(ops.JUDGE_PRESETS, JudgePresets())
            self.sentence = ""

        def done() -> None:
            self.judging = False
            self._refresh()
            if self._again:
                self.judge()

        self._session.command("judge the presets", work, done=done, failed=self._on_failed)

    def _on_failed(self, error: HostError) -> None:
        self.sentence = error.problem.sentence() if not error.lost else str(error)
        self._stale = True
        self.rows_changed.emit()

    def _refresh(self) -> None:
        items = self.page.presets if self.page else ()
        self._all = preset_rows(items, self.verdicts.verdicts if self.verdicts else ())
        self.rows.set_rows([row for row in self._all if passes(row, self.facets)])
        self.rows_changed.emit()
        self.detail_changed.emit()

    # What is shown of it.

    def set_filter(self, text: str) -> None:
        """Show only the presets that hold these words."""
        self.rows.set_filter(text)
        self.rows_changed.emit()
        self.filter_changed.emit()

    def set_facets(self, facets: PresetFacets) -> None:
        """Show only the presets of these facets."""
        if facets != self.facets:
            self.facets = facets
            self._refresh()
            self.filter_changed.emit()

    def clear_filters(self) -> None:
        """Show every preset again."""
        self.rows.set_filter("")
        self.facets = PresetFacets()
        self._refresh()
        self.filter_changed.emit()

    def set_facet(self, facet: str, value: str) -> None:
        """Narrow the list by one facet."""
        assert facet in FACETS
        self.set_facets(replace(self.facets, **{facet: value}))  # type: ignore[arg-type]

    def choices(self, facet: str) -> list[tuple[str, str]]:
        """Return the choices of a facet."""
        return choices(facet, self._all)

    @property
    def total(self) -> int:
        """Return the number of presets."""
        return len(self._all)

    @property
    def every(self) -> list[PresetRow]:
        """Return all presets, whatever the list is narrowed to."""
        return self._all

    @property
    def fitting(self) -> list[PresetRow]:
        """Return those that fit on this machine, whatever the list is narrowed to, the best first."""
        return [row for row in self._all if row.works]

    @property
    def best(self) -> PresetRow | None:
        """Of those that are shown, the one that will work best here; None while that is not known."""
        rows = self.rows.shown if self.verdicts is not None else ()
        return min(rows, key=lambda row: row.rank, default=None)

    def shows(self, preset: str) -> bool:
        """Return True when the list holds a preset as it is narrowed now."""
        return self.rows.place_of(preset) is not None

    @property
    def subtitle(self) -> str:
        """Return how many there are, how many of them fit here, and how many could be started now."""
        if self.page is None:
            return self.sentence or tr("Reading the presets…")
        shown, total = len(self.rows.shown), formats.plural(self.total, "preset")
        parts = [tr("{shown} of {total}", shown=shown, total=total) if shown != self.total else total]
        if self.verdicts is not None:
            parts.append(tr("{sum} fit here", sum=sum(row.works for row in self._all)))
            parts.append(tr("{sum} ready", sum=sum(row.ready for row in self._all)))
        elif self.judging:
            parts.append(tr("checking them…"))
        if self.sentence:
            parts.append(self.sentence)
        return "  ·  ".join(parts)

    # The chosen one.

    def find(self, preset: str) -> PresetRow | None:
        """A preset by its id, also one that the list does not show now."""
        return next((row for row in self._all if row.item.preset.id == preset), None)

    @property
    def row(self) -> PresetRow | None:
        """The chosen preset with its verdict."""
        return self.find(self.chosen)

    @property
    def detail(self) -> PresetDetail | None:
        """Everything about the chosen preset, once it was read."""
        return self.detail_of(self.chosen)

    def detail_of(self, preset: str) -> PresetDetail | None:
        """Everything about a preset, when it was read already."""
        found = self._details.get(preset)
        return found[1] if found else None

    @property
    def patches(self) -> PlannedPatches | None:
        """The patches that the chosen preset would get on its hardware; None while that was not read."""
        return self._patches.get(self.chosen)

    def choose(self, preset: str) -> None:
        """Choose a preset and read everything about it."""
        if preset == self.chosen:
            return
        self.chosen = preset
        self.detail_changed.emit()
        self._read_detail()

    def _read_detail(self) -> None:
        preset, row = self.chosen, self.row
        if row is None or preset in self._details:
            return
        digest = row.item.digest

        async def work(client: AsyncControlClient) -> None:
            self._details[preset] = (digest, await client.call(ops.PRESET, id=preset))
            if preset == self.chosen:
                self.detail_changed.emit()

        self._session.read("read the preset", work)
        if row.item.preset.engine is PresetEngine.VLLM:
            self._read_patches(preset)

    def _read_patches(self, preset: str) -> None:
        async def work(client: AsyncControlClient) -> None:
            self._patches[preset] = await client.call(ops.PLAN_PRESET_PATCHES, ResolvePreset(preset=preset))
            if preset == self.chosen:
                self.detail_changed.emit()

        def failed(_error: HostError) -> None:
            """A preset whose layers contradict each other has no patches to tell of; its card says why."""

        self._session.command("read the preset's patches", work, failed=failed)
