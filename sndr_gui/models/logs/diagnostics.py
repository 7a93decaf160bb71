"""The view-model of a bug report: collected in a thread, looked through, then saved where a person says."""

from __future__ import annotations

import asyncio
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.diagnostics.bundle import Bundle, collect, save
from engine_host.protocol.language import tr
from engine_host.protocol.remote.host_command import for_host
from sndr_gui.host.session import Session
from sndr_gui.kit import formats

_COMMAND = "sndr diagnostics"


class DiagnosticsModel(QObject):
    """One report of the machine that the pages are about; what is shown of it is what is saved.

    Signals:
        changed: the report is there, or could not be saved
        saved: it is where it was meant to be
    """

    changed = Signal()
    saved = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.bundle: Bundle | None = None
        self.problem = ""
        self.saving = False

    @property
    def command(self) -> str:
        """The command that does the same."""
        return for_host(_COMMAND, self.session.host)

    def load(self) -> None:
        """Collect the report; it works without a host too."""
        self.session.tasks.start(self._collect(), "collect diagnostics")

    def titles(self) -> list[str]:
        """Return each file with its size."""
        files = self.bundle.files if self.bundle is not None else ()
        return [f"{one.name}  ·  {formats.size(len(one.content))}" for one in files]

    def text(self, place: int) -> str:
        """Return the text of one file; empty where there is none."""
        files = self.bundle.files if self.bundle is not None else ()
        return files[place].text if 0 <= place < len(files) else ""

    @property
    def sentence(self) -> str:
        """The state of the report in words."""
        if self.problem or self.bundle is None:
            return self.problem or tr("Collecting…")
        missing = len(self.bundle.missing)
        lacks = (
            (
                " "
                + tr(
                    "{files_are} missing; README.txt says why.",
                    files_are=formats.plural(missing, "file is", "files are"),
                )
            )
            if missing
            else ""
        )
        return tr("Nothing is sent anywhere: this is all that the file will hold.{lacks}", lacks=lacks)

    def save(self, path: str) -> None:
        """Write the zip, readable by its owner alone; what is there already is left."""
        if self.bundle is not None and not self.saving:
            self.saving, self.problem = True, ""
            self.session.tasks.start(self._save(self.bundle, Path(path)), "save diagnostics")
            self.changed.emit()

    async def _collect(self) -> None:
        there = self.session.connection.there
        if self.session.host and there is None:
            self.problem = tr(
                "{host} is not connected: a report of it needs its host.", host=self.session.host
            )
            self.changed.emit()
            return
        try:
            self.bundle = await asyncio.to_thread(collect, there=there)
        except HostError as error:
            # Of this machine there is always something to tell.
            self.problem = error.problem.sentence()
        self.changed.emit()

    async def _save(self, bundle: Bundle, path: Path) -> None:
        try:
            await asyncio.to_thread(save, bundle, path)
        except HostError as error:
            self.problem = error.problem.sentence()
        else:
            self.session.notices.info(
                "diagnostics", tr("Written to {path}, readable by you alone.", path=path)
            )
            self.saved.emit()
        finally:
            self.saving = False
        self.changed.emit()
