"""Models of this machine verified, deleted and restored; and the page of the library."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.likely_causes import unreadable_file
from engine_host.library.belongings import Belongings, belongings_of, files_of, snapshot_of
from engine_host.library.file_hashes import FileHashes, hash_file
from engine_host.library.hub.cache import free_bytes, hash_in_name
from engine_host.library.hub.requests import HubRequests
from engine_host.library.scan import hub_name
from engine_host.library.trash import KEPT, Thrown, Trash
from engine_host.operations.library.unfinished import UnfinishedDownloads
from engine_host.operations.models import ModelOperations
from engine_host.operations.performs import performs
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.library import (
    LibraryPage,
    RemoveModel,
    TrashedModel,
    VerifiedFile,
    VerifiedModel,
    VerifyModel,
)
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.operations import library as ops


class ShelfOperations:
    """The files of models: hashed, moved away, moved back."""

    def __init__(
        self,
        jobs: JobRunner,
        events: EventLog,
        models: ModelOperations,
        requests: HubRequests,
        root: Callable[[], Path],
        hashes: FileHashes,
        unfinished: UnfinishedDownloads,
        trash: Trash,
        running: Callable[[], Sequence[Engine]],
    ) -> None:
        """`root` is the folder that downloads go to; `running` are the engines that live."""
        self._jobs = jobs
        self._events = events
        self._models = models
        self._requests = requests
        self._root = root
        self._hashes = hashes
        self._unfinished = unfinished
        self._trash = trash
        self._running = running

    @performs(ops.LIBRARY)
    async def page(self) -> LibraryPage:
        """Return the state of the hub, the disk, the downloads and the trash; asks nobody."""
        await asyncio.to_thread(self._trash.empty, all_of_it=False)
        thrown = await asyncio.to_thread(self._trash.all)
        root = self._root()
        return LibraryPage(
            seq=self._events.seq,
            endpoint=self._requests.endpoint,
            offline=self._requests.offline,
            has_token=self._requests.has_token,
            folder=str(root),
            free=free_bytes(root),
            downloads=self._unfinished.all(),
            trash=tuple(map(_shown, thrown)),
        )

    @performs(ops.DISCARD_DOWNLOAD)
    async def discard(self, download_id: str) -> LibraryPage:
        """Give up a download. Raises HostError: not_found, conflict, not_writable."""
        self._unfinished.discard(download_id)
        self._models.tell()
        return await self.page()

    @performs(ops.VERIFY_MODEL)
    async def verify(self, asked: VerifyModel) -> Job:
        """Hash a model's files as a job. Raises HostError(model_file_missing)."""
        model = await self._models.find(asked.model)
        return self._jobs.start(
            JobKind.MODEL_VERIFY,
            tr("Verify {model}", model=model.id),
            f"files of {model.path}",
            f"sndr models verify {model.id}",
            lambda control: self._hash(control, model),
        )

    @performs(ops.REMOVE_MODEL)
    async def remove(self, asked: RemoveModel) -> TrashedModel:
        """Move a model to the trash.

        Raises HostError: model_file_missing; conflict where an engine uses it, a download brings it, another
        model lies in its folder, or it is another program's and that was not allowed; unsupported for what is
        not a person's to delete; not_writable, disk_full.
        """
        model = await self._to_remove(asked.model)
        path = Path(model.path)
        _refuse_origin(model, allowed=asked.shared)
        try:
            what = await asyncio.to_thread(belongings_of, path)
        except OSError as error:
            raise HostError(
                Reason.NOT_WRITABLE,
                tr("{path} cannot be looked at: {error}.", path=path, error=error.strerror or error),
                cause=unreadable_file(),
                fix="Make the file readable for you.",
                evidence={"path": str(path), "errno": error.errno},
            ) from error
        others = await self._models.listed(False)
        await asyncio.to_thread(self._refuse_used, model, what, others)
        thrown = await asyncio.to_thread(self._trash.throw, what, model.id, path, model.found_in)
        await self._models.scan()
        return _shown(thrown)

    @performs(ops.RESTORE_MODEL)
    async def restore(self, trashed_id: str) -> TrashedModel:
        """Put a model back. Raises HostError: not_found, conflict, not_writable."""
        thrown = await asyncio.to_thread(self._trash.restore, trashed_id)
        await self._models.scan()
        return _shown(thrown)

    @performs(ops.EMPTY_TRASH)
    async def empty(self) -> LibraryPage:
        """Delete for good. Raises HostError(not_writable)."""
        await asyncio.to_thread(self._trash.empty, all_of_it=True)
        self._models.tell()
        return await self.page()

    async def _to_remove(self, name: str) -> ModelFile:
        """Return a model also when its files are damaged: those are what somebody wants to delete."""
        for one in await self._models.listed(False):
            if name in {one.id, one.path}:
                return one
        return await self._models.find(name)

    def _refuse_used(self, model: ModelFile, what: Belongings, others: Sequence[ModelFile]) -> None:
        gone = [os.path.realpath(one) for one in what.paths]
        # An engine is given the folder of a checkpoint, which is none of the links and contents in it.
        used = [*gone, os.path.realpath(model.path)]
        for engine in self._running():
            words = [engine.plan.model_path, *(word for word in engine.plan.argv if word.startswith("/"))]
            if any(_is_within(word, used) for word in words):
                raise HostError(
                    Reason.CONFLICT,
                    tr(
                        "{engine} runs from {model}, so it is not deleted.",
                        engine=engine.name,
                        model=model.id,
                    ),
                    cause="An engine may read its files as long as it runs.",
                    fix=Fix(text="Stop the engine first.", command=f"sndr stop {engine.name}"),
                    evidence={"engine": engine.id},
                )
        for one in others:
            if Path(model.path) in Path(one.path).parents and _is_within(one.path, gone):
                raise HostError(
                    Reason.CONFLICT,
                    tr(
                        "{one} lies in the folder of {model}, and would go with it.",
                        one=one.id,
                        model=model.id,
                    ),
                    fix="Move it elsewhere first.",
                    evidence={"path": one.path},
                )
        snapshot = snapshot_of(Path(model.path))
        repository = hub_name(snapshot) if snapshot is not None else None
        for job in self._jobs.all():
            if (
                job.kind is JobKind.MODEL_DOWNLOAD
                and not job.ended
                and job.touches.endswith(f" {repository}")
            ):
                raise HostError(
                    Reason.CONFLICT,
                    tr(
                        "{repository} is being downloaded, so nothing of it is deleted.",
                        repository=repository,
                    ),
                    cause="The download writes into the folder that would be deleted.",
                    fix=Fix(text="Pause the download first.", command=f"sndr jobs cancel {job.id}"),
                    evidence={"job": job.id},
                )

    async def _hash(self, control: JobControl, model: ModelFile) -> dict[str, Any]:
        paths = await asyncio.to_thread(files_of, Path(model.path))
        loop, stopped, found = asyncio.get_running_loop(), threading.Event(), []
        try:
            for number, path in enumerate(paths, start=1):
                size = max(1, (await asyncio.to_thread(path.stat)).st_size)

                def tell(done: int, number: int = number, name: str = path.name, size: int = size) -> None:
                    loop.call_soon_threadsafe(control.step, number, len(paths), name, "", done / size)

                control.step(number, len(paths), path.name)
                hashes = await asyncio.to_thread(hash_file, path, tell, stopped.is_set)
                if hashes is None:
                    continue
                self._hashes.remember(path, hashes)
                promised = hash_in_name(path)
                found.append(
                    VerifiedFile(
                        name=path.name,
                        size=size,
                        sha256=hashes.sha256,
                        expected=promised,
                        right=hashes.is_called(promised) if promised else None,
                    )
                )
        except OSError as error:
            raise HostError(
                Reason.MODEL_FILE_MISSING,
                tr("{path} cannot be read: {error}.", path=model.path, error=error.strerror or error),
                cause=unreadable_file(),
                fix="Check the path; `sndr models` lists what was found.",
                evidence={"path": model.path, "errno": error.errno},
            ) from error
        finally:
            stopped.set()
        self._models.tell()
        return VerifiedModel(model=model.id, files=tuple(found)).model_dump(mode="json")


