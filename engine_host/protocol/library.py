"""The library: models of the hub, downloads that are not whole, and what was deleted and can come back."""

from pydantic import Field

from engine_host.protocol.base import Command, Page, Query, Seconds, Wire
from engine_host.protocol.errors import Problem


class HubFileEntry(Wire):
    """A file of a repository; bytes. Without a hash its content cannot be verified."""

    name: str
    size: int
    hashed: bool
    here: int = Field(0, description="bytes of it that are on this machine")


class HubCompanion(HubFileEntry):
    """A file that goes with a model: a projector for images and sound, or a drafter."""

    kind: str = Field(description="mmproj or drafter")


class HubChoice(Wire):
    """Files that are downloaded together: one quantisation with its parts, or a checkpoint."""

    id: str
    label: str
    format: str
    size: int
    files: tuple[HubFileEntry, ...]
    companions: tuple[HubCompanion, ...] = ()
    model: str | None = Field(None, description="the model of this machine that these files are")

    @property
    def here(self) -> int:
        """Bytes of its own files that are on this machine."""
        return sum(file.here for file in self.files)


class HubFilesQuery(Query):
    """A repository, and a branch, tag or commit of it."""

    repository: str = Field(max_length=200)
    revision: str = Field("main", max_length=120)


class HubFiles(Wire):
    """The choices of a repository, at the commit that the revision is now."""

    repository: str
    revision: str
    commit: str
    gated: bool = False
    licence: str | None = None
    choices: tuple[HubChoice, ...] = ()
    folder: str
    free: int | None = Field(None, description="bytes free on the disk of the folder")
    has_token: bool = False


class HubQuery(Query):
    """Words to search for."""

    words: str = Field(max_length=200)
    limit: int = Field(30, ge=1, le=50)


class HubModelEntry(Wire):
    """A repository that a search found; counts are None where the hub does not say."""

    repository: str
    downloads: int | None = None
    likes: int | None = None
    gguf: bool = False
    safetensors: bool = False
    gated: bool = False
    updated: str = ""


class HubSearch(Wire):
    """The result of a search; `offline` says why nobody was asked, which is no failure."""

    words: str
    endpoint: str
    models: tuple[HubModelEntry, ...] = ()
    offline: Problem | None = None


class DownloadModel(Command):
    """Download one choice of a repository, with the companions that are named."""

    repository: str = Field(max_length=200)
    revision: str = Field("main", max_length=120, description="a branch, a tag, or best a commit")
    choice: str = Field(max_length=400)
    companions: tuple[str, ...] = Field((), max_length=8)
    named: str = Field("", max_length=120, description="the branch that the commit was, for the cache")


class DownloadedModel(Wire):
    """The result of a download: where the model lies; `listed_as` is its id."""

    repository: str
    commit: str
    path: str
    listed_as: str | None = None
    size: int
    carried: int
    seconds: float
    verified: bool
    unverified_files: tuple[str, ...] = ()


class UnfinishedDownload(Wire):
    """A download that was begun; `job` is the one that goes on with it now, None while it is paused."""

    id: str
    asked: DownloadModel
    label: str
    size: int
    here: int
    begun_at: Seconds
    job: str | None = None
    problem: Problem | None = None
    command: str


class VerifyModel(Command):
    """A model of this machine, by id, name or path."""

    model: str = Field(max_length=4096)


class VerifiedFile(Wire):
    """A file that was hashed: `expected` is None where nothing here says its hash."""

    name: str
    size: int
    sha256: str
    expected: str | None = None
    right: bool | None = None


class VerifiedModel(Wire):
    """The result of a verification."""

    model: str
    files: tuple[VerifiedFile, ...]

    @property
    def right(self) -> bool | None:
        """False where a file is another; None where nothing says the hash of one."""
        found = {file.right for file in self.files}
        return False if False in found else None if None in found else True


class RemoveModel(Command):
    """Delete a model; `shared` allows it in the folder of another program."""

    model: str = Field(max_length=4096)
    shared: bool = False


class TrashedModel(Wire):
    """A model that was deleted and can come back until it is deleted for good; bytes."""

    id: str
    model: str
    path: str
    found_in: str
    size: int
    removed_at: Seconds
    gone_at: Seconds


class LibraryPage(Page):
    """The hub and the disk, downloads that are not whole, and what was deleted."""

    seq: int
    endpoint: str
    offline: bool
    has_token: bool
    folder: str
    free: int | None
    downloads: tuple[UnfinishedDownload, ...] = ()
    trash: tuple[TrashedModel, ...] = ()
