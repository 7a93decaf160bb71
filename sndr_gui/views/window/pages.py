"""Builds the pages, each when it is first shown, and offers what the palette can do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from engine_host.protocol.engines import EngineState
from engine_host.protocol.presets import EntryOrigin
from sndr_gui.host.session import Session
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.models.chat.page import ChatModel
from sndr_gui.models.engine.installations import InstallationsModel
from sndr_gui.models.engine.page import EngineModel
from sndr_gui.models.fit.page import FitModel
from sndr_gui.models.home.machine import MachineModel
from sndr_gui.models.home.page import HomeModel
from sndr_gui.models.launch.page import LaunchModel
from sndr_gui.models.logs.page import LogsModel
from sndr_gui.models.monitor.page import MonitorModel
from sndr_gui.models.patches.live_summaries import SummaryReader
from sndr_gui.models.patches.page import PatchesModel
from sndr_gui.models.patches.rows import Facets
from sndr_gui.models.presets.drafts import Drafts
from sndr_gui.models.presets.page import PresetsModel
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.models.window.actions import Actions
from sndr_gui.models.window.host_notices import HostNotices
from sndr_gui.models.window.palette import Entry
from sndr_gui.views.widgets.parts import Page


class Pages(QObject):
    """The view-models of one session, and the pages over them."""

    def __init__(self, session: Session, file: SettingsFile, go: Callable[[str], object]) -> None:
        super().__init__()
        self.session = session
        self._go = go
        self.actions = Actions(session)
        self.home = HomeModel(session, self.actions)
        self.engine = EngineModel(session, self.actions, self.home)
        self.installations = InstallationsModel(session)
        self.launch = LaunchModel(session, self.actions, self.installations)
        self.machine = MachineModel(session, self.installations)
        self.chat = ChatModel(session, self.actions)
        self.monitor = MonitorModel(session)
        self.patches = PatchesModel(session, self.actions, self.installations)
        self.logs = LogsModel(session)
        self.fit = FitModel(session)
        self.presets = PresetsModel(session, Drafts(file.folder / "preset-drafts.json"))
        self.settings = SettingsModel(session, file)
        self._applies = SummaryReader(session)
        self._host_notices = HostNotices(session.state, session.notices)

    def build(self, name: str) -> Page:
        """The page of this name."""
        match name:
            case "engine":
                from sndr_gui.views.engine.page import EngineView

                return EngineView(
                    self.engine, self.open_launch, self.open_patches, self.open_log, self.open_chat
                )
            case "launch":
                from sndr_gui.views.launch.page import LaunchView

                view = LaunchView(self.launch, self.machine, self.open_chat, self.open_log)
                view.edit_requested.connect(self.open_preset)
                view.fit_requested.connect(self.open_fit)
                return view
            case "chat":
                from sndr_gui.views.chat.page import ChatView

                return ChatView(self.chat, self.open_launch)
            case "monitor":
                from sndr_gui.views.monitor.page import MonitorView

                return MonitorView(self.monitor)
            case "patches":
                from sndr_gui.views.patches.page import PatchesView

                return PatchesView(self.patches, self.open_launch)
            case "fit":
                from sndr_gui.views.fit.page import FitView

                fit = FitView(self.fit)
                fit.inputs.edit_requested.connect(self.open_preset)
                return fit
            case "presets":
                from sndr_gui.views.presets.page import PresetsView

                return PresetsView(self.presets, self.open_fit)
            case "logs":
                from sndr_gui.views.logs.page import LogsView

                return LogsView(self.logs)
            case "settings":
                from sndr_gui.views.settings.page import SettingsView

                return SettingsView(self.settings, self.installations)
            case _:
                from sndr_gui.views.home.page import HomeView

                return HomeView(self.home, self.open_log, self.open_launch)

    def open_launch(self) -> None:
        """Go to Launch."""
        self._go("launch")

    def open_patches(self, pid: int | None = None) -> None:
        """Go to Patches, to those of one process where it is given."""
        self._go("patches")
        if pid is not None:
            self.patches.set_facets(Facets(pid=pid))

    def open_preset(self, preset: str, settings: object = None) -> None:
        """Go to Presets, to the editor of one's own, or of a new variation of one of the program's."""
        self._go("presets")
        self.presets.edit(preset, settings if isinstance(settings, dict) else {})

    def open_fit(self, preset: str) -> None:
        """Go to Fit, to a preset."""
        self._go("fit")
        self.fit.show_preset(preset)

    def open_chat(self) -> None:
        """Go to Chat."""
        self._go("chat")

    def open_log(self, source: str) -> None:
        """Go to the log of a source, at its failure."""
        self._go("logs")
        self.logs.open_failure(source)

    def entries(self) -> list[Entry]:
        """Return the commands of the palette, besides going to pages."""
        entries: list[Entry] = []
        state, engine = self.session.state, self.session.state.running
        if engine is not None:
            entries.append(Entry(f"Stop {engine.name}", "action", self.home.stop, "end engine"))
        if state.engine is not None:
            name = state.engine.name
            entries.append(Entry(f"Relaunch {name}", "Ctrl+R", self.home.relaunch, "restart engine"))
            if state.engine.state is EngineState.FAILED:
                source = state.engine.id

                def open_failure() -> None:
                    self.open_log(source)

                entries.append(Entry("Open the log of the failure", "action", open_failure))
        entries.append(Entry("New chat", "Ctrl+N", self._new_chat, "conversation"))
        if self.home.can_build:
            entries.append(
                Entry("Build the faster engine", "action", self.actions.build, "compile llama.cpp")
            )
        if self.home.can_measure:
            entries.append(Entry("Measure both servers", "action", self.actions.measure, "compare benchmark"))
        entries.append(Entry("Look for models again", "action", self.launch.models.rescan, "scan rescan"))
        entries += self._startable_presets()
        entries += self._models()
        entries += self._own_presets()
        return entries

    def _startable_presets(self) -> list[Entry]:
        rows = [row for row in self.launch.presets.rows.shown if row.works]
        return [
            Entry(
                f"Start {row.item.preset.title}",
                "preset",
                partial(self.actions.start_preset, row.item.preset.id),
                f"launch run preset {row.item.preset.id}",
            )
            for row in rows
        ]

    def _models(self) -> list[Entry]:
        page = self.session.state.models
        entries = []
        for model in page.models if page else ():
            if model.problem is None:
                # Files of one name differ in their format, and those of one format in their quantization.
                kind = " ".join(part for part in (model.format, model.quantization, "model") if part)
                run = _starter(self.actions, model.id)
                entries.append(Entry(f"Start {model.name}", kind, run, f"launch run {kind}"))
        return entries

    def _own_presets(self) -> list[Entry]:
        """One's own presets, once the page has read them."""
        found = []
        for item in self.presets.items:
            if item.origin is EntryOrigin.USER:
                preset = item.preset.id
                run = partial(self.open_preset, preset)
                found.append(Entry(f"Edit {item.preset.title}", "preset", run, f"yaml {preset}"))
        return found

    def _new_chat(self) -> None:
        self._go("chat")
        self.chat.new_chat()


def _starter(actions: Actions, model: str) -> Callable[[], None]:
    def start() -> None:
        actions.start_model(model)

    return start
