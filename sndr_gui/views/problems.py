"""A failure in three parts: what happened, why, and the next thing to do, as a button and as a command."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from engine_host.protocol import Finding, Problem
from sndr_gui.views.copying import CommandLine
from sndr_gui.views.parts import Picture, button, clear, restyle, row, set_text, text

# A longer fix is a sentence above its button: the button would widen the page.
_BUTTON = 30
_ICONS = {"error": ("circle-alert", "bad"), "warning": ("triangle-alert", "warn"), "info": ("info", "accent")}


class ProblemBox(QFrame):
    """Shows one problem or finding.

    Signals:
        mended: the person chose the fix that the problem carries
        log_wanted: the person wants the log
    """

    mended = Signal(object)
    log_wanted = Signal()

    def __init__(self, severity: str = "error") -> None:
        super().__init__()
        self.setObjectName("problem")
        self._problem: Problem | Finding | None = None
        self._picture = Picture(*_ICONS[severity], 18)
        self._what = text("", name="h2", wrap=True)
        self._why = text("", "muted", wrap=True)
        self._fix = text("", wrap=True)
        self._command = CommandLine(what="the command that mends it")
        self._mend = button("Do it", self._on_mend)
        self.log = button(
            "Open log", self.log_wanted.emit, icon="terminal", hint="Open the log at the failure"
        )
        self.log.hide()
        self._lines = CommandLine(what="the last log lines", wraps=True)
        self._lines.hide()
        inner = QVBoxLayout()
        inner.setSpacing(6)
        for part in (self._what, self._why, self._fix, self._command, self._lines):
            inner.addWidget(part)
        inner.addLayout(row(self._mend, self.log, None))
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
            self._picture.set_picture(*_ICONS[severity])
            restyle(self)

    def show_problem(self, problem: Problem, lines: tuple[str, ...] = ()) -> None:
        """Show a problem, and the end of a log where there is one."""
        self._show(problem, problem.message, problem.cause, lines)

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
            set_text(label, content)
            label.setVisible(bool(content))
        command = fix.command if fix and fix.command else ""
        self._command.set_content(command)
        self._command.setVisible(bool(command))
        self._mend.setVisible(fix is not None and fix.action is not None)
        if fix is not None and fix.action is not None:
            label_text = fix.text.rstrip(".")
            self._mend.setText(label_text if len(label_text) < _BUTTON else "Do it")
            self._mend.setAccessibleName(fix.text)
            self._fix.setVisible(len(label_text) >= _BUTTON)
        tail = "\n".join(lines[-8:])
        self._lines.set_content(tail)
        self._lines.setVisible(bool(tail))
        self.setAccessibleName(f"{what} {why}".strip())

    def _on_mend(self) -> None:
        if self._problem is not None:
            self._mend.setEnabled(False)
            self._mend.setText("Doing it…")
            self.mended.emit(self._problem)
            self._mend.setEnabled(True)


class Findings(QWidget):
    """A list of findings, worst first."""

    def __init__(self, mend: Callable[[Problem | Finding], object]) -> None:
        super().__init__()
        self._mend = mend
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
            box = ProblemBox(finding.severity.value)
            box.show_finding(finding)
            box.mended.connect(self._mend)
            self._body.addWidget(box)
        self.setVisible(bool(findings))
