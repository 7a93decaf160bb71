"""Everything of one host, in sections."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTabBar, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.models.hosts.cards import HostCard
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.page import HostsModel
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.hosts.actions import HostButtons
from sndr_gui.views.hosts.sections.engine_host import EngineHostSection
from sndr_gui.views.hosts.sections.facts import FactsSection
from sndr_gui.views.hosts.sections.files import FilesSection
from sndr_gui.views.hosts.sections.overview import OverviewSection
from sndr_gui.views.hosts.sections.services import ServicesSection
from sndr_gui.views.hosts.sections.sheet import SheetSection
from sndr_gui.views.hosts.sections.traffic import TrafficSection
from sndr_gui.views.hosts.sections.watchdogs import WatchdogsSection
from sndr_gui.views.widgets.labels import badge, set_text, set_tone, text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import ProblemBox

Section = (
    OverviewSection
    | TrafficSection
    | ServicesSection
    | FilesSection
    | FactsSection
    | WatchdogsSection
    | SheetSection
    | EngineHostSection
)


_TITLES = {
    "Overview": tr("Overview"),
    "Traffic": tr("Traffic"),
    "Services": tr("Services"),
    "Files": tr("Files"),
    "Facts": tr("Facts"),
    "Watchdogs": tr("Watchdogs"),
    "Sheet": tr("Sheet"),
    "Engine host": tr("Engine host"),
}


class HostDetail(QWidget):
    """One host: its state and actions above, and a section below; each is made when it is first shown."""

    def __init__(self, hosts: HostsModel, name: str, open_page: Callable[[str], object]) -> None:
        super().__init__()
        self.name = name
        self.model = HostDetailModel(hosts, name)
        self._state = badge("")
        self._sentence = text("", "muted", wrap=True)
        self._problem = ProblemBox()
        self._card: HostCard | None = None
        wanted = ("connect", "retry", "install", "start", "update", "show", "probe", "disconnect", "remove")
        self.buttons = HostButtons(hosts, name, wanted)
        self._job = JobView(tr("job on the host"), dismiss=True)
        self._job.cancel.clicked.connect(self._on_cancel)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName(tr("Sections of {name}", name=name))
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self.tabs.setElideMode(Qt.TextElideMode.ElideNone)
        self.tabs.setUsesScrollButtons(True)
        self._made: dict[str, Callable[[], Section]] = {
            "Overview": lambda: OverviewSection(self.model),
            "Traffic": lambda: TrafficSection(self.model, lambda: open_page("routes")),
            "Services": lambda: ServicesSection(self.model),
            "Files": lambda: FilesSection(self.model),
            "Facts": lambda: FactsSection(self.model),
            "Watchdogs": lambda: WatchdogsSection(self.model),
            "Sheet": lambda: SheetSection(self.model),
            "Engine host": lambda: EngineHostSection(self.model),
        }
        self.sections: dict[str, Section] = {}
        for title in self._made:
            self.tabs.addTab(_TITLES.get(title, title))
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(12)
        state = row(self._state, self._sentence)
        state.setStretch(1, 1)
        self._lines.addLayout(state)
        for part in (self._problem, self.buttons, self._job, self.tabs):
            self._lines.addWidget(part)
        self.tabs.currentChanged.connect(self._on_section)
        self.model.changed.connect(self.refresh)
        self._on_section()
        self.model.read()

    @property
    def _chosen(self) -> str:
        return list(self._made)[self.tabs.currentIndex()]

    @property
    def shown(self) -> Section:
        """The section that is shown."""
        return self.sections[self._chosen]

    def show_section(self, title: str) -> None:
        """Show a section by its title."""
        self.tabs.setCurrentIndex(list(self._made).index(title))

    def show_card(self, card: HostCard) -> None:
        """Show the host as it is now."""
        self._card = card
        set_text(self._state, card.word)
        set_tone(self._state, card.tone)
        set_text(self._sentence, card.sentence if card.problem is None else "")
        self._problem.setVisible(card.problem is not None)
        if card.problem is not None:
            self._problem.show_problem(card.problem)
        hosts = self.model.hosts
        job = hosts.job(self.name)
        self._job.setVisible(job is not None)
        if job is not None:
            self._job.show_job(job, hosts.pending(f"cancel {job.id}"))
        self.buttons.show_card(card)
        self.setAccessibleName(f"{card.title}: {card.word}")
        self.refresh()

    def refresh(self) -> None:
        """Show what was read meanwhile in the section that is shown."""
        shown = self.sections.get(self._chosen)
        if shown is None:
            # One that is being made, and reads something for itself.
            return
        shown.refresh()
        if isinstance(shown, EngineHostSection) and self._card is not None:
            shown.show_card(self._card)

    def _on_section(self) -> None:
        title = self._chosen
        if title not in self.sections:
            self.sections[title] = self._made[title]()
            self._lines.addWidget(self.sections[title])
        for name, section in self.sections.items():
            section.setVisible(name == title)
        self.refresh()

    def _on_cancel(self) -> None:
        if (job := self.model.hosts.job(self.name)) is not None:
            self.model.hosts.cancel(job.id)
