"""The view-model of Library: models of this machine, deleted ones, and downloads that are not whole."""

from __future__ import annotations

import shlex

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.library import (
    LibraryPage,
    RemoveModel,
    TrashedModel,
    UnfinishedDownload,
    VerifyModel,
)
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.operations import library as ops
from engine_host.protocol.operations import table
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.rows import RowsModel
from sndr_gui.models.library.hub import HubModel
from sndr_gui.models.library.words import columns


class LibraryModel(QObject):
    """The model of Library.

    Signals:
        changed: models, the chosen one, downloads, the trash or a job are new
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.hub = HubModel(session)
        self.rows: RowsModel[ModelFile] = RowsModel(columns(), lambda model: model.id, self)
        self.page: LibraryPage | None = None
        self.problem: Problem | None = None
        self.consent: Problem | None = None
        self._chosen = ""
        self._shown = False
        self._dismissed: set[str] = set()
        session.state.models_changed.connect(self._on_models)
        session.state.jobs_changed.connect(self.changed)
        session.state.outdated.connect(self._on_outdated)
        session.connection.changed.connect(self._on_link)
        self._on_models()

    @property
    def connected(self) -> bool:
        """True while the host answers."""
        return self.session.connection.connected

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        if not self.connected:
            return tr("no connection")
        parts = [formats.plural(self.rows.total, "model")]
        parts.append(formats.size(sum(model.size for model in self.rows.all)))
        if self.page is not None and self.page.free is not None:
            parts.append(tr("{size} free", size=formats.size(self.page.free)))
        return "  ·  ".join(parts)

    @property
    def only_bundled(self) -> bool:
        """True where nothing but the program's own model is here."""
        return all(model.origin is ModelOrigin.BUNDLED for model in self.rows.all)

    # The chosen model.

    @property
    def chosen(self) -> ModelFile | None:
        """The model that is shown whole."""
        return next((model for model in self.rows.all if model.id == self._chosen), None)

    def choose(self, model: ModelFile | None) -> None:
        """Show a model whole."""
        if model is not None and model.id != self._chosen:
            self._chosen, self.consent = model.id, None
            self.changed.emit()

    @property
    def command(self) -> str:
        """The command that deletes the chosen model."""
        shared = ["--shared"] if self.consent is not None else []
        return shlex.join(["sndr", "models", "remove", self._chosen, *shared])

    def remove(self) -> None:
        """Delete the chosen model; one of another program only at the second asking."""
        model, shared = self.chosen, self.consent is not None
        if model is None:
            return
        self.consent = self.problem = None

        async def work(client: AsyncControlClient) -> None:
            gone = await client.call(ops.REMOVE_MODEL, RemoveModel(model=model.id, shared=shared))
            self._say_gone(gone)

        def failed(error: HostError) -> None:
            if error.reason is Reason.CONFLICT and "owner" in error.problem.evidence:
                self.consent = error.problem
                self.changed.emit()
            else:
                self._on_failed(error)

        self.session.command("delete the model", work, done=self.read, failed=failed)

    def _say_gone(self, gone: TrashedModel) -> None:
        self.session.notices.info(
            f"deleted {gone.id}",
            tr("{model} is deleted; it can come back for a day.", model=gone.model),
            action_text=tr("Undo"),
            action=lambda: self.restore(gone.id),
        )

    def restore(self, trashed: str) -> None:
        """Put a deleted model back."""
        self.session.notices.withdraw(f"deleted {trashed}")

        async def work(client: AsyncControlClient) -> None:
            back = await client.call(ops.RESTORE_MODEL, id=trashed)
            self._chosen = back.model

        self.session.command("restore the model", work, done=self.read, failed=self._on_failed)

    def empty_trash(self) -> None:
        """Delete for good what was deleted."""

        async def work(client: AsyncControlClient) -> None:
            self.page = await client.call(ops.EMPTY_TRASH)

        self.session.command("empty the trash", work, done=self.changed.emit, failed=self._on_failed)

    def verify(self) -> None:
        """Hash the files of the chosen model."""
        model = self.chosen
        if model is None:
            return

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.VERIFY_MODEL, VerifyModel(model=model.id)))

        self.session.command("verify the model", work, failed=self._on_failed)

    def rescan(self) -> None:
        """Look through the folders again."""

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(table.SCAN_MODELS))

        self.session.command("rescan", work)

    # Jobs and downloads.

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Downloads and verifications that are under way, and those that failed, until they are put away."""
        # A download that stopped stands among the paused ones, with its problem.
        paused = {f"Download {one.asked.repository}" for one in self.downloads}
        found = []
        for kind in (JobKind.MODEL_DOWNLOAD, JobKind.MODEL_VERIFY):
            newest = self.session.state.newest_job(kind)
            found += [job for job in self.session.state.jobs.values() if job.kind is kind and not job.ended]
            if newest is not None and newest.error is not None and newest.title not in paused:
                found += [newest] if newest.id not in self._dismissed else []
        return tuple(sorted(found, key=lambda job: job.created_at))

    @property
    def downloads(self) -> tuple[UnfinishedDownload, ...]:
        """Downloads that are paused."""
        page = self.page
        return tuple(one for one in page.downloads if one.job is None) if page is not None else ()

    @property
    def trash(self) -> tuple[TrashedModel, ...]:
        """Deleted models that can come back."""
        return self.page.trash if self.page is not None else ()

    def pause(self, job: Job) -> None:
        """End a job, which keeps what came; or put the end of one away."""
        if job.ended:
            self._dismissed.add(job.id)
            self.changed.emit()
            return

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(table.CANCEL_JOB, id=job.id))

        self.session.command("pause", work, done=self.read, failed=self._on_failed)

    def go_on(self, one: UnfinishedDownload) -> None:
        """Go on with a paused download."""

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.DOWNLOAD_MODEL, one.asked))

        self.session.command("go on with the download", work, done=self.read, failed=self._on_failed)

    def discard(self, one: UnfinishedDownload) -> None:
        """Give up a paused download with what came of it."""

        async def work(client: AsyncControlClient) -> None:
            self.page = await client.call(ops.DISCARD_DOWNLOAD, id=one.id)

        self.session.command("give up the download", work, done=self.changed.emit, failed=self._on_failed)

    # Reading.

    def set_shown(self, shown: bool) -> None:
        """Read the library while somebody looks."""
        self._shown = shown
        if shown:
            self.read()

    def read(self) -> None:
        """Read downloads, trash and disk again, while the page is shown; nobody outside is asked."""
        if not self._shown or not self.connected:
            return

        async def work(client: AsyncControlClient) -> None:
            self.page = await client.call(ops.LIBRARY)

        self.session.read("read the library", work, done=self.changed.emit, failed=self._on_failed)

    def _on_models(self) -> None:
        page = self.session.state.models
        self.rows.set_rows(page.models if page else ())
        if self.chosen is None and self.rows.all:
            self._chosen = self.rows.all[0].id
        self.changed.emit()

    def _on_outdated(self, what: str) -> None:
        if what in {"models", "all"}:
            self.read()

    def _on_failed(self, error: HostError) -> None:
        self.problem = None if error.lost else error.problem
        self.changed.emit()

    def _on_link(self) -> None:
        self.read()
        self.changed.emit()
