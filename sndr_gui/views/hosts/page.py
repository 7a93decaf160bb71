"""The page Hosts: this machine and the others as cards, at one glance."""

from __future__ import annotations

from PySide6.QtWidgets import QFormLayout, QVBoxLayout, QWidget

from engine_host.protocol.remote.hosts import HostSheet
from sndr_gui.models.hosts.cards import HostCard
from sndr_gui.models.hosts.installing import InstallModel, Verb
from sndr_gui.models.hosts.page import HostsModel
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.hosts.adding import AddHostDialog
from sndr_gui.views.hosts.installing import InstallDialog
from sndr_gui.views.hosts.sheet import SheetDialog
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card, EmptyState
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import ElidedLabel, badge, set_text, set_tone, text
from sndr_gui.views.widgets.layout import clear
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.problems import ProblemBox

_ABOUT = (
    "Other machines are reached over your own ssh: its configuration, keys, agent and jump hosts. Once one "
    "is connected, every page can be about it: the choice stands at the top of the sidebar."
)


class HostsView(Page):
    """The page of hosts."""

    def __init__(self, model: HostsModel) -> None:
        super().__init__("Hosts", scrolls=True)
        self.model = model
        self.new = button(
            "Add host…",
            self.add,
            icon="plus",
            kind="primary",
            hint="Keep another machine by a name",
            command="sndr host add NAME USER@HOST",
        )
        self.tools.addWidget(self.new)
        listed = QWidget()
        self._list = QVBoxLayout(listed)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(14)
        self._empty = EmptyState(
            "server", "No other machine yet", _ABOUT, CopyField("sndr host add NAME USER@HOST", "the command")
        )
        self.body.addWidget(listed)
        self.body.addWidget(self._empty, 1)
        self.body.addStretch(1)
        self.cards: dict[str, HostCardView] = {}
        self.dialog: AddHostDialog | None = None
        model.changed.connect(self.refresh)
        model.sheet_read.connect(self._on_sheet)
        self.refresh()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)

    def add(self) -> None:
        """Ask for another machine."""
        self.dialog = AddHostDialog(self, self.model)
        self.dialog.finished.connect(self._on_closed)
        self.dialog.open()

    def _on_sheet(self, sheet: HostSheet) -> None:
        SheetDialog(self, sheet).open()

    def _on_closed(self) -> None:
        self.dialog = None

    def refresh(self) -> None:
        """Show the hosts of now."""
        cards = self.model.cards
        set_text(self.subtitle, self.model.subtitle)
        self.new.setEnabled(self.model.connected)
        names = [card.name for card in cards]
        if names != list(self.cards):
            clear(self._list)
            self.cards = {name: HostCardView(self.model, name) for name in names}
            for view in self.cards.values():
                self._list.addWidget(view)
        for card in cards:
            self.cards[card.name].show_card(card)
        self._empty.setVisible(len(cards) == 1)


