"""Bisection: the dialog that asks how a start is judged, and what a bisection does and found."""

import shlex

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QGridLayout, QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.patches import BisectCheck
from sndr_gui.kit.formats import shortened
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.patches.bisect import BisectionModel
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.widgets.buttons import button, icon_button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import ElidedLabel, IconLabel, set_text, text
from sndr_gui.views.widgets.layout import clear, column, row, show_part

_CHECKS = (
    (tr("The engine starts"), "starts"),
    (tr("It answers a prompt"), "answers"),
    (tr("It gives the same answer as without patches"), "same_answer"),
    (tr("My own command exits with 0"), ""),
)


class BisectDialog(Dialog):
    """Chooses the check and shows equivalent command; never blocks the window."""

    def __init__(self, parent: QWidget, model: BisectionModel) -> None:
        super().__init__(parent, tr("Find the patch that breaks a start"))
        self.setMinimumWidth(480)
        self._model = model
        self.check: QComboBox = ChoiceBox(tr("Check of a start"))
        for title, _name in _CHECKS:
            self.check.addItem(title)
        self.command = QLineEdit()
        self.command.setAccessibleName(tr("Own command"))
        self.command.setPlaceholderText("./check.sh   ($SNDR_ENDPOINT, $SNDR_SOCKET and $SNDR_MODEL are set)")
        self.wrong = text("", "bad", wrap=True)
        self.equivalent_command = CopyField(what=tr("equivalent command"), wraps=True)
        self.start = button(tr("Start"), self._on_start, kind="primary")
        name = shortened(model.engine.name) if model.engine is not None else tr("The engine")
        hint = tr(
            "{name} is started again with half of the suspected patches at a time, until "
            "the one that makes the check fail is found. It answers nothing meanwhile; "
            "other engines go on.",
            name=name,
        )
        outer = QVBoxLayout(self)
        outer.setSpacing(12)
        for part in (
            text(hint, "muted", wrap=True),
            self.check,
            self.command,
            self.wrong,
            self.equivalent_command,
        ):
            outer.addWidget(part)
        outer.addLayout(row(None, button(tr("Cancel"), self.reject), self.start))
        self.check.currentIndexChanged.connect(self._on_changed)
        self.command.textChanged.connect(self._on_changed)
        model.changed.connect(self._on_changed)
        self._on_changed()

    def _on_finished(self, result: int) -> None:
        self._model.changed.disconnect(self._on_changed)
        super()._on_finished(result)

    def _on_changed(self) -> None:
        own = not _CHECKS[self.check.currentIndex()][1]
        self.command.setVisible(own)
        words, problem = self._words() if own else (("",), "")
        set_text(self.wrong, problem)
        self.wrong.setVisible(bool(problem))
        self.start.setEnabled(bool(words) and not problem and self._model.can_start)
        line = self._model.command(self._chosen())
        self.equivalent_command.set_content(line)
        self.equivalent_command.setVisible(bool(line))

    def _words(self) -> tuple[tuple[str, ...], str]:
        try:
            return tuple(shlex.split(self.command.text())), ""
        except ValueError as error:
            return (), tr("Invalid command: {error}.", error=error)

    def _chosen(self) -> BisectCheck | None:
        name = _CHECKS[self.check.currentIndex()][1]
        words, _problem = self._words()
        if not name and not words:
            return None
        values: dict[str, object] = {"builtin": name} if name else {"command": words}
        return BisectCheck.model_validate(values)

    def _on_start(self) -> None:
        if (check := self._chosen()) is not None:
            self._model.start(check)
            self.accept()


class BisectCard(Card):
    """A bisection under way with Cancel, or what it found: the culprits, the trials, the start without them.

    Signals:
        patch_chosen: the person wants to see a culprit
    """

    patch_chosen = Signal(str)

    def __init__(self, model: BisectionModel) -> None:
        super().__init__()
        self._model = model
        self._shown: object = None
        self.job = JobView(tr("bisection"))
        self.job.cancel.clicked.connect(self._on_cancel)
        self.away = icon_button("x", tr("Dismiss the result"), model.dismiss)
        self.sentence = text("", name="h2", wrap=True)
        self._culprits = Flow()
        self.trials = QWidget()
        self._grid = QGridLayout(self.trials)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(3, 1)
        self.trials.hide()
        self.more = button(
            tr("Show the starts"), self._on_more, kind="flat", hint=tr("Each start and its result")
        )
        self.more.setCheckable(True)
        self.equivalent_command = CopyField(what=tr("the start without the culprits"), wraps=True)
        upper = row(self.job, column(self.away, None))
        upper.setStretch(0, 1)
        self.body.addLayout(upper)
        for part in (self.sentence, self._culprits, self.equivalent_command):
            self.body.addWidget(part)
        self.body.addLayout(row(self.more, None))
        self.body.addWidget(self.trials)
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show where the bisection is, or what it found."""
        model, job, result = self._model, self._model.job, self._model.result
        show_part(self, job is not None)
        if job is None:
            return
        self.job.show_job(job, model.cancelling)
        self.job.setToolTip(plain_tooltip(job.command))
        self.away.setVisible(job.ended)
        for part in (self.sentence, self._culprits, self.more):
            part.setVisible(result is not None)
        self.trials.setVisible(result is not None and self.more.isChecked())
        command = result.command if result is not None else ""
        self.equivalent_command.setVisible(bool(command))
        self.equivalent_command.set_content(command)
        if result is None or result == self._shown:
            return
        self._shown = result
        set_text(self.sentence, result.sentence)
        self._culprits.clear()
        for name in (name for group in result.culprits for name in group):
            made = button(
                name, self._on_culprit, hint=tr("Show {name}", name=name), command=f"sndr patches show {name}"
            )
            made.setProperty("patch", name)
            self._culprits.add(made)
        self._culprits.setVisible(bool(result.culprits))
        clear(self._grid)
        for line, trial in enumerate(model.trials()):
            picture = ("circle-check", "good") if trial.passed else ("circle-alert", "bad")
            cells = (
                IconLabel(*picture, 16),
                text(tr("{patches} patches", patches=trial.patches), "muted"),
                text(trial.time, "muted"),
                ElidedLabel(trial.why, "muted"),
            )
            for place, cell in enumerate(cells):
                self._grid.addWidget(cell, line, place)

    def _on_cancel(self) -> None:
        self._model.cancel()

    def _on_more(self) -> None:
        self.more.setText(tr("Hide the starts") if self.more.isChecked() else tr("Show the starts"))
        self.trials.setVisible(self.more.isChecked())

    def _on_culprit(self) -> None:
        made = self.sender()
        if isinstance(made, QWidget):
            self.patch_chosen.emit(str(made.property("patch")))
