"""vLLM's environments as widgets: a line each, the card that installs one, the question before a removal."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.engines import Installation
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.installations import InstallationsModel, about, command, title_of
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import badge, set_text, set_tone, text
from sndr_gui.views.widgets.layout import clear, column, row, rule, show_part
from sndr_gui.views.widgets.problems import ProblemBox


class InstallationRow(QWidget):
    """One environment: what it is, Install or Remove, and the job on it."""

    def __init__(self, model: InstallationsModel, wanted: str, can_remove: bool = True) -> None:
        super().__init__()
        self._model, self._wanted, self._can_remove = model, wanted, can_remove
        self.name = text("")
        self.state = badge("")
        self.note = badge(tr("recommended"), "accent")
        self.about = text("", "muted", wrap=True)
        self.install = button(tr("Install"), self._on_install)
        self.remove = button(tr("Remove…"), self._on_remove)
        self.problem = ProblemBox("warning")
        self.job = JobView(tr("environment"))
        self.job.cancel.clicked.connect(self._on_cancel)
        line = Flow(self.name, self.state, self.note)
        upper = row(column(line, self.about, spacing=4), self.install, self.remove, spacing=8)
        upper.setStretch(0, 1)
        self.setLayout(column(upper, self.problem, self.job, spacing=8))

    def refresh(self) -> None:
        """Show the environment of now."""
        model, one = self._model, self._model.get(self._wanted)
        show_part(self, one is not None)
        if one is None:
            return
        user = model.user(one.id)
        set_text(self.name, title_of(one))
        state, tone = _state(one, user is not None)
        set_text(self.state, state)
        set_tone(self.state, tone)
        self.note.setVisible(one.recommended)
        set_text(self.about, about(one))
        self.about.setToolTip(plain_tooltip(one.path))
        busy, connected = model.busy(one.id) or one.changing, model.session.connection.connected
        self.install.setVisible(not one.present)
        self.install.setText(tr("Install again") if one.problem is not None else tr("Install"))
        self.install.setAccessibleName(f"{self.install.text()} {title_of(one)}")
        self.install.setEnabled(connected and not busy)
        self.install.setToolTip(
            tip(tr("Install {title_of}", title_of=title_of(one)), "", command("install", one))
        )
        self.remove.setVisible(self._can_remove and (one.present or bool(one.problem or one.leftover)))
        self.remove.setAccessibleName(tr("Remove {title_of}", title_of=title_of(one)))
        self.remove.setEnabled(connected and not busy and user is None)
        why = (
            tr("{name} runs from it.", name=user.name)
            if user is not None
            else tr("Remove {title_of}", title_of=title_of(one))
        )
        self.remove.setToolTip(tip(why, "", command("remove", one)))
        problem = model.problems.get(one.id) or one.problem
        self.problem.setVisible(problem is not None and not busy)
        if problem is not None:
            self.problem.show_problem(problem)
        job = model.job(one.id)
        self.job.setVisible(job is not None)
        if job is not None:
            self.job.show_job(job, model.cancelling(job))

    def _on_install(self) -> None:
        self._model.install(self._wanted)

    def _on_cancel(self) -> None:
        self._model.cancel(self._wanted)

    def _on_remove(self) -> None:
        one = self._model.get(self._wanted)
        if one is not None:
            dialog = RemoveDialog(self, one, self._on_confirmed)
            # open() and not exec(): a nested loop would lose tasks.
            dialog.open()

    def _on_confirmed(self) -> None:
        self._model.remove(self._wanted)


class RemoveDialog(Dialog):
    """Asks before an environment is removed: nothing brings it back but another install."""

    def __init__(self, parent: QWidget, one: Installation, confirmed: Callable[[], object]) -> None:
        super().__init__(parent, tr("Remove {title_of}?", title_of=title_of(one)))
        self.setMinimumWidth(420)
        self._confirmed = confirmed
        frees = (tr("This frees {size}.", size=formats.size(one.size)) + " ") if one.size else ""
        again = tr("Reinstalling downloads {size}.", size=formats.size(one.download))
        self.remove = button(tr("Remove"), self._on_remove, kind="danger")
        self.stay = button(tr("Cancel"), self.reject)
        outer = QVBoxLayout(self)
        outer.setSpacing(12)
        outer.addWidget(text(tr("Remove {title_of}?", title_of=title_of(one)), name="big"))
        outer.addWidget(text(frees + again, "muted", wrap=True))
        if one.path:
            outer.addWidget(CopyField(one.path, tr("the folder")))
        outer.addLayout(row(None, self.stay, self.remove))

    def _on_remove(self) -> None:
        self._confirmed()
        self.accept()


class InstallCard(Card):
    """Offers the environment that a start needs, and shows its installation."""

    def __init__(self, model: InstallationsModel) -> None:
        super().__init__()
        self._model = model
        self._wanted = ""
        self.heading = text("", name="big")
        self.hint = text("", "muted", wrap=True)
        self.entry: InstallationRow | None = None
        self._place = QVBoxLayout()
        self.equivalent_command = CopyField(what=tr("equivalent command"), wraps=True)
        for part in (self.heading, self.hint):
            self.body.addWidget(part)
        self.body.addLayout(self._place)
        self.body.addWidget(self.equivalent_command)

    def show_missing(self, one: Installation | None) -> None:
        """Offer this environment; nothing when none is missing."""
        show_part(self, one is not None)
        if one is None:
            return
        if one.id != self._wanted or self.entry is None:
            self._wanted = one.id
            clear(self._place)
            self.entry = InstallationRow(self._model, one.id, can_remove=False)
            self.entry.install.setProperty("primary", "true")
            self._place.addWidget(self.entry)
        damaged = one.problem is not None
        set_text(
            self.heading,
            tr("{title} is damaged", title=title_of(one))
            if damaged
            else tr("{title} is not installed", title=title_of(one)),
        )
        set_text(
            self.hint,
            tr("This model runs on vLLM, which gets its own environment; nothing else changes."),
        )
        self.equivalent_command.set_content(command("install", one))
        self.entry.refresh()


class InstallationsCard(Card):
    """Every environment of vLLM that is or could be here."""

    def __init__(self, model: InstallationsModel) -> None:
        super().__init__("vLLM")
        self._model = model
        self.rows: dict[str, InstallationRow] = {}
        self.body.addWidget(
            text(
                tr("Each version and build has its own environment. Patches never change its files."),
                "muted",
                wrap=True,
            )
        )
        self._lines = QVBoxLayout()
        self._lines.setSpacing(10)
        self.body.addLayout(self._lines)
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the environments of now."""
        known = [one.id for one in self._model.all]
        show_part(self, bool(known))
        if list(self.rows) != known:
            clear(self._lines)
            self.rows = {}
            for place, wanted in enumerate(known):
                if place:
                    self._lines.addWidget(rule())
                self.rows[wanted] = InstallationRow(self._model, wanted)
                self._lines.addWidget(self.rows[wanted])
        for line in self.rows.values():
            line.refresh()


def _state(one: Installation, used: bool) -> tuple[str, str]:
    if used:
        return tr("running"), "good"
    if one.changing:
        return "changing", "muted"
    if one.problem is not None:
        return tr("damaged"), "bad"
    return (tr("installed"), "good") if one.present else (tr("not installed"), "muted")