class HostCardView(Card):
    """One host: its state, what it has and does, and what can be done with it."""

    def __init__(self, model: HostsModel, name: str) -> None:
        self._state = badge("")
        super().__init__(name or "This machine", self._state)
        self._model, self._name = model, name
        self._about = ElidedLabel("", "muted")
        self._sentence = text("", "muted", wrap=True)
        self._problem = ProblemBox()
        self._values: dict[str, ElidedLabel] = {}
        self._verb = Verb.INSTALL
        facts = QFormLayout()
        facts.setHorizontalSpacing(18)
        facts.setVerticalSpacing(4)
        for caption in ("GPUs", "Models", "Speed", "Last event", "Facts"):
            self._values[caption] = ElidedLabel("")
            facts.addRow(text(caption, "muted"), self._values[caption])
        shown = name or "this machine"
        here = "sndr status"
        self.show_pages = button(
            "Show",
            self._on_show,
            icon="gauge",
            hint=f"Let every page be about {shown}",
            command=f"sndr --host {name} status" if name else here,
        )
        self.connect_it = button(
            "Connect",
            lambda: model.connect_host(name),
            icon="plug",
            hint="Connect over ssh and stay connected",
            command=f"sndr host connect {name}",
        )
        self.disconnect_it = button(
            "Disconnect",
            lambda: model.disconnect_host(name),
            icon="x",
            hint="End the connection; what runs there goes on",
            command=f"sndr host disconnect {name}",
        )
        self.probe = button(
            "Read facts",
            lambda: model.probe(name),
            icon="refresh-cw",
            hint="Read what the machine has and what runs there",
            command=f"sndr host probe {name}",
        )
        self.sheet = button(
            "Sheet",
            lambda: model.read_sheet(name),
            icon="bookmark",
            hint="What is known of this machine, as Markdown",
            command=f"sndr host sheet {name}",
        )
        self.remove = button(
            "Remove",
            lambda: model.remove(name),
            icon="trash-2",
            kind="danger",
            hint="Forget it here; nothing changes there. Can be undone",
            command=f"sndr host remove {name}",
        )
        self.install = button("Install…", self._on_install, icon="download")
        self.uninstall = button(
            "Uninstall…",
            lambda: self._change(Verb.UNINSTALL),
            hint="Remove the engine host over there; its plan is shown first",
            command=f"sndr host uninstall {name}",
        )
        self._job = JobView("change of the host")
        self._job.cancel.clicked.connect(self._on_cancel)
        self._job.hide()
        others = (
            self.connect_it,
            self.disconnect_it,
            self.install,
            self.probe,
            self.sheet,
            self.uninstall,
            self.remove,
        )
        for made in (self.show_pages, *others):
            made.setAccessibleName(f"{made.text()} {shown}")
        self.body.addWidget(self._about)
        self.body.addWidget(self._sentence)
        self.body.addWidget(self._problem)
        self.body.addLayout(facts)
        self.body.addWidget(self._job)
        # This machine is neither connected nor removed.
        self.body.addWidget(Flow(self.show_pages, *(others if name else ())))

    def show_card(self, card: HostCard) -> None:
        """Show a host as it is now."""
        model, name = self._model, self._name
        set_text(self._state, card.word)
        set_tone(self._state, card.tone)
        set_text(self._about, card.about)
        set_text(self._sentence, card.sentence)
        self._sentence.setVisible(bool(card.sentence) and card.problem is None)
        self._problem.setVisible(card.problem is not None)
        if card.problem is not None:
            self._problem.show_problem(card.problem)
        values = (card.gpus, card.models, card.speed, card.last or "none yet", card.age)
        for (caption, label), value in zip(self._values.items(), values, strict=True):
            set_text(label, value)
            label.setAccessibleName(f"{caption}: {value}")
        self.setAccessibleName(f"{card.title}: {card.word}")
        self.show_pages.setEnabled(card.can_show and model.fleet.chosen != name)
        if not name:
            return
        job = model.job(name)
        changing = job is not None and not job.ended
        self._job.setVisible(job is not None)
        if job is not None:
            self._job.show_job(job, model.pending(f"cancel {job.id}"))
        self._verb = Verb.UPDATE if card.can_update else Verb.INSTALL
        self.install.setVisible(card.can_install or card.can_update)
        self.install.setEnabled(model.connected and not changing)
        self.install.setText("Update…" if card.can_update else "Install…")
        self.install.setAccessibleName(f"{self._verb.value.capitalize()} on {name}")
        said = f"{self._verb.value.capitalize()} the engine host over there; its plan is shown first"
        self.install.setToolTip(tip(said, command=f"sndr host {self._verb.value} {name}"))
        self.uninstall.setVisible(card.can_uninstall)
        self.uninstall.setEnabled(model.connected and not changing)
        self.connect_it.setVisible(card.can_connect)
        self.disconnect_it.setVisible(card.can_disconnect)
        self.connect_it.setEnabled(model.connected)
        self.disconnect_it.setEnabled(model.connected and not model.pending(f"disconnect {name}"))
        self.sheet.setEnabled(model.connected and not model.pending(f"sheet {name}"))
        self.probe.setEnabled(model.connected and card.can_disconnect and not model.pending(f"probe {name}"))
        self.remove.setEnabled(model.connected and not model.pending(f"remove {name}"))

    def _on_install(self) -> None:
        self._change(self._verb)

    def _change(self, verb: Verb) -> None:
        InstallDialog(self, InstallModel(self._model.session, self._name, verb)).open()

    def _on_cancel(self) -> None:
        if (job := self._model.job(self._name)) is not None:
            self._model.cancel(job.id)

    def _on_show(self) -> None:
        self._model.fleet.choose(self._name)
