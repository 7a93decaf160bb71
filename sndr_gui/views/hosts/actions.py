"""The actions on a host as buttons: one table for its card and for its detail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtWidgets import QPushButton

from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.models.hosts.cards import HostCard
from sndr_gui.models.hosts.installing import InstallModel, Verb, is_changing
from sndr_gui.models.hosts.page import HostsModel
from sndr_gui.models.hosts.words import THIS_MACHINE
from sndr_gui.views.hosts.installing import InstallDialog
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.flow import Flow


@dataclass(frozen=True)
class _Action:
    """One button: its words, the command that does the same, and when it is there."""

    label: str
    hint: str
    command: str
    icon: str = ""
    kind: str = ""
    offered: Callable[[HostCard], bool] = lambda _card: True
    waits: bool = True


_ACTIONS: Mapping[str, _Action] = {
    "open": _Action(
        tr("Details"),
        tr("Everything that is known of it, and what can be done with it"),
        "sndr host facts {name}",
        icon="server", waits=False,
    ),
    "show": _Action(
        tr("Show"),
        tr("Let every page be about {title}"),
        "sndr --host {name} status",
        icon="gauge", offered=lambda card: card.can_show, waits=False,
    ),
    "connect": _Action(
        tr("Connect"),
        tr("Connect over ssh and stay connected"),
        "sndr host connect {name}",
        icon="plug", offered=lambda card: card.can_connect,
    ),
    "retry": _Action(
        tr("Try now"),
        tr("Try again at once, and not only after the pause"),
        "sndr host connect {name}",
        icon="rotate-cw", offered=lambda card: card.can_retry,
    ),
    "disconnect": _Action(
        tr("Disconnect"),
        tr("End the connection; what runs there goes on"),
        "sndr host disconnect {name}",
        icon="x", offered=lambda card: card.can_disconnect,
    ),
    "install": _Action(
        tr("Install…"),
        tr("Install the engine host over there; its plan is shown first"),
        "sndr host install {name}",
        icon="download", offered=lambda card: card.can_install,
    ),
    "start": _Action(
        tr("Start…"),
        tr("Start the engine host there, and make anew what is damaged; its plan is shown first"),
        "sndr host update {name}", icon="play", offered=lambda card: card.can_start,
    ),
    "update": _Action(
        tr("Update…"),
        tr("Update the engine host over there; its plan is shown first"),
        "sndr host update {name}",
        icon="download", offered=lambda card: card.can_update,
    ),
    "back": _Action(
        tr("Go back…"), tr("Roll back to the version before the last update; its plan is shown first"),
        "sndr host update {name} --back", icon="undo-2", offered=lambda card: card.can_uninstall,
    ),
    "uninstall": _Action(
        tr("Uninstall…"), tr("Remove the engine host over there; its plan is shown first"),
        "sndr host uninstall {name}", kind="danger", offered=lambda card: card.can_uninstall,
    ),
    "probe": _Action(
        tr("Read facts"),
        tr("Read what the machine has and what runs there"),
        "sndr host probe {name}",
        icon="refresh-cw", offered=lambda card: card.can_probe,
    ),
    "remove": _Action(
        tr("Remove"),
        tr("Forget it here; nothing changes there. Can be undone"),
        "sndr host remove {name}",
        icon="trash-2", kind="danger",
    ),
}  # fmt: skip
_PLANNED = {
    "install": Verb.INSTALL,
    "start": Verb.START,
    "update": Verb.UPDATE,
    "back": Verb.BACK,
    "uninstall": Verb.UNINSTALL,
}


class HostButtons(Flow):
    """Some of the actions on one host, as they are possible now."""

    def __init__(self, model: HostsModel, name: str, wanted: tuple[str, ...]) -> None:
        self.made: dict[str, QPushButton] = {}
        self._model, self._name = model, name
        shown = name or formats.inside(THIS_MACHINE)
        for action_id in wanted:
            action = _ACTIONS[action_id]
            command = action.command.format(name=name) if name else "sndr status"
            made = button(
                action.label,
                self._act(action_id),
                icon=action.icon,
                kind=action.kind,
                hint=action.hint.format(title=shown),
                command=command,
            )
            made.setAccessibleName(f"{action.label.rstrip('…')} {shown}")
            self.made[action_id] = made
        super().__init__(*self.made.values())

    def show_card(self, card: HostCard) -> None:
        """Offer what is possible with a host as it is now."""
        model = self._model
        changing = bool(self._name) and is_changing(model.session, self._name)
        for action_id, made in self.made.items():
            action = _ACTIONS[action_id]
            made.setVisible(action.offered(card))
            busy = model.pending(f"{action_id} {self._name}") or (changing and action_id in _PLANNED)
            made.setEnabled(not action.waits or (model.connected and not busy))
        if show := self.made.get("show"):
            show.setEnabled(model.fleet.chosen != self._name)

    def _act(self, action_id: str) -> Callable[[], object]:
        model, name = self._model, self._name
        if action_id in _PLANNED:
            return lambda: InstallDialog(
                self.window(), InstallModel(model.session, name, _PLANNED[action_id])
            ).open()
        acts: Mapping[str, Callable[[], object]] = {
            "open": lambda: model.open(name),
            "show": lambda: model.fleet.choose(name),
            "connect": lambda: model.connect_host(name),
            "retry": lambda: model.connect_host(name),
            "disconnect": lambda: model.disconnect_host(name),
            "probe": lambda: model.probe(name),
            "remove": lambda: model.remove(name),
        }
        return acts[action_id]
