"""The pane of one patch: problem, what it touches, evidence, its state in every process, and its actions."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QGridLayout, QPlainTextEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import ntr, tr
from engine_host.protocol.patches import Patch, PatchEvidence, PatchOperation, PatchResult
from sndr_gui.kit import formats, theme
from sndr_gui.kit.setting_words import word_of
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.choice import command_of
from sndr_gui.models.engine.installations import command
from sndr_gui.models.patches.outcomes import reason_words
from sndr_gui.models.patches.page import PatchesModel
from sndr_gui.models.patches.rows import TONES
from sndr_gui.views.patches.restart import RestartDialog
from sndr_gui.views.widgets.buttons import button, link_button, tip
from sndr_gui.views.widgets.copying import CopyButton, CopyField
from sndr_gui.views.widgets.diff_text import DiffColours
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import badge, set_text, text
from sndr_gui.views.widgets.layout import clear, row, show_part

_UNKNOWN = tr("not measured")
_RISKS = {
    "low": (tr("low risk"), "good"),
    "medium": (tr("medium risk"), "warn"),
    "high": (tr("high risk"), "bad"),
}


class DiffText(QPlainTextEdit):
    """A diff, in colours, to be selected and copied."""

    def __init__(self, operation: PatchOperation) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setAccessibleName(tr("What {target} becomes", target=operation.target))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(theme.mono_font(11))
        self.setTabChangesFocus(True)
        self.setPlainText(operation.diff)
        self._colours = DiffColours(self.document())
        lines = operation.diff.count("\n") + 1
        self.setFixedHeight(min(320, 34 + lines * self.fontMetrics().lineSpacing()))


class PatchPane(QWidget):
    """Everything about the chosen patch; rebuilt when the patch or what is known of it changes."""

    def __init__(self, model: PatchesModel, bisect: Callable[[], None]) -> None:
        super().__init__()
        self.setObjectName("canvas")
        self.model = model
        self._shown: object = None
        self.title = text("", name="big", wrap=True)
        self.switch = button(tr("Switch off"), self._on_switch)
        self.default = button(tr("Default"), self._on_default, hint=tr("Back to the default switch"))
        self.default.setAccessibleName(tr("Use the default switch"))
        self.probe = button(
            tr("Probe now"),
            model.probe,
            icon="activity",
        )
        self.without = button(tr("Start without…"), self._on_without)
        self.without.setAccessibleName(tr("Start without this patch"))
        self.bisect = button(tr("Bisect…"), bisect, hint=tr("Find the patch that makes a start fail a check"))
        self.equivalent_command = CopyField("", tr("equivalent command"))
        self.install = button(tr("Install vLLM"), self._on_install, hint=tr("Needed to show its source"))
        self.install.hide()
        self._facts = QVBoxLayout()
        self._facts.setSpacing(8)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(14, 2, 8, 8)
        outer.setSpacing(10)
        actions = Flow(self.switch, self.default, self.without, self.bisect, self.probe)
        outer.addWidget(self.title)
        outer.addWidget(actions)
        outer.addLayout(self._facts)
        outer.addLayout(row(self.install, None))
        outer.addWidget(self.equivalent_command)
        outer.addStretch(1)

    def refresh(self) -> None:
        """Show the patch of now."""
        model, patch = self.model, self.model.patch
        show_part(self, patch is not None)
        if patch is None:
            return
        set_text(self.title, patch.title)
        missing = model.detail is not None and model.detail.vllm is None and model.missing is not None
        self.install.setVisible(missing)
        if missing and model.missing is not None:
            self.install.setEnabled(not model.installations.busy(model.missing.id))
            self.install.setToolTip(plain_tooltip(command("install", model.missing)))
        known = (patch, model.detail, model.in_processes())
        if known != self._shown:
            self._shown = known
            clear(self._facts)
            self._fill(patch)
        on = patch.switch == "on"
        switching = model.pending("switch")
        self.switch.setText(tr("Switching…") if switching else tr("Switch off") if on else tr("Switch on"))
        word = "off" if on else "on"
        self.switch.setToolTip(tip(tr("For the next start"), "", f"sndr patches switch {word} {patch.id}"))
        self.switch.setEnabled(model.session.connection.connected and not switching)
        self.default.setEnabled(self.switch.isEnabled() and patch.switched_by not in ("", "default"))
        self.probe.setText(tr("Probing…") if model.pending("probe") else tr("Probe now"))
        self.probe.setEnabled(model.can_ask_engine and not model.pending("probe"))
        self.without.setText(tr("Starting…") if model.pending("without") else tr("Start without…"))
        self.without.setEnabled(model.can_ask_engine and not patch.required and not model.pending("without"))
        state, engine = model.session.state, model.engine
        without = command_of(state, engine, "patches", "without", patch.id)
        self.without.setToolTip(tip(tr("Start the engine again without it"), "", without))
        probe = command_of(state, engine, "patches", "probe")
        self.probe.setToolTip(tip(tr("Check every process"), "", probe))
        self.bisect.setEnabled(model.bisection.can_start)
        self.equivalent_command.set_content(f"sndr patches show {patch.id}")

    def _on_switch(self) -> None:
        patch = self.model.patch
        if patch is not None:
            self.model.switch("off" if patch.switch == "on" else "on")

    def _on_without(self) -> None:
        if (asked := self.model.restart()) is None:
            self.model.start_without()
        else:
            # open() and not exec(): a nested loop would lose tasks.
            RestartDialog(self, self.model, asked).open()

    def _on_default(self) -> None:
        self.model.switch("default")

    def _on_install(self) -> None:
        if (missing := self.model.missing) is not None:
            self.model.installations.install(missing.id)

    def _fill(self, patch: Patch) -> None:
        add = self._facts.addWidget
        risk = badge(*_RISKS[patch.risk])
        self._facts.addLayout(
            row(badge(patch.family), badge(tr("switched {switch}", switch=word_of(patch.switch))), risk, None)
        )
        decided = tr("Set by: {switched_by}.", switched_by=word_of(patch.switched_by or "default"))
        add(
            text(
                decided + ((" " + tr("A start fails without it.")) if patch.required else ""),
                "muted",
                wrap=True,
            )
        )
        add(text(patch.problem, wrap=True))
        if patch.risk_note:
            add(text(patch.risk_note, "muted", wrap=True))
        for title, names in ((tr("Requires"), patch.requires), (tr("Required by"), self.model.needed_by())):
            if names:
                add(text(f"{title}: {', '.join(names)}", "muted", wrap=True))
        self._states()
        self._evidence(patch.evidence)
        self._operations()
        if patch.upstream:
            add(text(tr("Upstream"), name="h2"))
        for address in patch.upstream:
            short = address.removeprefix("https://").removeprefix("github.com/")
            self._facts.addLayout(row(link_button(address, short), None))
        if patch.retire_when:
            add(text(tr("Retired when: {retire_when}", retire_when=patch.retire_when), "muted", wrap=True))

    def _states(self) -> None:
        results = self.model.in_processes()
        self._facts.addWidget(text(tr("Processes"), name="h2"))
        if not results:
            why = self.model.why_left_out or tr("No process has reported this patch.")
            self._facts.addWidget(text(why, "muted", wrap=True))
        for name, result in results:
            self._facts.addLayout(row(text(name), badge(result.outcome, TONES[result.outcome]), None))
            if words := _story(result):
                self._facts.addWidget(text(words, "muted", wrap=True))

    def _evidence(self, evidence: tuple[PatchEvidence, ...]) -> None:
        self._facts.addWidget(text(tr("Evidence"), name="h2"))
        if not evidence:
            self._facts.addWidget(text(tr("Not measured."), "muted"))
            return
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        for place, title in enumerate(("", tr("before"), tr("after"), "n")):
            grid.addWidget(text(title, "muted"), 0, place)
        line = 1
        for entry in evidence:
            cells = (
                entry.metric,
                _number(entry.before, entry.unit),
                _number(entry.after, entry.unit),
                str(entry.n) if entry.n is not None else _UNKNOWN,
            )
            for place, cell in enumerate(cells):
                grid.addWidget(text(cell, wrap=place == 0), line, place)
            where = "  ·  ".join(part for part in (entry.machine, entry.pin) if part)
            if where:
                grid.addWidget(text(where, "muted", wrap=True), line + 1, 0, 1, 4)
            if entry.command:
                equivalent_command = CopyField(entry.command, tr("the command of the measurement"))
                grid.addWidget(equivalent_command, line + 2, 0, 1, 4)
            line += 3
        grid.setColumnStretch(0, 1)
        self._facts.addLayout(grid)

    def _operations(self) -> None:
        detail = self.model.detail
        self._facts.addWidget(text(tr("Changes"), name="h2"))
        if detail is None:
            self._facts.addWidget(text(tr("Reading the source…"), "muted"))
            return
        if detail.vllm is None:
            hint = tr("vLLM is not installed, so there is no source to compare with.")
            self._facts.addWidget(text(hint, "muted", wrap=True))
        for operation in detail.operations:
            copy = CopyButton(tr("the change"))
            copy.set_content(operation.diff)
            self._facts.addLayout(row(badge(operation.kind), None, copy))
            self._facts.addWidget(text(operation.target, name="mono", wrap=True))
            if operation.diff:
                self._facts.addWidget(DiffText(operation))


def _number(value: float | None, unit: str) -> str:
    return _UNKNOWN if value is None else formats.measure(formats.number(value, ",.12g"), unit)


def _story(result: PatchResult) -> str:
    parts = [reason_words(result.reason, result.detail)]
    probe = result.probe
    if probe is not None:
        said = tr("probed: live") if probe.live else tr("probed: not live")
        if probe.hits is not None:
            said += ", " + ntr("used {n} time", "used {n} times", probe.hits)
        parts.append(f"{said} ({probe.why})" if probe.why else said)
    return "  ·  ".join(part for part in parts if part)
