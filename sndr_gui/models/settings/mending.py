"""The view-model of a settings file that is wrong: told once, shown with its line, mended when asked."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.remote.host_command import for_host
from engine_host.protocol.settings import MendSettings, SettingsRepair
from sndr_gui.host.session import Session

_KEY = "wrong settings"


class MendingModel(QObject):
    """The fault of a host's settings file, the change that a repair would make, and the ways to mend it.

    Signals:
        changed: the fault, the repair or what is under way is new
        mended: the file is right again
    """

    changed = Signal()
    mended = Signal()

    def __init__(self, session: Session, show: Callable[[], object]) -> None:
        """`show` opens the page that tells of it."""
        super().__init__()
        self.session, self._show = session, show
        self.found: SettingsRepair | None = None
        self.refusal: Problem | None = None
        self.working = False
        self._told = ""
        session.state.settings_changed.connect(self._on_settings)

    @property
    def problem(self) -> Problem | None:
        """The fault of the file, as the host met it."""
        page = self.session.state.settings
        return page.problem if page is not None else None

    @property
    def file(self) -> str:
        """The path of the file."""
        page = self.session.state.settings
        return page.file if page is not None else ""

    @property
    def place(self) -> str:
        """The line at fault, with its number; empty where it cannot be told."""
        evidence = self.problem.evidence if self.problem is not None else {}
        line, said = evidence.get("line"), evidence.get("text")
        return (
            tr("Line {line}: {said}", line=line, said=said)
            if isinstance(line, int) and isinstance(said, str)
            else ""
        )

    def command(self, how: str) -> str:
        """Return the command that does the same."""
        words = {"repair": "repair", "set_aside": "set-aside", "read_again": "check"}[how]
        return for_host(f"sndr settings {words}", self.session.host)

    def _on_settings(self) -> None:
        problem = self.problem
        if problem is None:
            if self._told:
                self._told = ""
                self.session.notices.withdraw(_KEY)
                self.mended.emit()
        elif problem.message != self._told:
            self._told = problem.message
            self.session.notices.warning(
                _KEY,
                tr(
                    "The settings file is wrong, and the rest of it is used. {message}",
                    message=problem.message,
                ),
                action_text=tr("Show"),
                action=self._show,
            )
        self.changed.emit()

    def look(self) -> None:
        """Ask what a repair would change."""

        async def work(client: AsyncControlClient) -> None:
            self.found = await client.call(ops.SETTINGS_REPAIR)

        self.session.command("look at the settings", work, done=self.changed.emit, failed=self._on_failed)

    def mend(self, how: str) -> None:
        """Repair the file, set it aside, or read it again after it was edited."""
        if self.working:
            return
        self.working, self.refusal = True, None
        self.changed.emit()

        async def work(client: AsyncControlClient) -> None:
            asked = MendSettings.model_validate({"how": how})
            page = await self.session.state.take(client.call(ops.MEND_SETTINGS, asked))
            if page.problem is not None:
                self.found = await client.call(ops.SETTINGS_REPAIR)

        def done() -> None:
            self.working = False
            self.changed.emit()

        self.session.command("mend the settings", work, done=done, failed=self._on_failed)

    def _on_failed(self, error: HostError) -> None:
        self.refusal = error.problem
        self.changed.emit()
