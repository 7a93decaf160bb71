"""The context that the pages of one session share: their models, and the ways from one page to another."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from engine_host.client import Folders
from engine_host.client.chats.store import ChatStore
from sndr_gui.host.fleet import Fleet
from sndr_gui.host.session import Session
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.models.chat.history import HistoryModel
from sndr_gui.models.chat.page import ChatModel
from sndr_gui.models.engine.installations import InstallationsModel
from sndr_gui.models.engine.page import EngineModel
from sndr_gui.models.first_run.page import FirstRunModel
from sndr_gui.models.fit.page import FitModel
from sndr_gui.models.home.machine import MachineModel
from sndr_gui.models.home.page import HomeModel
from sndr_gui.models.hosts.page import HostsModel
from sndr_gui.models.launch.page import LaunchModel
from sndr_gui.models.logs.page import LogsModel
from sndr_gui.models.patches.live_summaries import SummaryReader
from sndr_gui.models.patches.page import PatchesModel
from sndr_gui.models.patches.rows import Facets
from sndr_gui.models.presets.drafts import Drafts
from sndr_gui.models.presets.page import PresetsModel
from sndr_gui.models.routes.page import RoutesModel
from sndr_gui.models.settings.at_login import AtLoginModel
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.models.window.actions import Actions
from sndr_gui.models.window.host_notices import HostNotices
from sndr_gui.models.window.time_travel import TimeTravel


class PageContext(QObject):
    """Models that several pages or the palette use; a model of one page alone is made with its view."""

    def __init__(
        self,
        session: Session,
        file: SettingsFile,
        go: Callable[[str], object],
        here: PageContext | None = None,
    ) -> None:
        """`here` is this machine's context, given for the host of another one: they share the hosts."""
        super().__init__()
        self.session = session
        self.fleet: Fleet = here.fleet if here is not None else Fleet(session)
        self.hosts: HostsModel = here.hosts if here is not None else HostsModel(self.fleet)
        self._go = go
        self.actions = Actions(session)
        self.home = HomeModel(session, self.actions)
        self.engine = EngineModel(session, self.actions, self.home)
        self.installations = InstallationsModel(session)
        self.launch = LaunchModel(session, self.actions, self.installations)
        self.machine = MachineModel(session, self.installations)
        self.first_run = FirstRunModel(session, self.actions, self.machine, self.launch.presets)
        chats = ChatStore(Folders.resolve().chats)
        self.chat = ChatModel(session, self.actions, HistoryModel(session, file, chats))
        self.patches = PatchesModel(session, self.actions, self.installations)
        self.past = TimeTravel()
        self.logs = LogsModel(session, self.past)
        self.fit = FitModel(session)
        drafts = f"preset-drafts-{session.host}.json" if session.host else "preset-drafts.json"
        self.presets = PresetsModel(session, Drafts(file.folder / drafts))
        self.routes = RoutesModel(session)
        self.settings = SettingsModel(session, file, lambda: self.go("settings"))
        self.at_login: AtLoginModel = here.at_login if here is not None else AtLoginModel(self.launch.presets)
        self._patch_summaries = SummaryReader(session)
        self._host_notices = HostNotices(session, self.show_engine, self.go)
        self.settings.chats_changed.connect(self.chat.history.changed)

    def go(self, page: str) -> None:
        """Go to a page of this host: what a notice of another one leads to is that one's."""
        self.fleet.choose(self.session.host)
        self._go(page)

    def read_lists(self) -> None:
        """Read what the palette offers and no page has read yet."""
        # Which presets can start is judged beside it, and offered as soon as it is known.
        self.launch.presets.load_if_stale()
        if self.session.connection.connected:
            if self.patches.page is None:
                self.patches.load()
            self.routes.load()

    def open_launch(self) -> None:
        """Go to Launch."""
        self.go("launch")

    def show_preset(self, preset: str) -> None:
        """Go to Launch, to a preset."""
        self.go("launch")
        self.launch.select_preset(preset)

    def show_model(self, model: str) -> None:
        """Go to Launch, to a model."""
        self.go("launch")
        self.launch.select(model)

    def show_patch(self, patch: str) -> None:
        """Go to Patches, to a patch."""
        self.go("patches")
        self.patches.reveal(patch)

    def show_route(self, route: str) -> None:
        """Go to Routes, to a route."""
        self.go("routes")
        self.routes.reveal(route)

    def show_setting(self, name: str) -> None:
        """Go to Settings, to a setting."""
        self.go("settings")
        self.settings.reveal(name)

    def show_host(self, name: str) -> None:
        """Go to Hosts, to all that is known of a host on another machine; it is not connected."""
        self._go("hosts")
        self.hosts.open(name)

    def open_patches(self, pid: int | None = None) -> None:
        """Go to Patches, to those of one process where it is given."""
        self.go("patches")
        if pid is not None:
            self.patches.set_facets(Facets(pid=pid))

    def open_preset(self, preset: str, settings: object = None) -> None:
        """Go to Presets, to the editor of one's own, or of a new variation of one of the program's."""
        self.go("presets")
        self.presets.edit(preset, settings if isinstance(settings, dict) else {})

    def open_fit(self, preset: str) -> None:
        """Go to Fit, to a preset."""
        self.go("fit")
        self.fit.show_preset(preset)

    def chat_with(self, engine_id: str) -> None:
        """Go to Chat and on with this engine."""
        if (engine := self.session.state.engines.get(engine_id)) is not None:
            self.chat.choose(engine)
        self.go("chat")

    def show_engine(self, engine_id: str) -> None:
        """Go to Engine, to this engine."""
        if (engine := self.session.state.engines.get(engine_id)) is not None:
            self.session.state.choose(engine)
        self.go("engine")

    def open_log(self, source: str) -> None:
        """Go to the log of a source, at its failure."""
        self.go("logs")
        self.logs.open_failure(source)

    def show_log(self, source: str) -> None:
        """Go to the log of a source, at its end."""
        self.go("logs")
        self.logs.set_source(source)

    def open_log_at(self, source: str, at: float) -> None:
        """Go to the log of a source, of all where it is empty, at a time."""
        self.go("logs")
        self.logs.open_at(source, at)

    def open_new_chat(self) -> None:
        """Go to Chat and start over."""
        self.go("chat")
        self.chat.new_chat()
