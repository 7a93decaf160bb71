"""The dialog that says where a route leads; it saves at once, or moves the route after a trial."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QFormLayout, QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol.endpoint.routes import RouteStatus
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.language import tr
from sndr_gui.models.routes.command import command_for
from sndr_gui.models.routes.form import ProviderForm, RouteForm
from sndr_gui.models.routes.page import RoutesModel
from sndr_gui.views.routes.providers import ProviderList
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import ProblemBox

_TRIAL = tr(
    "The new target gets real requests: its list of models, a chat, a stream, a "
    "tool call, a long prompt and three at once. The route leads there when all "
    "are answered; else nothing changes."
)

_ELSEWHERE = tr("Another address: say again with which key, and whether requests may leave for it.")


class RouteDialog(Dialog):
    """Asks for the targets of a route."""

    def __init__(
        self, parent: QWidget, model: RoutesModel, status: RouteStatus | None, *, moves: bool
    ) -> None:
        route = status.route if status is not None else None
        known = route.id if route is not None else ""
        super().__init__(
            parent,
            tr("Cut over {known}", known=known)
            if moves
            else tr("Edit {known}", known=known)
            if known
            else tr("New route"),
        )
        self.setMinimumWidth(560)
        self._model, self._route, self._moves = model, route, moves
        form = RouteForm.of(known, route.targets if route is not None else None)
        self.fields = QFormLayout()
        self.fields.setSpacing(8)
        self.name = self._line("ID", form.route_id, "coder")
        self.name.setReadOnly(bool(known))
        running = ", ".join(model.running)
        hint = (
            tr("for example {running}", running=running)
            if running
            else tr("names of engines, presets or models, with commas")
        )
        self.engines = self._line(tr("Engines"), form.engines, hint)
        self.asks = self._box(tr("Ask a provider with OpenAI's API"), form.asks_provider)
        self._filling = False
        self.providers = ProviderList(model, form.providers, status)
        self.providers.changed.connect(self._on_chosen)
        self.fields.addRow(text(tr("Asked in turn"), "muted"), self.providers)
        one = form.providers[0]
        self.url = self._line(tr("Base URL"), one.url, "https://HOST/v1")
        self.model_there = self._line(tr("Model there"), one.model, tr("its name at the provider"))
        self.context = self._line(tr("Context"), one.context, tr("tokens of one request"))
        self.key_variable = self._line(tr("Key in variable"), one.key_variable, tr("a variable of the host"))
        self.key_file = self._line(tr("Key in file"), one.key_file, tr("a file with mode 0600"))
        self.slots = self._line(tr("At a time"), one.slots, tr("requests"))
        self.tools = self._tick(tr("It calls tools"), one.tools)
        self.images = self._tick(tr("It takes pictures"), one.images)
        self.embeddings = self._tick(tr("It makes embeddings"), one.embeddings)
        self._abilities = Flow(self.tools, self.images, self.embeddings)
        self.fields.addRow("", self._abilities)
        self.allow = self._box(tr("Requests may leave for it"), one.allow_remote)
        self.fallback = self._box(tr("Only while none of the engines runs"), form.fallback)
        self._anyway = False
        self.elsewhere = text(_ELSEWHERE, "muted", wrap=True)
        self.elsewhere.hide()
        self.wrong = text("", "bad", wrap=True)
        self.problem = ProblemBox()
        self.problem.hide()
        self.command = CopyField(what=tr("equivalent command"), wraps=True)
        self.save = button(tr("Try and move") if moves else tr("Save"), self._on_save, kind="primary")
        self.save.setDefault(True)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(20, 18, 20, 18)
        lines.setSpacing(12)
        if moves:
            lines.addWidget(text(_TRIAL, "muted", wrap=True))
        lines.addLayout(self.fields)
        for part in (self.elsewhere, self.wrong, self.problem, self.command):
            lines.addWidget(part)
        lines.addLayout(row(None, button(tr("Cancel"), self.reject), self.save))
        model.saved.connect(self._on_saved)
        model.refused.connect(self._on_refused)
        model.changed.connect(self._refresh)
        (self.engines if known else self.name).setFocus()
        self._refresh()

    @property
    def form(self) -> RouteForm:
        """The fields as they are typed."""
        return RouteForm(
            self.name.text(),
            self.engines.text(),
            self.asks.isChecked(),
            self.providers.forms,
            self.fallback.isChecked(),
        )

    def _line(self, name: str, value: str, hint: str) -> QLineEdit:
        made = QLineEdit(value)
        made.setAccessibleName(name)
        made.setPlaceholderText(hint)
        made.textChanged.connect(self._on_edited)
        self.fields.addRow(text(name, "muted"), made)
        return made

    def _box(self, name: str, value: bool) -> QCheckBox:
        made = self._tick(name, value)
        self.fields.addRow("", made)
        return made

    def _tick(self, name: str, value: bool) -> QCheckBox:
        made = QCheckBox(name)
        made.setChecked(value)
        made.setAccessibleName(name)
        made.toggled.connect(self._on_edited)
        return made

    def _on_edited(self) -> None:
        if self._filling:
            return
        self.problem.hide()
        self._anyway = False
        self._keep()
        self._refresh()

    def _keep(self) -> None:
        """Write what is typed into the provider that is chosen."""
        one = self.providers.chosen
        one.url, one.model, one.context = self.url.text(), self.model_there.text(), self.context.text()
        one.key_variable, one.key_file = self.key_variable.text(), self.key_file.text()
        one.slots, one.tools = self.slots.text(), self.tools.isChecked()
        one.images, one.embeddings = self.images.isChecked(), self.embeddings.isChecked()
        one.allow_remote = self.allow.isChecked()
        if one.moved():
            self._fill(one)
            self.elsewhere.show()
        self.providers.show_forms()

    def _fill(self, one: ProviderForm) -> None:
        """Show a provider in the fields."""
        self._filling = True
        for line, value in (
            (self.url, one.url), (self.model_there, one.model), (self.context, one.context),
            (self.key_variable, one.key_variable), (self.key_file, one.key_file), (self.slots, one.slots),
        ):  # fmt: skip
            if line.text() != value:
                line.setText(value)
        for box, ticked in (
            (self.tools, one.tools), (self.images, one.images), (self.embeddings, one.embeddings),
            (self.allow, one.allow_remote),
        ):  # fmt: skip
            box.setChecked(ticked)
        self._filling = False

    def _on_chosen(self) -> None:
        """Show another provider, or the same ones in another order."""
        self.problem.hide()
        self._anyway = False
        self.elsewhere.hide()
        self._fill(self.providers.chosen)
        self._refresh()

    def _refresh(self) -> None:
        """Show what is wrong, the command, and the fields that mean something."""
        asks = self.asks.isChecked()
        for part in (
            self.providers, self.url, self.model_there, self.context, self.key_variable, self.key_file,
            self.slots, self._abilities, self.allow, self.fallback,
        ):  # fmt: skip
            self.fields.setRowVisible(part, asks)
        targets, wrong = self.form.read()
        typed = bool(self.name.text() and (self.engines.text() or asks))
        set_text(self.wrong, wrong if typed else "")
        self.wrong.setVisible(bool(wrong) and typed)
        before = self._route.targets if self._route is not None else None
        action = "cutover" if self._moves else "set"
        self.command.setVisible(targets is not None)
        if targets is not None:
            command = command_for(action, self.name.text().strip(), targets, before)
            self.command.set_content(f"{command} --anyway" if self._anyway else command)
        if not self._moves:
            self.save.setText(tr("Save anyway") if self._anyway else tr("Save"))
        sending = self._model.pending("cutover" if self._moves else "set")
        same = self._moves and targets == before
        self.save.setEnabled(targets is not None and not sending and not same and self._model.connected)

    def _on_save(self) -> None:
        targets, _wrong = self.form.read()
        if targets is None:
            return
        name = self.name.text().strip()
        if self._moves:
            self._model.cut_over(name, targets)
        else:
            self._model.put(name, targets, anyway=self._anyway)

    def _on_saved(self) -> None:
        self.accept()

    def _on_refused(self, problem: Problem) -> None:
        self.problem.show_problem(problem)
        self.problem.show()
        # A name that nobody knows may be that of an engine which starts later.
        self._anyway = problem.reason is Reason.NOT_FOUND and "unknown" in problem.evidence
        self._refresh()
