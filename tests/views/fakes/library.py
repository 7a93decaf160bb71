"""The part of the FAKE host of view tests that has a library; it finds and keeps plain attributes."""

from engine_host.core.errors import HostError
from engine_host.operations.performs import performs
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.library import (
    DownloadModel,
    HubFiles,
    HubFilesQuery,
    HubQuery,
    HubSearch,
    LibraryPage,
    RemoveModel,
    TrashedModel,
    UnfinishedDownload,
    VerifyModel,
)
from engine_host.protocol.operations import library as ops
from tests.views.samples import host as samples
from tests.views.samples import library as made


class FakeLibrary:
    """A library that downloads nothing; asking it is kept in `hub_asked`."""

    def __init__(self) -> None:
        self.hub_asked: list[str] = []
        self.downloaded: list[DownloadModel] = []
        self.removed: list[RemoveModel] = []
        self.downloads: tuple[UnfinishedDownload, ...] = ()
        self.trash: tuple[TrashedModel, ...] = ()
        self.offline: Problem | None = None
        self.hub_files: HubFiles = made.files()
        self.owner = ""

    @performs(ops.LIBRARY)
    def _library(self) -> LibraryPage:
        return made.page(self.downloads, self.trash)

    @performs(ops.SEARCH_HUB)
    def _search_hub(self, asked: HubQuery) -> HubSearch:
        self.hub_asked.append(asked.words)
        if self.offline is not None:
            return made.search(asked.words).model_copy(update={"models": (), "offline": self.offline})
        return made.search(asked.words)

    @performs(ops.HUB_FILES)
    def _hub_files(self, asked: HubFilesQuery) -> HubFiles:
        self.hub_asked.append(f"{asked.repository}@{asked.revision}")
        if self.offline is not None:
            raise HostError.from_problem(self.offline)
        return self.hub_files

    @performs(ops.DOWNLOAD_MODEL)
    def _download_model(self, asked: DownloadModel) -> Job:
        self.downloaded.append(asked)
        return samples.job(
            JobKind.MODEL_DOWNLOAD, JobState.RUNNING, title=f"Download {asked.repository}", touches="x"
        )

    @performs(ops.DISCARD_DOWNLOAD)
    def _discard_download(self, download_id: str) -> LibraryPage:
        self.downloads = tuple(one for one in self.downloads if one.id != download_id)
        return self._library()

    @performs(ops.VERIFY_MODEL)
    def _verify_model(self, asked: VerifyModel) -> Job:
        return samples.job(JobKind.MODEL_VERIFY, JobState.RUNNING, title=f"Verify {asked.model}", touches="x")

    @performs(ops.REMOVE_MODEL)
    def _remove_model(self, asked: RemoveModel) -> TrashedModel:
        self.removed.append(asked)
        if self.owner and not asked.shared:
            raise HostError(
                Reason.CONFLICT,
                f"{asked.model} lies in the folder of {self.owner}, which other programs use too.",
                evidence={"owner": self.owner},
            )
        self.trash = (made.trashed(asked.model), *self.trash)
        return self.trash[0]

    @performs(ops.RESTORE_MODEL)
    def _restore_model(self, trashed_id: str) -> TrashedModel:
        (back,) = [one for one in self.trash if one.id == trashed_id]
        self.trash = tuple(one for one in self.trash if one.id != trashed_id)
        return back

    @performs(ops.EMPTY_TRASH)
    def _empty_trash(self) -> LibraryPage:
        self.trash = ()
        return self._library()
