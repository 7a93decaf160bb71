"""The operations of the library together, for whoever builds the host."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.library.file_hashes import FileHashes
from engine_host.library.hub.requests import HubRequests
from engine_host.library.trash import Trash
from engine_host.operations.hub import HubOperations
from engine_host.operations.library.downloads import DownloadOperations, command_of
from engine_host.operations.library.shelf import ShelfOperations
from engine_host.operations.library.unfinished import UnfinishedDownloads
from engine_host.operations.models import ModelOperations
from engine_host.protocol.engines import Engine


def library_services(
    jobs: JobRunner,
    events: EventLog,
    store: Store,
    folders: Folders,
    models: ModelOperations,
    hub: HubOperations,
    root: Callable[[], Path],
    running: Callable[[], Sequence[Engine]],
    environment: Mapping[str, str] = os.environ,
) -> tuple[object, ...]:
    """Return them; `root` is the folder of the cache that downloads go to."""
    requests, hashes = HubRequests(environment), FileHashes(store)
    unfinished = UnfinishedDownloads(store, command_of)
    trash = Trash(folders.data / "trash")
    return (
        models,
        hub,
        DownloadOperations(jobs, events, models, requests, root, hashes, unfinished),
        ShelfOperations(jobs, events, models, requests, root, hashes, unfinished, trash, running),
    )