def _is_within(path: str, folders: Sequence[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == one or real.startswith(one + os.sep) for one in folders)


def _refuse_origin(model: ModelFile, *, allowed: bool) -> None:
    if model.origin is ModelOrigin.BUNDLED:
        raise HostError(
            Reason.UNSUPPORTED,
            tr("{model} comes with the program, and stays.", model=model.id),
            cause="It is one of the program's own files, and what the demo starts with.",
            fix="Nothing else is needed: it takes little room.",
        )
    if model.found_in == "Ollama":
        raise HostError(
            Reason.UNSUPPORTED,
            tr(
                "{model} is Ollama's: it keeps a list of its files, which would be wrong without them.",
                model=model.id,
            ),
            fix=Fix(text="Have Ollama delete it.", command=f"ollama rm {model.name}"),
        )
    if model.origin is ModelOrigin.OTHER_PROGRAM and not allowed:
        raise HostError(
            Reason.CONFLICT,
            tr(
                "{model} lies in the folder of {found_in}, which other programs use too.",
                model=model.id,
                found_in=model.found_in,
            ),
            cause="They would miss it, or fetch it again.",
            fix=Fix(
                text=tr("Delete it all the same, also for {found_in}.", found_in=model.found_in),
                command=f"sndr models remove {model.id} --shared",
            ),
            evidence={"owner": model.found_in, "path": model.path},
        )


def _shown(thrown: Thrown) -> TrashedModel:
    return TrashedModel(
        id=thrown.id,
        model=thrown.model,
        path=thrown.path,
        found_in=thrown.found_in,
        size=thrown.size,
        removed_at=thrown.at,
        gone_at=thrown.at + KEPT,
    )
