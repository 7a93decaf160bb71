"""The power limits of a host's GPUs, and the way to set one."""

from __future__ import annotations

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from sndr_gui.models.hosts.actions.power import SetPowerAction, watts
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.planned import PlannedJob
from sndr_gui.views.hosts.planned import PlannedDialog
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import show_part
from sndr_gui.views.widgets.problems import ProblemBox

_UNREAD = tr("Nobody has asked the machine yet.")


class PowerCard(Card):
    """The limits with their bounds, as the machine last told them."""

    def __init__(self, model: HostDetailModel) -> None:
        self._model = model
        self.set = button(
            tr("Set a limit…"),
            self._on_set,
            icon="gauge",
            hint=tr("Set the power limit of a GPU; its plan is shown first"),
            command=f"sndr host power {model.name} GPU WATTS",
        )
        self.read = button(
            tr("Read"),
            model.read_power,
            icon="refresh-cw",
            hint=tr("Ask the machine for the power limits of its GPUs"),
            command=f"sndr host power {model.name}",
        )
        self.read.setAccessibleName(tr("Read power limits of {name}", name=model.name))
        super().__init__(tr("Power limits"), self.set, self.read)
        self.problem = ProblemBox()
        self.table = PlainTable(tr("Power limits"))
        self.nothing = text(_UNREAD, "muted", wrap=True)
        for part in (self.problem, self.table, self.nothing):
            self.body.addWidget(part)

    def refresh(self) -> None:
        """Show what was last read."""
        model, page = self._model, self._model.power
        gpus = page.gpus if page is not None else ()
        show_part(self, bool(gpus) or bool(model.facts is not None and model.facts.gpus))
        self.read.setEnabled(model.is_connected and not model.pending("power"))
        self.set.setEnabled(model.is_connected and bool(gpus))
        problem = model.problems.get("power")
        self.problem.setVisible(problem is not None)
        if problem is not None:
            self.problem.show_problem(problem)
        rows = tuple(
            (f"GPU {one.index}", one.name, *map(watts, (one.draw, one.limit, one.default)),
             tr("{watts} to {watts_2}", watts=watts(one.minimum), watts_2=watts(one.maximum)))
            for one in gpus
        )  # fmt: skip
        self.table.show_rows(("GPU", tr("Name"), tr("Draws"), tr("Limit"), tr("Default"), tr("Bounds")), rows)
        said = _UNREAD
        if page is not None:
            said = tr("No power limit can be read: {why}.", why=page.why) if not gpus else ""
            if gpus and not page.permitted:
                said = tr("That user may not set them: {why}.", why=page.why)
        set_text(self.nothing, readable(said)[:600])
        self.nothing.setVisible(bool(said))

    def _on_set(self) -> None:
        page = self._model.power
        action = SetPowerAction(self._model.name, page.gpus if page is not None else ())
        PlannedDialog(self.window(), PlannedJob(self._model.hosts.session, self._model.name, action)).open()
