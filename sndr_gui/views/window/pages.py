"""The table of the pages: the one place where a page is registered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine_host.protocol.language import tr
from sndr_gui.kit.shortcuts import page_keys

# Views are imported when they are first shown, and models after the first paint.
if TYPE_CHECKING:
    from sndr_gui.views.widgets.page import Page
    from sndr_gui.views.window.context import PageContext


def _home(context: PageContext) -> Page:
    from sndr_gui.views.home.page import HomeView

    return HomeView(
        context.home, context.open_log, context.open_launch, context.chat_with, context.show_engine
    )


def _launch(context: PageContext) -> Page:
    from sndr_gui.views.launch.page import LaunchView

    view = LaunchView(context.launch, context.machine, context.chat_with, context.open_log)
    view.edit_requested.connect(context.open_preset)
    view.fit_requested.connect(context.open_fit)
    return view


def _library(context: PageContext) -> Page:
    from sndr_gui.models.library.page import LibraryModel
    from sndr_gui.views.library.page import LibraryView

    return LibraryView(LibraryModel(context.session), context.show_model)


def _fit(context: PageContext) -> Page:
    from sndr_gui.views.fit.page import FitView

    view = FitView(context.fit)
    view.inputs.edit_requested.connect(context.open_preset)
    return view


def _presets(context: PageContext) -> Page:
    from sndr_gui.views.presets.page import PresetsView

    return PresetsView(context.presets, context.open_fit)


def _engine(context: PageContext) -> Page:
    from sndr_gui.views.engine.page import EngineView

    return EngineView(
        context.engine, context.open_launch, context.open_patches, context.open_log, context.chat_with
    )


def _patches(context: PageContext) -> Page:
    from sndr_gui.views.patches.page import PatchesView

    return PatchesView(context.patches, context.open_launch)


def _chat(context: PageContext) -> Page:
    from sndr_gui.views.chat.page import ChatView

    return ChatView(context.chat, context.open_launch)


def _connect(context: PageContext) -> Page:
    from sndr_gui.models.connect.page import ConnectModel
    from sndr_gui.views.connect.page import ConnectView

    return ConnectView(ConnectModel(context.session), context.open_launch)


def _monitor(context: PageContext) -> Page:
    from sndr_gui.models.monitor.page import MonitorModel
    from sndr_gui.views.monitor.page import MonitorView

    return MonitorView(MonitorModel(context.session, context.past), context.open_log_at)


def _routes(context: PageContext) -> Page:
    from sndr_gui.views.routes.page import RoutesView

    return RoutesView(context.routes)


def _hosts(context: PageContext) -> Page:
    from sndr_gui.views.hosts.page import HostsView

    return HostsView(context.hosts, context.go)


def _logs(context: PageContext) -> Page:
    from sndr_gui.views.logs.page import LogsView

    return LogsView(context.logs)


def _doctor(context: PageContext) -> Page:
    from sndr_gui.models.doctor.page import DoctorModel
    from sndr_gui.views.doctor.page import DoctorView

    model = DoctorModel(context.session)
    return DoctorView(model, context.go, context.open_log, context.actions.apply_fix)


def _bench(context: PageContext) -> Page:
    from sndr_gui.models.bench.page import BenchModel
    from sndr_gui.views.bench.page import BenchView

    return BenchView(BenchModel(context.session), context.go)


def _settings(context: PageContext) -> Page:
    from sndr_gui.views.settings.page import SettingsView

    return SettingsView(context.settings, context.installations, context.first_run, context.at_login)


@dataclass(frozen=True)
class PageEntry:
    """One page; `build` makes its view, and its model where no other page uses it.

    `here`: it is about this machine, whichever host the other pages are about.
    """

    name: str
    title: str
    icon: str
    usual_keys: str
    build: Callable[[PageContext], Page]
    here: bool = False

    @property
    def shortcut(self) -> str:
        """The keys that open it: the person's own, or the usual ones."""
        return page_keys(self.name, self.usual_keys)


@dataclass(frozen=True)
class PageGroup:
    """Pages that stand together in the sidebar, and what they have in common."""

    title: str
    pages: tuple[PageEntry, ...]


GROUPS = (
    PageGroup(
        tr("Start"),
        (
            PageEntry("home", tr("Home"), "house", "Ctrl+1", _home),
            PageEntry("launch", tr("Launch"), "rocket", "Ctrl+2", _launch),
            PageEntry("library", tr("Library"), "library", "Ctrl+3", _library),
            PageEntry("presets", tr("Presets"), "bookmark", "Ctrl+4", _presets),
        ),
    ),
    PageGroup(
        tr("Use"),
        (
            PageEntry("chat", tr("Chat"), "message-square", "Ctrl+5", _chat),
            PageEntry("connect", tr("Connect"), "plug", "Ctrl+6", _connect, here=True),
            PageEntry("routes", tr("Routes"), "fork", "Ctrl+7", _routes),
        ),
    ),
    PageGroup(
        tr("Watch"),
        (
            PageEntry("engine", tr("Engine"), "gauge", "Ctrl+8", _engine),
            PageEntry("patches", tr("Patches"), "layers", "Ctrl+9", _patches),
            PageEntry("monitor", tr("Monitor"), "activity", "Ctrl+0", _monitor),
            PageEntry("logs", tr("Logs"), "terminal", "Ctrl+Shift+L", _logs),
            PageEntry("doctor", tr("Doctor"), "first-aid", "Ctrl+Shift+D", _doctor),
        ),
    ),
    PageGroup(
        tr("Measure"),
        (
            PageEntry("fit", tr("Fit"), "box", "Ctrl+Shift+F", _fit),
            PageEntry("bench", tr("Bench"), "timer", "Ctrl+Shift+B", _bench),
        ),
    ),
    PageGroup(
        tr("Machines"), (PageEntry("hosts", tr("Hosts"), "server", "Ctrl+Shift+H", _hosts, here=True),)
    ),
    PageGroup(tr("Program"), (PageEntry("settings", tr("Settings"), "settings", "Ctrl+,", _settings),)),
)
"""The groups of the sidebar in its order; the first ten pages are reached by Ctrl with a digit."""

PAGES = tuple(entry for group in GROUPS for entry in group.pages)
"""In the order of the sidebar."""


def page_entry(name: str) -> PageEntry:
    """Return the entry of a page."""
    return next(entry for entry in PAGES if entry.name == name)


def visited_title(way: str, page: str, host: str | None) -> str:
    """Return the title of going back or forward; with another host, "" for this machine, it names that."""
    title = page_entry(page).title
    if host is None:
        return tr("Back to {title}", title=title) if way == "back" else tr("Forward to {title}", title=title)
    host = host or tr("this machine")
    if way == "back":
        return tr("Back to {title} on {host}", title=title, host=host)
    return tr("Forward to {title} on {host}", title=title, host=host)
