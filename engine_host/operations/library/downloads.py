"""Models of the hub: searched, listed and downloaded, when a person asks; a pause keeps what came."""

import asyncio
import os
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.sizes import size_text
from engine_host.library.file_hashes import FileHashes
from engine_host.library.hub.cache import RepositoryCache, free_bytes
from engine_host.library.hub.choices import Choice, choices_of
from engine_host.library.hub.fetching import FileFetcher, Patience
from engine_host.library.hub.listing import HubFile, Listing, list_files, search
from engine_host.library.hub.requests import COMMIT, HubRequests
from engine_host.operations.library.unfinished import UnfinishedDownloads, file_here
from engine_host.operations.models import ModelOperations
from engine_host.operations.performs import performs
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.events import ModelsChangedEvent
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.language import tr
from engine_host.protocol.library import (
    DownloadedModel,
    DownloadModel,
    HubChoice,
    HubCompanion,
    HubFileEntry,
    HubFiles,
    HubFilesQuery,
    HubModelEntry,
    HubQuery,
    HubSearch,
)
from engine_host.protocol.models import ModelFile
from engine_host.protocol.operations import library as ops
from engine_host.remote.transfer.pace import Told

_STEPS = ("Ask the hub", "Look at the disk", "Download", "Look for it here")
# So much stays free: a disk without a byte stops other programs too.
_MARGIN = 256 << 20


class DownloadOperations:
    """The hub, and the jobs that bring its models into the cache."""

    def __init__(
        self,
        jobs: JobRunner,
        events: EventLog,
        models: ModelOperations,
        requests: HubRequests,
        root: Callable[[], Path],
        hashes: FileHashes,
        unfinished: UnfinishedDownloads,
        patience: Patience | None = None,
    ) -> None:
        """`root` is the folder of the cache that gets them."""
        self._jobs = jobs
        self._events = events
        self._models = models
        self._requests = requests
        self._root = root
        self._hashes = hashes
        self._unfinished = unfinished
        self._patience = patience or Patience()

    @performs(ops.SEARCH_HUB)
    async def search(self, asked: HubQuery) -> HubSearch:
        """Search the hub. Raises HostError: of a hub that refuses."""
        said = HubSearch(words=asked.words, endpoint=self._requests.endpoint)
        try:
            found = await search(self._requests, asked.words, asked.limit)
        except HostError as error:
            if error.reason is not Reason.OFFLINE:
                raise
            return said.model_copy(update={"offline": error.problem})
        models = tuple(
            HubModelEntry(
                repository=one.repository,
                downloads=one.downloads,
                likes=one.likes,
                gguf=one.gguf,
                safetensors=one.safetensors,
                gated=one.gated,
                updated=one.updated,
            )
            for one in found
        )
        return said.model_copy(update={"models": models})

    @performs(ops.HUB_FILES)
    async def files(self, asked: HubFilesQuery) -> HubFiles:
        """Ask for the files of a repository. Raises HostError: see `list_files`."""
        revision = asked.revision.strip() or "main"
        listing = await list_files(self._requests, asked.repository.strip(), revision)
        root = self._root()
        cache = RepositoryCache(root, listing.repository)
        listed = await self._models.listed(False)
        shown = [
            _shown(choice, cache, _at(cache.snapshot(listing.commit) / choice.start, listed))
            for choice in choices_of(listing.files)
        ]
        return HubFiles(
            repository=listing.repository,
            revision=revision,
            commit=listing.commit,
            gated=listing.gated,
            licence=listing.licence,
            choices=tuple(shown),
            folder=str(root),
            free=free_bytes(root),
            has_token=self._requests.has_token,
        )

    @performs(ops.DOWNLOAD_MODEL)
    def download(self, asked: DownloadModel) -> Job:
        """Download a model as a job. Raises HostError(bad_request)."""
        self._requests.check(asked.repository, asked.revision)
        names: list[str] = []

        async def work(control: JobControl) -> dict[str, Any]:
            return await self._carry_out(asked, control, job.id, names)

        def ended(done: Job) -> None:
            for name in names:
                if done.state is JobState.DONE:
                    self._unfinished.done(name)
                else:
                    self._unfinished.paused(name, done.error)
            self._events.publish(ModelsChangedEvent())

        job = self._jobs.start(
            JobKind.MODEL_DOWNLOAD,
            tr("Download {repository}", repository=asked.repository),
            f"download of {asked.repository}",
            command_of(asked),
            work,
            ended,
        )
        return job

    async def _carry_out(
        self, asked: DownloadModel, control: JobControl, job: str, names: list[str]
    ) -> dict[str, Any]:
        def at(number: int) -> Callable[[str, float | None], None]:
            return lambda detail, share: control.step(number, len(_STEPS), _STEPS[number - 1], detail, share)

        at(1)("", None)
        listing = await list_files(self._requests, asked.repository, asked.revision)
        choice, files = _chosen(asked, listing)
        root = self._root()
        cache = RepositoryCache(root, listing.repository)
        branch = asked.named if COMMIT.fullmatch(asked.revision) else asked.revision
        pinned = asked.model_copy(update={"revision": listing.commit, "named": branch})
        names.append(self._unfinished.begin(pinned, choice.label, files, root, job))
        control.left = tr("What came stays: it goes on from there.")
        self._events.publish(ModelsChangedEvent())
        at(2)("", None)
        _need_room(root, sum(file.size - file_here(cache, file) for file in files))
        at(3)("", None)
        began = time.monotonic()
        carried, unverified, blobs = await self._fetched(listing, files, cache, Told(at(3)))
        at(4)("", None)
        self._requests.check(asked.repository, branch or listing.commit)
        await asyncio.to_thread(cache.publish, listing.commit, branch or listing.commit, blobs)
        place = cache.snapshot(listing.commit) / choice.start
        page = await self._models.scan()
        control.left = ""
        return DownloadedModel(
            repository=listing.repository,
            commit=listing.commit,
            path=str(place),
            listed_as=_at(place, page.models),
            size=sum(file.size for file in files),
            carried=carried,
            seconds=round(time.monotonic() - began, 3),
            verified=not unverified,
            unverified_files=unverified,
        ).model_dump(mode="json")

    async def _fetched(
        self, listing: Listing, files: Sequence[HubFile], cache: RepositoryCache, told: Told
    ) -> tuple[int, tuple[str, ...], dict[str, str]]:
        """Return the bytes carried, the files without a hash, and the names of all contents."""
        told.total = sum(file.size for file in files)
        carried, unverified, blobs = 0, [], {}
        async with self._requests.asking(
            tr("{repository} was not downloaded", repository=listing.repository)
        ) as client:
            fetcher = FileFetcher(
                self._requests, client, cache, listing.repository, listing.commit, self._patience
            )
            for file in files:
                carrying, size = told.carrying(file.name), file.size
                done = await fetcher.fetch(
                    file,
                    self._hashes.known,
                    lambda here, carrying=carrying, size=size: carrying(here, size),  # type: ignore[misc]
                    told.reading(file.name, size),
                )
                if done.hashes is not None:
                    self._hashes.remember(cache.blob(done.blob), done.hashes)
                carried += done.carried
                told.before += file.size
                blobs[file.name] = done.blob
                if not done.verified:
                    unverified.append(file.name)
        return carried, tuple(unverified), blobs


