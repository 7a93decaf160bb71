"""The library's operations over a FAKE hub on real sockets and real files; the engines are none."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.settings import SettingsFile
from engine_host.core.store import Store
from engine_host.library.file_hashes import FileHashes
from engine_host.library.hub.fetching import Patience
from engine_host.library.hub.requests import HubRequests
from engine_host.library.index import ModelIndex
from engine_host.library.scan import FoundModel, Place, find_models
from engine_host.library.trash import Trash
from engine_host.operations.library.downloads import DownloadOperations, command_of
from engine_host.operations.library.shelf import ShelfOperations
from engine_host.operations.library.unfinished import UnfinishedDownloads
from engine_host.operations.models import ModelOperations
from engine_host.protocol.engines import Engine
from engine_host.protocol.jobs import Job
from engine_host.protocol.library import DownloadModel
from engine_host.protocol.models import ModelOrigin
from tests.unit.library.hub.hub_server import HubServer


@dataclass
class Shelf:
    """The operations, and what they stand on."""

    downloads: DownloadOperations
    shelf: ShelfOperations
    models: ModelOperations
    jobs: JobRunner
    cache: Path
    folder: Path
    now: list[float]
    running: list[Engine]

    async def download(self, asked: DownloadModel) -> Job:
        """Download to the end."""
        return await self.jobs.ended(self.downloads.download(asked).id)


@asynccontextmanager
async def shelf(
    hub: HubServer | None, tmp_path: Path, patience: Patience | None = None, **environment: str
) -> AsyncIterator[Shelf]:
    """Open a library: its cache of the hub is another program's, its folder a person's own."""
    cache, folder, now = tmp_path / "cache", tmp_path / "mine", [1000.0]
    folder.mkdir(exist_ok=True)
    events, store = EventLog(), Store(tmp_path / "data" / "store.sqlite")
    jobs = JobRunner(events.publish, store)
    jobs.restore()
    settings = SettingsFile(tmp_path / "settings.toml")
    settings.load()

    def scan() -> Sequence[FoundModel]:
        return find_models(
            [
                Place(folder, ModelOrigin.FOLDER, "mine"),
                Place(cache, ModelOrigin.OTHER_PROGRAM, "Hugging Face"),
            ]
        )

    models = ModelOperations(ModelIndex(scan), settings, events, lambda: folder, store)
    endpoint = hub.endpoint if hub is not None else "http://127.0.0.1:9"
    requests = HubRequests({"HF_ENDPOINT": endpoint, **environment})
    hashes, unfinished = FileHashes(store), UnfinishedDownloads(store, command_of)
    running: list[Engine] = []
    made = Shelf(
        DownloadOperations(
            jobs,
            events,
            models,
            requests,
            lambda: cache,
            hashes,
            unfinished,
            patience or Patience(30, (0.0,)),
        ),
        ShelfOperations(
            jobs,
            events,
            models,
            requests,
            lambda: cache,
            hashes,
            unfinished,
            Trash(tmp_path / "data" / "trash", lambda: now[0]),
            lambda: cast(Sequence[Engine], running),
        ),
        models,
        jobs,
        cache,
        folder,
        now,
        running,
    )
    try:
        yield made
    finally:
        await jobs.close()
        store.close()
        events.close()
