"""A failure in three parts: what happened, why, and what to do, as a button and as a command."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Problem
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from sndr_gui.kit import formats
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import SEVERITY_ICONS, IconLabel, restyle, set_text, text
from sndr_gui.views.widgets.layout import clear, row, show_part

# A longer fix is a sentence above its button: the button would clear_filters the page.
_BUTTON = 30


def is_request(fix: Fix) -> bool:
    """Return True when a fix is a request to the host, which every page can send."""
    return fix.action is not None


def settings_words(fix: Fix) -> str:
    """Return the settings that a fix changes, in a few words."""
    return ", ".join(
        tr("Set {name} to {value}", name=name, value=value) for name, value in fix.settings.items()
    )


class ProblemBox(QFrame):
    """Shows one problem or finding; a button applies its fix where `can_apply` allows it.

    Signals:
        log_wanted: the person wants the log
    """

    log_wanted = Signal()

    def __init__(
        self,
        severity: str = "error",
        apply_fix: Callable[[Problem | Finding], object] | None = None,
        can_apply: Callable[[Fix], bool] = is_request,
    ) -> None:
        super().__init__()
        self._apply_fix, self._can_apply = apply_fix, can_apply
        self.setObjectName("problem")
        self._problem: Problem | Finding | None = None
        self._picture = IconLabel(*SEVERITY_ICONS[severity], 18)
        self._what = text("", name="h2", wrap=True)
        self._why = text("", "muted", wrap=True)
        self._fix = text("", wrap=True)
        self._command = CopyField(what=tr("the command that fixes it"))
        self._apply = button(tr("Apply"), self._on_apply)
        self.log = button(
            tr("Open log"), self.log_wanted.emit, icon="terminal", hint=tr("Open the log at the failure")
        )
        self.log.hide()
        self._lines = CopyField(what=tr("the last log lines"), wraps=True)
        self._lines.hide()
        inner = QVBoxLayout()
        inner.setSpacing(6)
        for part in (self._what, self._why, self._fix, self._command, self._lines):
            inner.addWidget(part)
        inner.addLayout(row(self._apply, self.log, None))
        outer = QHBoxLayout(self)
        outer.setContentsMargins(14, 12, 14, 12)
        outer.setSpacing(12)
        side = QVBoxLayout()
        side.addWidget(self._picture)
        side.addStretch(1)
        outer.addLayout(side)
        outer.addLayout(inner, 1)
        self.set_severity(severity)

    def set_severity(self, severity: str) -> None:
        """Show it as info, warning or error."""
        if self.property("severity") != severity:
            self.setProperty("severity", severity)
            self._picture.set_icon(*SEVERITY_ICONS[severity])
            restyle(self)

    def show_problem(self, problem: Problem, lines: tuple[str, ...] = ()) -> None:
        """Show a problem, and the end of a log where there is one."""
        self._show(problem, problem.message, problem.cause, lines)

    def show_end(self, engine: Engine) -> None:
        """Show why an engine ended, with its log; of a start that was refused nothing ran that has one."""
        if engine.problem is not None:
            self.show_problem(engine.problem, engine.marked_lines)
        else:
            self.show_sentence(tr("{name} ended.", name=engine.name), "", engine.marked_lines)
        self.log.setVisible(not engine.was_refused)

    def show_finding(self, finding: Finding) -> None:
        """Show a finding of a check."""
        self.set_severity(finding.severity.value)
        self._show(finding, finding.message, "", ())

    def show_sentence(self, what: str, why: str = "", lines: tuple[str, ...] = ()) -> None:
        """Show a failure that has no fix of its own."""
        self._show(None, what, why, lines)

    def _show(self, problem: Problem | Finding | None, what: str, why: str, lines: tuple[str, ...]) -> None:
        self._problem = problem
        fix = problem.fix if problem else None
        for label, content in ((self._what, what), (self._why, why), (self._fix, fix.text if fix else "")):
            set_text(label, formats.strip_backticks(content))
            label.setVisible(bool(content))
        command = fix.command if fix and fix.command else ""
        self._command.set_content(command)
        self._command.setVisible(bool(command))
        does = fix is not None and self._apply_fix is not None and self._can_apply(fix)
        self._apply.setVisible(does)
        if fix is not None and does:
            label_text = formats.strip_backticks(fix.text).rstrip(".")
            short = settings_words(fix) if fix.action is None else label_text
            self._apply.setText(short if len(short) < _BUTTON else tr("Apply"))
            self._apply.setAccessibleName(
                f"{short}: {what}" if fix.action is None else formats.strip_backticks(fix.text)
            )
            self._fix.setVisible(fix.action is None or len(label_text) >= _BUTTON)
        tail = "\n".join(lines[-8:])
        self._lines.set_content(tail)
        self._lines.setVisible(bool(tail))
        self.setAccessibleName(formats.strip_backticks(f"{what} {why}".strip()))

    def _on_apply(self) -> None:
        if self._problem is not None and self._apply_fix is not None:
            self._apply_fix(self._problem)


class Findings(QWidget):
    """A list of findings, worst first."""

    def __init__(
        self, apply_fix: Callable[[Problem | Finding], object], can_apply: Callable[[Fix], bool] = is_request
    ) -> None:
        super().__init__()
        self._apply_fix, self._can_apply = apply_fix, can_apply
        self._shown: tuple[Finding, ...] = ()
        self._body = QVBoxLayout(self)
        self._body.setContentsMargins(0, 0, 0, 0)
        self._body.setSpacing(8)

    def show_findings(self, findings: tuple[Finding, ...]) -> None:
        """Show these findings."""
        if findings == self._shown:
            return
        self._shown = findings
        clear(self._body)
        order = {"error": 0, "warning": 1, "info": 2}
        for finding in sorted(findings, key=lambda entry: order[entry.severity.value]):
            box = ProblemBox(finding.severity.value, self._apply_fix, self._can_apply)
            box.show_finding(finding)
            self._body.addWidget(box)
        show_part(self, bool(findings))