def _at(place: Path, models: Sequence[ModelFile]) -> str | None:
    """Return the model that lies at a place, by whichever of its names."""
    real = os.path.realpath(place)
    return next((one.id for one in models if os.path.realpath(one.path) == real), None)


def command_of(asked: DownloadModel) -> str:
    """Return the command that downloads the same, or goes on with it."""
    words = ["sndr", "models", "download", asked.repository]
    if asked.revision != "main":
        words += ["--revision", asked.revision]
    words += ["--choice", asked.choice]
    words += [word for name in asked.companions for word in ("--companion", name)]
    return shlex.join(words)


def _chosen(asked: DownloadModel, listing: Listing) -> tuple[Choice, tuple[HubFile, ...]]:
    choices = choices_of(listing.files)
    wanted = asked.choice.lower()
    choice = next((one for one in choices if one.id == asked.choice), None)
    if choice is None:
        called = [one for one in choices if one.label.lower() == wanted]
        choice = called[0] if len(called) == 1 else None
    if choice is None:
        raise HostError(
            Reason.NOT_FOUND,
            tr(
                "{repository} has no {choice} at {commit}.",
                repository=asked.repository,
                choice=repr(asked.choice),
                commit=listing.commit[:12],
            ),
            cause=tr("There are: {names}.", names=", ".join(one.label for one in choices) or tr("no models")),
            fix=Fix(text="Choose one of its files.", command=f"sndr models files {asked.repository}"),
            evidence={"choices": [one.id for one in choices]},
        )
    beside = {file.name: file for _kind, file in choice.companions}
    if unknown := [name for name in asked.companions if name not in beside]:
        raise HostError(
            Reason.NOT_FOUND,
            tr(
                "{repository} has no {unknown} that goes with {choice}.",
                repository=asked.repository,
                unknown=unknown[0],
                choice=choice.label,
            ),
            fix=Fix(text="Choose one of its files.", command=f"sndr models files {asked.repository}"),
        )
    return choice, (*choice.files, *(beside[name] for name in dict.fromkeys(asked.companions)))


def _need_room(root: Path, left: int) -> None:
    free = free_bytes(root)
    if free is not None and left and left + _MARGIN > free:
        raise HostError(
            Reason.DISK_FULL,
            tr(
                "{left} are to come, and {root} has {free} free.",
                left=size_text(left),
                root=root,
                free=size_text(free),
            ),
            cause=tr("{margin} stay free for other programs.", margin=size_text(_MARGIN)),
            fix=Fix(
                text="Delete models and empty the trash, or set HF_HOME to a folder on a larger disk.",
                command="sndr models empty",
            ),
            evidence={"left": left, "free": free, "path": str(root)},
        )


def _shown(choice: Choice, cache: RepositoryCache, model: str | None) -> HubChoice:
    return HubChoice(
        id=choice.id,
        label=choice.label,
        format=choice.format,
        size=choice.size,
        files=tuple(
            HubFileEntry(
                name=file.name, size=file.size, hashed=file.hash is not None, here=file_here(cache, file)
            )
            for file in choice.files
        ),
        companions=tuple(
            HubCompanion(
                kind=kind,
                name=file.name,
                size=file.size,
                hashed=file.hash is not None,
                here=file_here(cache, file),
            )
            for kind, file in choice.companions
        ),
        model=model,
    )
