"""Downloads that were begun and are not whole, remembered over restarts of the host."""

import hashlib
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unwritable_folder
from engine_host.core.store import Store
from engine_host.library.hub.cache import RepositoryCache
from engine_host.library.hub.listing import HubFile
from engine_host.protocol.base import Wire
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.library import DownloadModel, UnfinishedDownload

_log = logging.getLogger(__name__)
_KIND = "download"
_MOST = 200


class Begun(Wire):
    """A download as it was begun: what was asked, pinned, and its contents with their sizes."""

    id: str
    asked: DownloadModel
    label: str
    blobs: dict[str, int]
    begun_at: float
    root: str
    command: str
    problem: Problem | None = None


def identity(asked: DownloadModel, commit: str) -> str:
    """Return the id of a download: the same files at the same commit are the same one."""
    return hashlib.sha256(f"{asked.repository}@{commit}#{asked.choice}".encode()).hexdigest()[:12]


def bytes_here(cache: RepositoryCache, blob: str, size: int) -> int:
    """Return how much of a content lies here, whole or in part."""
    for path in (cache.blob(blob), cache.part(blob)):
        try:
            return min(size, os.stat(path).st_size)
        except OSError:
            continue
    return 0


def file_here(cache: RepositoryCache, file: HubFile) -> int:
    """Return how much of a file lies here; nothing of one without a hash is found again by its name."""
    return bytes_here(cache, file.hash, file.size) if file.hash is not None else 0


class UnfinishedDownloads:
    """The notes of them in the store, and which jobs go on with them now."""

    def __init__(self, store: Store, command: Callable[[DownloadModel], str]) -> None:
        """`command` is the command line that goes on with one."""
        self._store = store
        self._command = command
        self.jobs: dict[str, str] = {}

    def begin(
        self, asked: DownloadModel, label: str, files: Sequence[HubFile], root: Path, job: str | None
    ) -> str:
        """Note a download whose revision is a commit now; return its id."""
        name = identity(asked, asked.revision)
        earlier = self._find(name)
        begun = Begun(
            id=name,
            asked=asked,
            label=label,
            blobs={file.hash: file.size for file in files if file.hash is not None},
            begun_at=earlier.begun_at if earlier else time.time(),
            root=str(root),
            command=self._command(asked),
        )
        self._store.put(_KIND, name, begun.begun_at, begun.model_dump_json())
        if job is not None:
            self.jobs[name] = job
        return name

    def paused(self, name: str, problem: Problem | None) -> None:
        """Note that nobody goes on with one now, and why."""
        self.jobs.pop(name, None)
        if (begun := self._find(name)) is not None:
            begun = begun.model_copy(update={"problem": problem})
            self._store.put(_KIND, name, begun.begun_at, begun.model_dump_json())

    def done(self, name: str) -> None:
        """Forget one that is whole."""
        self.jobs.pop(name, None)
        self._store.remove(_KIND, name)

    def all(self) -> tuple[UnfinishedDownload, ...]:
        """Return them, newest first."""
        return tuple(map(self._shown, self._begun()))

    def discard(self, name: str) -> None:
        """Forget a download and remove what came. Raises HostError: not_found, conflict, not_writable."""
        begun = self._find(name)
        if begun is None:
            raise HostError(
                Reason.NOT_FOUND,
                tr("There is no unfinished download {name}.", name=repr(name)),
                fix=Fix(text="See which there are.", command="sndr models downloads"),
                evidence={"download": name},
            )
        if name in self.jobs:
            raise HostError(
                Reason.CONFLICT,
                tr("{repository} is being downloaded.", repository=begun.asked.repository),
                cause="What came of it is what the download goes on from.",
                fix="Pause it first.",
                evidence={"job": self.jobs[name]},
            )
        wanted = {blob for one in self._begun() if one.id != name for blob in one.blobs}
        cache = RepositoryCache(Path(begun.root), begun.asked.repository)
        try:
            for blob in begun.blobs.keys() - wanted:
                cache.discard(blob)
        except OSError as error:
            raise HostError(
                Reason.NOT_WRITABLE,
                tr("{folder} cannot be written: {error}.", folder=cache.folder, error=error.strerror),
                cause=unwritable_folder(),
                fix="Delete it by hand, or make its folder writable.",
            ) from error
        self._store.remove(_KIND, name)

    def _shown(self, begun: Begun) -> UnfinishedDownload:
        cache = RepositoryCache(Path(begun.root), begun.asked.repository)
        return UnfinishedDownload(
            id=begun.id,
            asked=begun.asked,
            label=begun.label,
            size=sum(begun.blobs.values()),
            here=sum(bytes_here(cache, blob, size) for blob, size in begun.blobs.items()),
            begun_at=begun.begun_at,
            job=self.jobs.get(begun.id),
            problem=begun.problem,
            command=begun.command,
        )

    def _begun(self) -> list[Begun]:
        found = []
        for body in self._store.newest(_KIND, _MOST):
            try:
                found.append(Begun.model_validate_json(body))
            except ValidationError as error:
                _log.warning("a download of another version of this program is left out: %s", error)
        return found

    def _find(self, name: str) -> Begun | None:
        return next((one for one in self._begun() if one.id == name), None)
