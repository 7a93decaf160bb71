"""The plan on Launch: findings, patches, the exact command line, and every setting with its layer."""

import shlex

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QFrame, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.launch.fixes import LaunchFixes
from sndr_gui.models.launch.page import LaunchModel
from sndr_gui.models.launch.patches import PatchLine, summary
from sndr_gui.models.launch.settings import SettingRow
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import ElidedLabel, badge, set_text, set_tone, text
from sndr_gui.views.widgets.layout import clear, column, room_of, row, show_part
from sndr_gui.views.widgets.problems import Findings, ProblemBox

# Below this the reasons would leave no room for the values.
_WITH_REASONS = 400


class PlanCard(Card):
    """The plan: findings, the exact command line, and every setting with the layer that set it."""

    def __init__(self, model: LaunchModel, fixes: LaunchFixes) -> None:
        self._making = text("", "muted")
        super().__init__(tr("Plan"), self._making)
        self._model = model
        self.problem = ProblemBox(apply_fix=fixes.apply_fix, can_apply=fixes.can_apply)
        self.findings = Findings(fixes.apply_fix, fixes.can_apply)
        self.patches = PatchesOfStart(model)
        self._changes = text("", "muted", wrap=True)
        self._argv = CopyField(what=tr("engine command line"), wraps=True)
        self._caption = text(tr("Engine command line"), "muted")
        self.settings = SettingsGrid()
        for part in (self.problem, self.findings, self._changes, self.patches, self.settings):
            self.body.addWidget(part)
        self.body.addWidget(self._caption)
        self.body.addWidget(self._argv)

    def refresh_age(self) -> None:
        """Say when what is shown is not the plan of what is set."""
        set_text(self._making, tr("Planning…") if self._model.planning_long else self._model.behind)

    def refresh(self) -> None:
        """Show the plan of now; an older one stays in sight while the next is made."""
        model, plan = self._model, self._model.plan
        self.refresh_age()
        # What is missing has a card of its own, with the button that mends it.
        told, rows = model.told, model.setting_rows()
        show_part(self, bool(rows) or (model.missing is None and not told))
        set_text(
            self.title,
            tr("Plan") if plan is not None or not rows else tr("Settings and patches of the preset"),
        )
        self.problem.setVisible(model.problem is not None and not told)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        self.patches.refresh()
        for part in (self._argv, self._caption):
            part.setVisible(plan is not None)
        self.settings.setVisible(bool(rows))
        self.findings.show_findings(plan.findings if plan else ())
        changes = plan.changes if plan else ()
        set_text(
            self._changes,
            (tr("Changes to the running engine:") + " ") + "; ".join(changes) if changes else "",
        )
        self._changes.setVisible(bool(changes))
        if plan is not None:
            self._argv.set_content(shlex.join(plan.argv))
        self.settings.show_rows(rows)


class SettingsGrid(QFrame):
    """Every setting with its value, its layer and the reason; the reason gives way where there is no room."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(1, 2)
        self._shown: object = None
        self._reasons: list[ElidedLabel] = []
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        roomy = room_of(self) >= _WITH_REASONS
        self._grid.setColumnStretch(3, 3 if roomy else 0)
        for reason in self._reasons:
            reason.setVisible(roomy)

    def show_rows(self, rows: tuple[SettingRow, ...]) -> None:
        """Show these settings."""
        if rows == self._shown:
            return
        self._shown = rows
        clear(self._grid)
        self._reasons = []
        for place, entry in enumerate(rows):
            value = ElidedLabel(entry.value)
            value.setToolTip(plain_tooltip(entry.value))
            reason = ElidedLabel(entry.why, "muted")
            reason.hide()
            layer = badge(entry.layer)
            layer.setToolTip(plain_tooltip(f"Set by: {entry.layer}\n{entry.why}".strip()))
            set_tone(layer, "accent" if entry.layer in ("override", "user") else "")
            for number, label in enumerate((text(entry.name, "muted"), value, layer, reason)):
                self._grid.addWidget(label, place, number)
            self._reasons.append(reason)
        self._arrange()


class PatchesOfStart(QWidget):
    """The patches of this start; opened, each with its reason and a checkbox to leave it out."""

    def __init__(self, model: LaunchModel) -> None:
        super().__init__()
        self._model = model
        self._shown: tuple[PatchLine, ...] = ()
        self.summary = text("", name="h2")
        self.open = button(
            tr("Show"), self._on_open, kind="flat", hint=tr("Selected patches, and why others are left out")
        )
        self.open.setCheckable(True)
        self.open.setAccessibleName(tr("Show the patches of this start"))
        self.ticks: dict[str, QCheckBox] = {}
        self._list = QWidget()
        self._list.hide()
        self._lines = QVBoxLayout(self._list)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(6)
        self.setLayout(column(row(self.summary, None, self.open), self._list, spacing=6))

    def _on_open(self) -> None:
        self._list.setVisible(self.open.isChecked())
        self.open.setText(tr("Hide") if self.open.isChecked() else tr("Show"))

    def refresh(self) -> None:
        """Show the patches of the plan of now."""
        planned, lines = self._model.known_patches, self._model.patch_lines()
        show_part(self, bool(lines))
        if planned is not None:
            set_text(self.summary, summary(planned))
        if lines == self._shown:
            return
        focused = next((name for name, tick in self.ticks.items() if tick.hasFocus()), "")
        clear(self._lines)
        self.ticks = {}
        for line in sorted(lines, key=lambda entry: entry.patch):
            self._lines.addLayout(self._line(line))
        self._shown = lines
        if focused in self.ticks:
            self.ticks[focused].setFocus()

    def _line(self, line: PatchLine) -> QHBoxLayout:
        tick = QCheckBox()
        tick.setChecked(line.chosen)
        tick.setEnabled(line.can_change)
        tick.setAccessibleName(tr("{title}: in this start", title=line.title))
        flag = "--without" if line.chosen else "--with"
        said = (
            tr("{patch}\nsndr run MODEL {flag} {patch}", patch=line.patch, flag=flag)
            if line.can_change
            else line.patch
        )
        tick.setToolTip(plain_tooltip(said))
        tick.setProperty("patch", line.patch)
        tick.clicked.connect(self._on_ticked)
        self.ticks[line.patch] = tick
        title = text(line.title, "" if line.chosen else "muted", wrap=True)
        title.setToolTip(plain_tooltip(line.patch))
        why = text(line.why, "muted", wrap=True)
        if not line.why:
            # Shown by its parent: a label that is told to show itself before it has one is a window.
            why.hide()
        made = row(column(tick, None), column(title, why, spacing=1), spacing=8)
        made.setStretch(1, 1)
        return made

    def _on_ticked(self, wanted: bool) -> None:
        tick = self.sender()
        if isinstance(tick, QCheckBox):
            self._model.include(str(tick.property("patch")), wanted)
